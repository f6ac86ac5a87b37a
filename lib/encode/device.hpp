// SPDX-License-Identifier: Apache-2.0
#pragma once

// Facts about the current device that batch functions need.

#include <tmap/error.hpp>
#include <tmap/map_template.hpp>

#include <cstdint>

namespace tmap {

// Both query the calling thread's current device, and fail with `no_driver`, `no_device` or
// `cuda_failure`.

[[nodiscard]] result<std::uint32_t> multiprocessor_count();

struct shared_memory_limits {
  std::uint32_t per_block;           ///< the most a block can opt in to
  std::uint32_t per_multiprocessor;  ///< all its blocks together
};
[[nodiscard]] result<shared_memory_limits> query_shared_memory();

/// Fails with `no_kernel_image` in a build without kernels, on every machine.
[[nodiscard]] result<void> require_kernels();

/// Fails with `unsupported` for a zeroed template on a GPU on which, by CUDA's guide, a map may not
/// begin as 128 zero bytes.
[[nodiscard]] result<void> require_start(const map_template& base);

}  // namespace tmap
