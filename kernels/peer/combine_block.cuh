// SPDX-License-Identifier: Apache-2.0
#pragma once

// Holds what both kinds of blocks of a combine have in common.

#include <tmap/device/peer_link.cuh>
#include <tmap/device/warp.cuh>

#include <cstdint>

#include "kernels/peer/expert_records.hpp"

namespace tmap::kernels {

/// The threads of a block of a combine.
inline constexpr std::uint32_t combine_threads = 512;
inline constexpr std::uint32_t combine_warps = combine_threads / device::warp_lanes;

/// Names the records of one rank among those of all.
struct records_of_rank {
  std::uint32_t begin, count;
};

/// Returns those of the own rank. `counts` is the offset of the records of each.
__device__ inline records_of_rank records_of_own(const device::peer_link& link, std::uint64_t counts) {
  const auto count = [&](std::uint32_t rank) { return link.load(link.rank(), peer::word_at(counts, rank)); };
  records_of_rank found{0, count(link.rank())};
  TMAP_KEEP_ROLLED
  for (std::uint32_t i = 0; i < link.rank(); ++i) found.begin += count(i);
  return found;
}

}  // namespace tmap::kernels
