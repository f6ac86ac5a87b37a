// SPDX-License-Identifier: Apache-2.0
#pragma once

// Implements the device side of the recycling test. It fills tensors with the tag of their batch,
// and a consumer looks for that tag. A map's tensor follows from the batch's `serial` and the map's
// index alone.

#include <tmap/map_batch.hpp>
#include <tmap/map_patch.hpp>

#include "defects/consume_lines.cuh"

namespace tmap::testing {

inline constexpr std::uint32_t most_maps = 512;

/// Describes a batch by its tensors and patches, at most `most_maps` of each.
struct recycled_batch {
  std::uint32_t* tensors;
  map_patch* patches;
  std::uint32_t serial;
  std::uint32_t count;
};

/// Returns a different tag for any two maps of any two batches in flight.
__host__ __device__ inline line_use use_of(std::uint32_t serial, std::uint32_t i) {
  const std::uint32_t name = serial * most_maps + i;
  return {name + 1, 1 + (name * 2654435761u >> 27)};
}

/// Fills each tensor to its end, past the dim of its map, and writes the patch. Each warp takes one
/// tensor.
static __global__ void fill_batch(recycled_batch batch) {
  const std::uint32_t i = blockIdx.x * consumer_warps + threadIdx.x / warpSize;
  const std::uint32_t lane = threadIdx.x % warpSize;
  if (i >= batch.count) return;
  std::uint32_t* const tensor = batch.tensors + i * line_elements;
  const line_use use = use_of(batch.serial, i);
  tensor[lane] = use.tag;
  if (lane != 0) return;
  batch.patches[i].global_address = reinterpret_cast<std::uint64_t>(tensor);
  batch.patches[i].global_dim[0] = use.dim;
}

/// Consumes each map with one warp. It waits `hold` cycles first, so that slots that are lent too
/// early have time to be written.
static __global__ void consume_batch(map_batch_ref ref, std::uint32_t serial, std::uint32_t count, long long hold,
                                     consumed_lines* found) {
  __shared__ tagged_tile<line_elements> tiles[consumer_warps];
  const std::uint32_t warp = threadIdx.x / warpSize;
  const std::uint32_t i = blockIdx.x * consumer_warps + warp;
  if (i >= count) return;
  spin(hold);
  tile_reader<line_elements> reader(tiles[warp]);
  consume_line(ref, i, use_of(serial, i), reader, found);
}

inline std::uint32_t blocks_of(std::uint32_t count) {
  return (count + consumer_warps - 1) / consumer_warps;
}

}  // namespace tmap::testing
