// SPDX-License-Identifier: Apache-2.0
#pragma once

// Takes gates through the epilogue: makes results of gates and values, stores the sums as they were
// before, and stores the gradients of both.

#include <tmap/device/acquire.cuh>
#include <tmap/device/ptx.cuh>
#include <tmap/grouped_gemm.hpp>

#include <cstdint>

#include "kernels/gemm/gemm_group.hpp"
#include "kernels/gemm/results/gates.cuh"
#include "kernels/gemm/results/quarters.cuh"
#include "kernels/gemm/results/staging.cuh"
#include "kernels/gemm/results/staging_tiles.cuh"
#include "kernels/gemm/results/thread_results.cuh"
#include "kernels/gemm/tile_math.hpp"

namespace tmap::kernels {

/// Makes results of gates and values. They take the first half of the sums, in the order `singles`
/// if gates and values are interleaved.
template <std::uint32_t Count>
__device__ void apply_gates(float (&sums)[Count], const gemm_shape& shape, const result_place& place) {
  const gate_maths maths(shape.results.with.gate);
  constexpr std::uint32_t quarters = Count / quarter_sums / 2;
#pragma unroll 1
  for (std::uint32_t i = 0; i < quarters; ++i) {
    if (place.column + i * quarter_columns >= place.columns) break;
    float gates[quarter_sums];
    float values[quarter_sums];
    if (shape.values == 0) {
      take_separated(gates, values, sums, i);
    } else {
      take(gates, sums, i);
      take(values, sums, i + quarters);
    }
    maths.apply(gates, values);
    put(sums, i, gates);
  }
}

/// Returns the group's second map of results, acquired by the thread that stores. It is acquired
/// for each tile, because no register is left to keep it. `filler` is any map.
__device__ inline device::acquired_map acquire_second(const device::acquired_map& filler, const gemm_shape& shape,
                                                      std::uint32_t group) {
  device::acquired_map second = filler;
  if (device::ptx::elect_one()) second = device::acquire(shape.scratch.second + group);
  return second;
}

/// Stores the sums before the gate, by pieces of 64 columns of B. `map` is that of the results.
template <gemm::operand_type Type, bool Scatters, std::uint32_t Count>
__device__ void store_kept(staging_tiles& tiles, const device::acquired_map& map,
                           const thread_results<Type, Scatters>& results, const float (&sums)[Count], std::uint32_t row,
                           const gemm_shape& shape, const gemm_group& record, const result_place& place) {
  const device::acquired_map second = acquire_second(map, shape, place.group);
#pragma unroll 1
  for (std::uint32_t piece = 0; piece < Count / piece_sums; ++piece) {
    const std::uint32_t column = results.template column_of_b<Count>(piece * 8, place);
    const bool is_gate = shape.values != 0 && piece < Count / piece_sums / 2;
    if (column >= (is_gate ? shape.values : record.n)) continue;
    unsigned char* const tile = tiles.take();
    stage_piece<Type>(tile, sums, piece);
    staging_tiles::store(second, tile, column, row);
  }
}

/// Stages packed gates and values in a tile each.
__device__ inline void stage_apart(const staging_tiles& tiles, std::uint32_t unit, const uint2 (&words)[8]) {
  packed_pairs gates;
  packed_pairs values;
#pragma unroll
  for (std::uint32_t i = 0; i < 8; ++i) {
    gates[i] = words[i].x;
    values[i] = words[i].y;
  }
  stage_packed(tiles.first(), unit, gates);
  stage_packed(tiles.second(), unit, values);
}

/// Stores the gradients of gates and values. Interleaved, those of 32 results fill a tile. Else
/// those of 64 results fill both tiles.
template <gemm::operand_type Type, bool Scatters, std::uint32_t Count>
__device__ void store_gradients(staging_tiles& tiles, const device::acquired_map& map,
                                const thread_results<Type, Scatters>& results, const float (&sums)[Count],
                                std::uint32_t row, const gemm_shape& shape, const result_place& place) {
  const bool is_interleaved = shape.results.with.gate.columns == gemm::gate_columns::interleaved;
  const device::acquired_map second = is_interleaved ? map : acquire_second(map, shape, place.group);
  uint2 next[8];
  results.read_kept(next, place.column);
#pragma unroll 1
  for (std::uint32_t i = 0; i < Count / quarter_sums; ++i) {
    const std::uint32_t column = place.column + i * quarter_columns;
    if (column >= place.columns) break;
    uint2 words[8];
#pragma unroll
    for (std::uint32_t j = 0; j < 8; ++j) words[j] = next[j];
    results.read_kept(next, column + quarter_columns);
    float quarter[quarter_sums];
    take(quarter, sums, i);
    results.differentiate(words, quarter);
    if (is_interleaved) {
      unsigned char* const tile = tiles.take();
      stage_wide(tile, words);
      staging_tiles::store(map, tile, column * 2, row);
      continue;
    }
    const std::uint32_t unit = i % 2 * 4;
    if (unit == 0) staging_tiles::wait<0>();
    stage_apart(tiles, unit, words);
    if (unit == 0 && column + quarter_columns < place.columns) continue;
    const std::uint32_t first = column / piece_lines * piece_lines;
    staging_tiles::store(map, tiles.first(), first, row);
    staging_tiles::store(second, tiles.second(), first, row);
  }
}

}  // namespace tmap::kernels
