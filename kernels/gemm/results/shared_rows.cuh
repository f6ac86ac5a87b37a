// SPDX-License-Identifier: Apache-2.0
#pragma once

// Joins the results of two warps in a tile of 64 rows. Each consumer has half of its columns there,
// so the i-th warps of both have the same 16 rows. After a gate each has 64 of the 128 results of a
// row that share a scale.

#include <cstdint>

#include "kernels/gemm/results/staging.cuh"
#include "kernels/gemm/tile_math.hpp"

namespace tmap::kernels {

/// One of the two warps that have the same rows. Both come to every meeting, also one without
/// columns, because both have the same number of rows. Their meetings are barriers 1 to 4.
class row_partner {
 public:
  /// `tiles` are this warp's staging tiles. Those of the partner lie `consumer_tiles` before or
  /// after them.
  __device__ explicit row_partner(unsigned char* tiles) : tiles_(tiles) {}

  __device__ bool is_second() const { return threadIdx.x >= warpgroup_warps * 32; }

  /// Waits for the partner. What both wrote to shared memory before is then known to both.
  __device__ void meet() const { __barrier_sync_count(1 + threadIdx.x / 32 % warpgroup_warps, 2 * 32); }

  /// Sets `largest` to the larger ones of both warps, lane by lane. The second staging tiles pass
  /// the numbers on, so no store may read those of this warp. They are free after the next meeting.
  __device__ void join(std::uint32_t (&largest)[2]) const {
    const std::uint32_t lane = threadIdx.x % 32;
    reinterpret_cast<uint2*>(tiles_ + strip_bytes)[lane] = make_uint2(largest[0], largest[1]);
    meet();
    const uint2 other = reinterpret_cast<const uint2*>(partner_tiles() + strip_bytes)[lane];
    largest[0] = max(largest[0], other.x);
    largest[1] = max(largest[1], other.y);
  }

  /// Returns the tile in which both stage their results: the first one of the first warp.
  __device__ unsigned char* common_tile() const { return is_second() ? partner_tiles() : tiles_; }

 private:
  static constexpr std::uint32_t warpgroup_warps = 4;
  static constexpr std::uint32_t consumer_tiles = warpgroup_warps * staged_results * strip_bytes;

  __device__ unsigned char* partner_tiles() const {
    return is_second() ? tiles_ - consumer_tiles : tiles_ + consumer_tiles;
  }

  unsigned char* tiles_;
};

}  // namespace tmap::kernels
