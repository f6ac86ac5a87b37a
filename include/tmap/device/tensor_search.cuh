// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Finds the tensor of a ragged batch that holds the g-th tile (or any other unit of work) by a
/// search over running sums in device memory. `ends[i]` is the number of tiles of tensors 0 to i. A
/// tensor without tiles ends where the one before it ends, and is never found. One thread or a warp
/// searches.

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/device/warp.cuh>

namespace tmap::device {

/// Returns the first tensor of [low, high] that ends after tile `g`. Tensor `high` must end after
/// it. One thread searches, by log2(high - low) loads one after the other.
__device__ inline std::uint64_t find_tensor(const std::uint64_t* ends, std::uint64_t g, std::uint64_t low,
                                            std::uint64_t high) {
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (ends[middle] > g) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/// Does the same for a tensor that is likely near `low`. Its steps double, so that long runs of
/// empty tensors stay cheap.
__device__ inline std::uint64_t find_tensor_near(const std::uint64_t* ends, std::uint64_t g, std::uint64_t low,
                                                 std::uint64_t last) {
  std::uint64_t high = low;
  for (std::uint64_t step = 1; ends[high] <= g; step *= 2) {
    low = high + 1;
    high = last - high < step ? last : high + step;
  }
  return find_tensor(ends, g, low, high);
}

/// Does what `find_tensor` does by a warp, all lanes with the same arguments. Each step makes 32
/// loads at once and leaves a 32nd of the tensors. So 100,000 take four steps instead of 17.
__device__ inline std::uint64_t find_tensor_warp(const std::uint64_t* ends, std::uint64_t g, std::uint64_t low,
                                                 std::uint64_t high) {
  const std::uint32_t lane = lane_index();
  while (low < high) {
    const std::uint64_t step = (high - low) / 32 + 1;
    const std::uint64_t part_end = low + (lane + 1) * step - 1;  // of 32 equal parts, cut off at `high`
    const std::uint32_t after = __ballot_sync(~0u, part_end >= high || ends[part_end] > g);
    low += (__ffs(static_cast<int>(after)) - 1) * step;
    if (high - low >= step) high = low + step - 1;
  }
  return low;
}

/// Does what `find_tensor_near` does by a warp: it looks at the 32 tensors from `low` on in one
/// coalesced load, then at all that are left.
__device__ inline std::uint64_t find_tensor_near_warp(const std::uint64_t* ends, std::uint64_t g, std::uint64_t low,
                                                      std::uint64_t last) {
  const std::uint64_t mine = low + lane_index();
  const std::uint32_t after = __ballot_sync(~0u, mine >= last || ends[mine] > g);
  if (after != 0) return low + __ffs(static_cast<int>(after)) - 1;
  return find_tensor_warp(ends, g, low + 32, last);
}

}  // namespace tmap::device
