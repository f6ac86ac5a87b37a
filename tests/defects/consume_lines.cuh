// SPDX-License-Identifier: Apache-2.0
#pragma once

// Consumes whole batches of lines with one warp per map.

#include <tmap/map_batch.hpp>

#include "defects/tagged_lines.hpp"
#include "defects/tagged_tile.cuh"

namespace tmap::testing {

inline constexpr std::uint32_t consumer_warps = 8;

/// Holds what consumers counted, in device memory.
struct consumed_lines {
  device_count tiles;
  device_count foreign;  ///< counts elements
};

struct line_batch {
  map_batch_ref ref;
  const line_use* uses;
};

__device__ inline void spin(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

/// Loads map `i` of the batch and counts foreign elements. All lanes of a warp call it.
__device__ inline void consume_line(const map_batch_ref& ref, std::uint32_t i, line_use use,
                                    tile_reader<line_elements>& reader, consumed_lines* found) {
  const std::int32_t at[] = {0};
  reader.load([&] { return device::acquire(ref, i); }, at);
  const std::uint32_t foreign = reader.foreign([&](std::uint32_t e) { return e < use.dim ? use.tag : 0; });
  if (reader.lane() != 0) return;
  atomicAdd(&found->tiles, 1);
  if (foreign != 0) atomicAdd(&found->foreign, foreign);
}

/// Consumes maps `begin` to `end` of the two batches, one batch for each y of the grid, with blocks
/// of `Warps` warps.
template <std::uint32_t Warps>
__global__ void consume_lines(line_batch first, line_batch second, std::uint32_t begin, std::uint32_t end,
                              consumed_lines* found) {
  __shared__ tagged_tile<line_elements> tiles[Warps];
  const std::uint32_t warp = threadIdx.x / warpSize;
  const std::uint32_t i = begin + blockIdx.x * Warps + warp;
  if (i >= end) return;
  const line_batch& batch = blockIdx.y == 0 ? first : second;
  tile_reader<line_elements> reader(tiles[warp]);
  consume_line(batch.ref, i, batch.uses[i], reader, found);
}

inline void launch_consume_lines(const line_batch& batch, std::uint32_t begin, std::uint32_t end, consumed_lines* found,
                                 cudaStream_t stream) {
  const std::uint32_t blocks = (end - begin + consumer_warps - 1) / consumer_warps;
  consume_lines<consumer_warps><<<blocks, consumer_warps * 32, 0, stream>>>(batch, {}, begin, end, found);
}

}  // namespace tmap::testing
