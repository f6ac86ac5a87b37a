// SPDX-License-Identifier: Apache-2.0
#pragma once

// Waits for rows that come while a product runs (`gemm::row_problem::pending`).

#include <tmap/device/peer_order.cuh>

#include <cstdint>

namespace tmap::kernels {

/// Waits until a word is 0.
__device__ inline void await_zero(const std::uint32_t* word) {
  while (device::ptx::ld_acquire_sys(word) != 0) {
  }
}

/// Waits until the rows of a group are there. Then this thread may load them by bulk copies.
__device__ inline void await_rows(const std::uint32_t* pending, std::uint32_t group) {
  if (pending == nullptr) return;
  await_zero(pending + group);
  device::fence_global_accesses();
}

}  // namespace tmap::kernels
