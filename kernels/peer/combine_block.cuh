// SPDX-License-Identifier: Apache-2.0
#pragma once

// Holds what both kinds of blocks of a combine have in common.

#include <tmap/detail/standard.hpp>
#include <tmap/device/warp.cuh>

#include <cstdint>

namespace tmap::kernels {

/// The threads of a block of a combine.
inline constexpr std::uint32_t combine_threads = 512;
inline constexpr std::uint32_t combine_warps = combine_threads / device::warp_lanes;

/// Names the records of one rank among those of all.
struct records_of_rank {
  std::uint32_t begin, count;
};

/// Returns those of a rank, where `counts` has the records of each.
__device__ inline records_of_rank records_of(const std::uint32_t* counts, std::uint32_t rank) {
  records_of_rank found{0, counts[rank]};
  TMAP_KEEP_ROLLED
  for (std::uint32_t i = 0; i < rank; ++i) found.begin += counts[i];
  return found;
}

}  // namespace tmap::kernels
