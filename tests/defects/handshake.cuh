// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda/atomic>

#include <cstdint>

// Provides flags between running kernels, or between the host and a kernel. They are counts that
// only grow.

namespace tmap::testing {

/// Waits until the count has reached `value`. Returns false after a second or two, so that a broken
/// test fails instead of hanging.
__device__ inline bool await_count(std::uint32_t* count, std::uint32_t value,
                                   long long cycles = std::int64_t{1} << 31) {
  const cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system> shared(*count);
  const long long begin = clock64();
  while (shared.load(cuda::memory_order_acquire) < value) {
    if (clock64() - begin > cycles) return false;
  }
  return true;
}

__device__ inline void add_to_count(std::uint32_t* count) {
  cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system>(*count).fetch_add(1, cuda::memory_order_acq_rel);
}

}  // namespace tmap::testing
