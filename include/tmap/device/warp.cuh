// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// A thread's place in its warp.

#include <tmap/detail/standard.hpp>

#include <cuda/ptx>

namespace tmap::device {

inline constexpr std::uint32_t warp_lanes = 32;

/// This thread's lane, below `warp_lanes`, in blocks of any shape. Warps are made of threads
/// counted along x, then y, then z, so `threadIdx.x % 32` is the lane only where the block's x
/// extent is a multiple of 32. Read from a special register: keep it where a loop needs it.
/// (%laneid, PTX ISA 10)
__device__ inline std::uint32_t lane_index() {
  return cuda::ptx::get_sreg_laneid();
}

}  // namespace tmap::device
