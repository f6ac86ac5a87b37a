// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernel: each block walks its share of the tiles of all groups. One warp loads them, box by
// box, into a ring of stages that continues from tile to tile and from group to group. Four warps
// add up what arrives. `Maps` decides only where the maps come from (map_ways.cuh).

#include <tmap/device/acquire.cuh>
#include <tmap/device/ptx.cuh>
#include <tmap/device/stage_ring.cuh>
#include <tmap/device/tile_copy.cuh>

#include <cstdint>

#include "apps/samples/group_maps/group.hpp"
#include "apps/samples/group_maps/group_walk.cuh"
#include "apps/samples/group_maps/walk_arguments.cuh"

namespace group_maps {

inline constexpr std::uint32_t walk_threads = (consumer_warps + 1) * 32;

/// Runs in one warp. All lanes walk; one lane acquires, waits and loads, so it alone fills the
/// ring.
template <class Maps>
__device__ void load_groups(const walk_arguments& in, block_memory& memory) {
  using namespace tmap::device;
  Maps maps(in, memory);
  ring_producer<stages> producer(memory.barriers);
  acquired_map map = parameter_map(in.whole);
  for (group_walk walk(in.groups, in.groups.share(blockIdx.x, gridDim.x)); !walk.is_done(); walk.next_group()) {
    maps.make(walk.now());
    if (ptx::elect_one()) map = maps.acquire(walk.index());
    walk.read_ahead();  // after the acquire, which waits for all earlier reads
    for (std::uint32_t tile = walk.first_tile(); tile < walk.end_tile(); ++tile) {
      const auto row = static_cast<std::int32_t>(maps.first_row(walk.now()) + walk.row_of(tile));
      for (std::uint32_t column = 0; column < in.columns; column += box_columns) {
        if (!ptx::elect_one()) continue;
        const std::uint32_t stage = producer.acquire_stage();
        load_tile(memory.ring[stage], map, {static_cast<std::int32_t>(column), row}, producer.announce(box_bytes));
      }
    }
  }
}

/// Sums eight elements, two per word.
__device__ inline std::uint32_t sum_of(const uint4& chunk) {
  constexpr unsigned ones = 0x0101;  // one factor of 1 per element of a word, as bytes
  return __dp2a_lo(chunk.x, ones, __dp2a_lo(chunk.y, ones, __dp2a_lo(chunk.z, ones, __dp2a_lo(chunk.w, ones, 0u))));
}

/// Adds the warp's rows of a box, four rows at a time. The first `rows` rows of the box belong to
/// the group.
__device__ inline void add_box(part_sum& sum, const unsigned char* box, std::uint32_t rows) {
  constexpr std::uint32_t row_chunks = row_bytes / sizeof(uint4);
  constexpr std::uint32_t rows_at_once = 32 / row_chunks;
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t first = threadIdx.x / 32 * warp_rows + lane / row_chunks;
#pragma unroll
  for (std::uint32_t i = 0; i < warp_rows; i += rows_at_once) {
    const std::uint32_t row = first + i;
    const std::uint32_t chunk = sum_of(reinterpret_cast<const uint4*>(box)[row * row_chunks + lane % row_chunks]);
    sum.elements += row < rows ? chunk : 0;
    sum.foreign_chunks += row >= rows && chunk != 0 ? 1 : 0;
  }
}

/// Runs in each consuming warp.
__device__ inline void sum_groups(const walk_arguments& in, block_memory& memory) {
  tmap::device::ring_consumer<stages> consumer(memory.barriers);
  for (group_walk walk(in.groups, in.groups.share(blockIdx.x, gridDim.x)); !walk.is_done(); walk.next_group()) {
    walk.read_ahead();
    for (std::uint32_t tile = walk.first_tile(); tile < walk.end_tile(); ++tile) {
      const std::uint32_t rows = walk.now().rows - walk.row_of(tile);
      part_sum sum{};
      for (std::uint32_t column = 0; column < in.columns; column += box_columns) {
        add_box(sum, memory.ring[consumer.wait_full()], rows);
        consumer.release_warp();
      }
      sum = {__reduce_add_sync(~0u, sum.elements), __reduce_add_sync(~0u, sum.foreign_chunks)};
      if (threadIdx.x % 32 == 0) in.sums[tile * consumer_warps + threadIdx.x / 32] = sum;
    }
  }
}

template <class Maps>
__global__ void __launch_bounds__(walk_threads) walk_groups(const __grid_constant__ walk_arguments in) {
  extern __shared__ __align__(128) unsigned char dynamic[];
  block_memory& memory = *reinterpret_cast<block_memory*>(dynamic);
  if (threadIdx.x == 0) memory.barriers.init(stages, consumer_warps);
  __syncthreads();
  if (threadIdx.x / 32 == consumer_warps) {
    load_groups<Maps>(in, memory);
  } else {
    sum_groups(in, memory);
  }
}

}  // namespace group_maps
