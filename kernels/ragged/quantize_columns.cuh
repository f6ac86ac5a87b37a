// SPDX-License-Identifier: Apache-2.0
#pragma once

// Quantizes blocks of 128 x 1, and exchanges rows and columns.
//
// A warp loads tiles of 128 rows ahead into shared memory of its own, row by row. It reads them
// column by column: a lane takes 16 bytes of each of 16 rows. Eight lanes then have all rows of
// their columns and find their scales by shuffles. The 16 results that a lane has of a column are
// 16 bytes of a row of the destination, and those of the eight lanes are a line of memory. So
// nothing is exchanged afterwards.

#include "kernels/ragged/quantize_walk.cuh"
#include "kernels/ragged/transpose_squares.cuh"

#include <cstdint>

namespace tmap::kernels {

inline constexpr std::uint32_t column_threads = 128;
inline constexpr std::uint32_t column_warps = column_threads / 32;
inline constexpr std::uint32_t column_blocks = 2;  ///< a multiprocessor
inline constexpr std::uint32_t lane_rows = sizeof(uint4);
inline constexpr std::uint32_t column_lanes = width / lane_rows;   ///< that share a column
inline constexpr std::uint32_t units_across = 32 / column_lanes;   ///< of 16 bytes, of a row of a tile
inline constexpr std::uint32_t tile_units = width * units_across;  ///< of a tile
inline constexpr std::uint32_t column_ring_bytes = column_warps * ring_sets * tile_units * sizeof(uint4);

/// The values in 16 bytes.
template <value_type From>
inline constexpr std::uint32_t unit_values = sizeof(uint4) / sizeof(value_word<From>);

template <value_type From>
TMAP_HOST_DEVICE constexpr box_extents column_tile() {
  return {units_across * unit_values<From>, width};
}

/// Returns the place of 16 bytes in a tile. Neighbouring lanes use different banks: when they load,
/// they have units next to each other, and when they read, rows 16 apart.
__device__ inline std::uint32_t unit_place(std::uint32_t row, std::uint32_t unit) {
  return (row * units_across + unit) ^ row / lane_rows;
}

/// Returns how many of `most` elements from `first` on are below `end`.
__device__ inline std::uint32_t count_below(std::uint32_t first, std::uint32_t end, std::uint32_t most) {
  return first < end ? min(end - first, most) : 0;
}

/// Starts to load a tile. Rows and values that do not exist become 0.
template <value_type From>
__device__ void load_tile_of_columns(const scaled_rows& given, uint4* tile) {
  constexpr std::uint32_t rows_at_once = 32 / units_across;
  constexpr std::uint32_t turns = width / rows_at_once;
  const scaled_rows part = given;
  const std::uint32_t unit = threadIdx.x % units_across;
  const std::uint32_t first = threadIdx.x % 32 / units_across;
  const auto columns = static_cast<std::uint32_t>(part.columns);
  const std::uint32_t count = count_below(unit * unit_values<From>, columns, unit_values<From>);
  const std::uint64_t begin = part.source + first * part.source_pitch + unit * sizeof(uint4);
  const auto address = [&](std::uint32_t turn) { return begin + turn * (rows_at_once * part.source_pitch); };
  const std::uint64_t bits = part.source | (part.rows > 1 ? part.source_pitch : 0);
  if (bits % sizeof(uint4) == 0 && columns % unit_values<From> == 0) {
#pragma unroll
    for (std::uint32_t turn = 0; turn < turns; ++turn) {
      const std::uint32_t row = turn * rows_at_once + first;
      const bool exists = row < part.rows && count != 0;
      device::copy_async_zero_filled<sizeof(uint4)>(
          tile + unit_place(row, unit), reinterpret_cast<const uint4*>(address(turn)), exists ? sizeof(uint4) : 0);
    }
  } else {
#pragma unroll 4
    for (std::uint32_t turn = 0; turn < turns; ++turn) {
      const std::uint32_t row = turn * rows_at_once + first;
      chunk<From, unit_values<From>> loaded;
      loaded.template load<false>(address(turn), row < part.rows ? count : 0);
      tile[unit_place(row, unit)] = loaded.unit(0);
    }
  }
}

/// Quantizes a loaded tile and stores it.
template <value_type From, value_type To>
__device__ void finish_tile_of_columns(const scaled_rows& given, const uint4* tile, bool powers_of_two) {
  constexpr std::uint32_t values = unit_values<From>;
  constexpr std::uint32_t lanes_each = column_lanes / values;  // that have the scale of a column
  const scaled_rows part = given;
  const std::uint32_t group = threadIdx.x % column_lanes;
  const std::uint32_t unit = threadIdx.x % 32 / column_lanes;
  chunk<From, values> held[lane_rows];
  chunk<From, values> most{};
#pragma unroll
  for (std::uint32_t k = 0; k < lane_rows; ++k) {
    held[k].set_unit(0, tile[unit_place(group * lane_rows + k, unit)]);
    most.raise_to(held[k]);
  }
  std::uint32_t tops[values];
#pragma unroll
  for (std::uint32_t c = 0; c < values; ++c) tops[c] = most.magnitude(c);
  const auto made = scale_of_top<From, To>(join_tops_of_blocks<column_lanes>(tops), powers_of_two);
  const auto columns = static_cast<std::uint32_t>(part.columns);
  const std::uint32_t scaled = unit * values + block_of_lane<values, column_lanes>();
  if (group % lanes_each == 0 && scaled < columns) {
    *reinterpret_cast<float*>(part.scales + scaled * part.scale_step) = made.scale;
  }
  const std::uint32_t rows = count_below(group * lane_rows, part.rows, lane_rows);
  const bool is_whole = rows == lane_rows && (part.destination | part.destination_pitch) % sizeof(uint4) == 0;
  std::uint64_t to = part.destination + unit * values * part.destination_pitch + group * lane_rows;
#pragma unroll
  for (std::uint32_t c = 0; c < values; ++c, to += part.destination_pitch) {
    const float factor = __shfl_sync(~0u, made.inverse, unit * column_lanes + c * lanes_each);
    std::uint32_t words[lane_rows / 4];
#pragma unroll
    for (std::uint32_t w = 0; w < lane_rows / 4; ++w) {
      const std::uint32_t low = f8_pair<To>(held[4 * w][c] * factor, held[4 * w + 1][c] * factor);
      const std::uint32_t high = f8_pair<To>(held[4 * w + 2][c] * factor, held[4 * w + 3][c] * factor);
      words[w] = low | high << 16;
    }
    const uint4 line = make_uint4(words[0], words[1], words[2], words[3]);
    if (unit * values + c >= columns) continue;
    if (is_whole) {
      *reinterpret_cast<uint4*>(to) = line;
    } else {
      store_begin<1>(to, line, rows);
    }
  }
}

/// The shared memory of a warp next to its tiles.
struct column_shared {
  planned_tensor record;
  scaled_rows parts[ring_sets];  ///< of the tiles in the ring; after the last one: without rows
};

template <value_type From, value_type To>
__global__ void __launch_bounds__(column_threads, column_blocks)
    quantize_columns_kernel(const __grid_constant__ planned_work work, bool powers_of_two) {
  extern __shared__ uint4 places[];
  __shared__ column_shared shared[column_warps];
  const std::uint32_t warp = threadIdx.x / 32;
  column_shared& own = shared[warp];
  uint4* const ring = places + warp * ring_sets * tile_units;
  cudaGridDependencySynchronize();
  const piece_steps pieces = pieces_of(work, blockIdx.x * column_warps + warp, gridDim.x * column_warps);
  piece_walk walk(work, &own.record, pieces.step);
  std::uint64_t next = pieces.first;
  std::uint32_t set = 0;
#pragma unroll 1
  for (std::uint32_t turn = 0;; ++turn, next += pieces.step) {
    scaled_rows& part = own.parts[set];
    if (next < pieces.last) {
      walk.go_to(next);
      const row_range range = box_range(walk.tensor(), walk.within(next), column_tile<From>());
      set_part<From, true>(part, work, walk.tensor(), range, {1, width});
      load_tile_of_columns<From>(part, ring + set * tile_units);
    } else {
      if (threadIdx.x % 32 == 0) part.rows = 0;
      __syncwarp();
    }
    device::commit_copies();
    set = set + 1 == ring_sets ? 0 : set + 1;  // the oldest one
    if (turn < sets_ahead) continue;
    if (own.parts[set].rows == 0) return;
    device::wait_copies<sets_ahead>();
    __syncwarp();
    finish_tile_of_columns<From, To>(own.parts[set], ring + set * tile_units, powers_of_two);
    __syncwarp();
  }
}

}  // namespace tmap::kernels
