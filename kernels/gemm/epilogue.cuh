// SPDX-License-Identifier: Apache-2.0
#pragma once

// Takes sums in registers to C: applies the epilogue, rounds, and stores through a map that ends
// where the group ends. Each warp works by itself, so that none waits for another. It stores 16
// rows of 128 bytes at a time through one of two staging tiles, so that a store is under way while
// the next piece is staged.
//
// Sums that are only rounded to 16 bits take a straight way. All else takes loops over quarters, 32
// columns each, which are not unrolled: their code exists once for all sums. Where an index names
// the rows of C, the warp stores its staging tile itself, without a map.
//
// One kind of results needs two warps: e4m3 of gates in a tile of 64 rows, of which each consumer
// has half of the columns that share a scale (results/shared_rows.cuh).

#include <tmap/device/acquire.cuh>
#include <tmap/device/ptx.cuh>
#include <tmap/device/tile_copy.cuh>
#include <tmap/grouped_gemm.hpp>

#include <cstdint>

#include "kernels/gemm/gemm_group.hpp"
#include "kernels/gemm/results/gated_results.cuh"
#include "kernels/gemm/results/indexed_rows.cuh"
#include "kernels/gemm/results/quarters.cuh"
#include "kernels/gemm/results/scaled_results.cuh"
#include "kernels/gemm/results/staging.cuh"
#include "kernels/gemm/results/staging_tiles.cuh"
#include "kernels/gemm/results/thread_results.cuh"
#include "kernels/gemm/tile_math.hpp"

namespace tmap::kernels {

/// One warp's stores. It acquires the maps of C after the main loop, when the stores of the
/// previous tile have long read their staging tiles. If `Scatters`, an index names the rows of C.
/// Then there are no results of 8 bits and no gradients of gates.
template <bool Scatters>
class result_store {
 public:
  /// `filler` is any map that is a parameter.
  __device__ result_store(const gemm_shape& shape, const tensor_map& filler, unsigned char* tiles)
      : map_(device::parameter_map(filler)), tiles_(tiles), only_rounds_(only_rounds(shape.results)) {}

  /// Without `HasEpilogue`, sums are at most added to what C held, and C is not e4m3.
  template <gemm::operand_type Type, bool HasEpilogue, std::uint32_t Count>
  __device__ void write(float (&sums)[Count], const gemm_shape& shape, const gemm_group& record, result_place place) {
    const std::uint32_t row = place.row + threadIdx.x / 32 % 4 * strip_rows;
    if (row >= record.m) return;
    if constexpr (Scatters) {
      finish<Type, HasEpilogue>(sums, row, shape, record, place);
      if (place.column == 0) report_targets(shape.c_rows, record, row);
    } else {
      if (acquired_ != place.group) {
        acquired_ = place.group;
        if (device::ptx::elect_one()) map_ = device::acquire(shape.scratch.c + acquired_);
      }
      if (only_rounds_ || finish<Type, HasEpilogue>(sums, row, shape, record, place)) {
        store_rounded<Type>(sums, row, record, place);
      }
    }
  }

  __device__ void finish() const {
    if (device::ptx::elect_one()) device::wait_stores_written();
  }

 private:
  static __device__ bool only_rounds(const result_work& work) {
    const gemm::epilogue& with = work.with;
    return with.row_scales == nullptr && with.column_scales == nullptr && with.bias == nullptr &&
           with.gate.function == gemm::gate_function::none && !work.accumulates &&
           work.type == gemm::result_type::like_operands;
  }

  template <gemm::operand_type Type, std::uint32_t Count>
  __device__ void store_rounded(const float (&sums)[Count], std::uint32_t row, const gemm_group& record,
                                const result_place& place) {
    const bool has_map = has_whole_units(record, place);
#pragma unroll
    for (std::uint32_t piece = 0; piece < Count / piece_sums; ++piece) {
      const std::uint32_t column = place.column + piece * piece_lines;
      if (column >= place.columns) continue;
      unsigned char* const tile = tiles_.take();
      float half[2][quarter_sums];
#pragma unroll
      for (std::uint32_t i = 0; i < piece_sums; ++i)
        half[i / quarter_sums][i % quarter_sums] = sums[piece * piece_sums + i];
      stage_pairs<Type>(tile, 0, half[0]);
      stage_pairs<Type>(tile, 4, half[1]);
      if (has_map) {
        staging_tiles::store(map_, tile, column, row);
      } else {
        store_elements(tile, column, row, record, place);
      }
    }
  }

  /// Returns whether the group's rows of C begin and end where stores through maps can. Only those
  /// of a `column_problem` may not.
  static __device__ bool has_whole_units(const gemm_group& record, const result_place& place) {
    constexpr std::uint32_t unit_bytes = 16;
    return (record.c % unit_bytes | place.columns * sizeof(std::uint16_t) % unit_bytes) == 0;
  }

  /// Stores what a staged tile has of the group, element by element.
  static __device__ void store_elements(const unsigned char* tile, std::uint32_t column, std::uint32_t row,
                                        const gemm_group& record, const result_place& place) {
    __syncwarp();
    for (std::uint32_t i = threadIdx.x % 32; i < strip_rows * piece_lines; i += 32) {
      const std::uint32_t tile_row = i / piece_lines;
      const std::uint32_t tile_column = i % piece_lines;
      if (row + tile_row >= record.m || column + tile_column >= place.columns) continue;
      const std::uint32_t byte = tile_column * sizeof(std::uint16_t);
      const auto* const from =
          reinterpret_cast<const std::uint16_t*>(tile + swizzled_unit(tile_row, byte / 16) + byte % 16);
      auto* const to = reinterpret_cast<std::uint16_t*>(record.c + (row + tile_row) * record.c_pitch) + column;
      to[tile_column] = *from;
    }
    staging_tiles::commit_empty();
  }

  /// Applies the epilogue. Returns true if the results then only need rounding, in order, to 16
  /// bits. Else they are stored.
  template <gemm::operand_type Type, bool HasEpilogue, std::uint32_t Count>
  __device__ bool finish(float (&sums)[Count], std::uint32_t row, const gemm_shape& shape, const gemm_group& record,
                         result_place& place) {
    const result_work& work = shape.results;
    const gemm::gate& gate = work.with.gate;
    using thread_sums = thread_results<Type, Scatters>;
    if constexpr (HasEpilogue) thread_sums(shape, record, place).apply_terms(sums, place);
    result_order order = result_order::pairs;
    if (HasEpilogue && gate.function != gemm::gate_function::none) {
      if constexpr (!Scatters) {
        if (gate.backward) {
          store_gradients(tiles_, map_, thread_sums(shape, record, place), sums, row, shape, place);
          return false;
        }
      }
      if (has_second_results(gate))
        store_kept(tiles_, map_, thread_sums(shape, record, place), sums, row, shape, record, place);
      // The results take half of the sums.
      place.columns = min(place.columns, place.column + Count);
      apply_gates(sums, shape, place);
      if (gate.columns == gemm::gate_columns::interleaved) order = result_order::singles;
    }
    const thread_sums results(shape, record, place);
    if constexpr (!Scatters) {
      if (HasEpilogue && work.type == gemm::result_type::f8_e4m3) {
        store_e4m3(tiles_, map_, results, sums, row, place, order, gate.function != gemm::gate_function::none);
        return false;
      }
    }
    if (work.type == gemm::result_type::f32) {
      store_f32(sums, row, shape, record, place, order);
      return false;
    }
    if (order == result_order::singles) {
      store_singles(results, sums, row, shape, record, place);
      return false;
    }
    if (work.accumulates) results.add_old(sums, place);
    if constexpr (Scatters) store_pairs<Type>(sums, row, shape, record, place);
    return !Scatters;
  }

  /// Stores results of 16 bits in the rows that an index names.
  template <gemm::operand_type Type, std::uint32_t Count>
  __device__ void store_pairs(const float (&sums)[Count], std::uint32_t row, const gemm_shape& shape,
                              const gemm_group& record, const result_place& place) {
#pragma unroll 1
    for (std::uint32_t piece = 0; piece < Count / piece_sums; ++piece) {
      const std::uint32_t column = place.column + piece * piece_lines;
      if (column >= place.columns) break;
      unsigned char* const tile = tiles_.take();
      stage_piece<Type>(tile, sums, piece);
      store_indexed(tile, {column, place.columns, sizeof(std::uint16_t)}, row, shape, record);
    }
  }

  /// A staged tile has 32 columns.
  template <std::uint32_t Count>
  __device__ void store_f32(const float (&sums)[Count], std::uint32_t row, const gemm_shape& shape,
                            const gemm_group& record, const result_place& place, result_order order) {
    const bool accumulates = shape.results.accumulates;
#pragma unroll 1
    for (std::uint32_t i = 0; i < Count / quarter_sums; ++i) {
      const std::uint32_t column = place.column + i * quarter_columns;
      if (column >= place.columns) break;
      float quarter[quarter_sums];
      take(quarter, sums, i);
      unsigned char* const tile = tiles_.take();
      stage_f32(tile, quarter, order);
      if constexpr (Scatters) {
        store_indexed(tile, {column, place.columns, sizeof(float)}, row, shape, record);
      } else if (accumulates) {
        staging_tiles::add(map_, tile, column, row);
      } else {
        staging_tiles::store(map_, tile, column, row);
      }
    }
  }

  /// Stores results of interleaved gates. A staged tile has 64 columns.
  template <gemm::operand_type Type, std::uint32_t Count>
  __device__ void store_singles(const thread_results<Type, Scatters>& results, const float (&sums)[Count],
                                std::uint32_t row, const gemm_shape& shape, const gemm_group& record,
                                const result_place& place) {
    const bool accumulates = shape.results.accumulates;
    unsigned char* tile = nullptr;
#pragma unroll 1
    for (std::uint32_t i = 0; i < Count / quarter_sums; ++i) {
      const std::uint32_t column = place.column + i * quarter_columns;
      if (column >= place.columns) break;
      const bool is_first = i % 2 == 0;
      float quarter[quarter_sums];
      take(quarter, sums, i);
      if (accumulates) results.add_old_singles(quarter, column, place.columns);
      if (is_first) tile = tiles_.take();
      stage_singles<Type>(tile, is_first ? 0 : swizzle_bytes / 2, quarter);
      if (is_first && column + quarter_columns < place.columns) continue;
      const std::uint32_t first = column - (is_first ? 0 : quarter_columns);
      if constexpr (Scatters) {
        store_indexed(tile, {first, place.columns, sizeof(std::uint16_t)}, row, shape, record);
      } else {
        staging_tiles::store(map_, tile, first, row);
      }
    }
  }

  /// Stores a tile in the rows that an index names. f32 is added to them if C's old content counts,
  /// which 16 bits already have.
  static __device__ void store_indexed(const unsigned char* tile, const staged_columns& columns, std::uint32_t row,
                                       const gemm_shape& shape, const gemm_group& record) {
    const bool adds = shape.results.accumulates && columns.bytes == sizeof(float);
    store_rows(shape.c_rows, record, tile, row, columns, adds);
    staging_tiles::commit_empty();
  }

  device::acquired_map map_;
  std::uint32_t acquired_{~0u};
  staging_tiles tiles_;
  bool only_rounds_;
};

}  // namespace tmap::kernels
