// SPDX-License-Identifier: Apache-2.0
#pragma once

// One thread's sums of a tile, and what is added to them or multiplied before they are rounded.

#include <tmap/detail/quantization.hpp>
#include <tmap/grouped_gemm.hpp>

#include <cstdint>

#include "kernels/gemm/gemm_group.hpp"
#include "kernels/gemm/results/gates.cuh"
#include "kernels/gemm/results/quarters.cuh"
#include "kernels/gemm/results/result_pair.cuh"
#include "kernels/gemm/results/staging.cuh"
#include "kernels/gemm/tile_math.hpp"

namespace tmap::kernels {

/// The place in the group's C at which a warpgroup's part of a tile begins.
struct result_place {
  std::uint32_t group;
  std::uint32_t row;
  std::uint32_t column;
  std::uint32_t columns;  ///< at which the results of a row end
};

/// Knows the rows and columns of a thread's sums: rows `row` and `row` + 8, and two of each eight
/// columns. For places past the end of C the thread reads a place within, so that no load of a
/// piece waits for a branch. Their results are not stored. If `Scatters`, an index names the rows
/// of C.
template <gemm::operand_type Type, bool Scatters>
class thread_results {
 public:
  __device__ thread_results(const gemm_shape& shape, const gemm_group& record, const result_place& place)
      : work_(shape.results),
        a_rows_(shape.a_rows),
        c_rows_(shape.c_rows),
        record_(record),
        first_row_(record.first_row),
        first_of_group_(std::uint64_t{place.group} * record.n),
        gates_(shape.values != 0 ? place.column : place.column * shape.per_result),
        values_(shape.values) {
    const std::uint32_t first = place.row + place_sum(threadIdx.x / 32 % 4, threadIdx.x % 32, 0).row;
#pragma unroll
    for (std::uint32_t half = 0; half < 2; ++half) {
      const std::uint32_t row = first + half * 8;
      row_[half] = row < record.m ? row : record.m - 1;
    }
  }

  /// Returns the column of B of the eight sums that begin at sum `4 * eight` of `Count`.
  template <std::uint32_t Count>
  __device__ std::uint32_t column_of_b(std::uint32_t eight, const result_place& place) const {
    const bool is_value = values_ != 0 && eight >= Count / 8;
    return (is_value ? values_ + place.column - Count : gates_) + eight * 8;
  }

  /// Multiplies the sums by factors and adds the bias.
  template <std::uint32_t Count>
  __device__ void apply_terms(float (&sums)[Count], const result_place& place) const {
    const gemm::epilogue& with = work_.with;
    if (with.row_scales != nullptr || with.column_scales != nullptr) {
      const float of_row[2] = {row_factor(0), row_factor(1)};
#pragma unroll
      for (std::uint32_t i = 0; i < Count; i += 4) {
        const std::uint64_t column = first_of_group_ + within(column_of_b<Count>(i / 4, place));
        const float2 of_column = with.column_scales == nullptr
                                     ? float2{1, 1}
                                     : *reinterpret_cast<const float2*>(with.column_scales + column);
        sums[i] *= of_row[0] * of_column.x;
        sums[i + 1] *= of_row[0] * of_column.y;
        sums[i + 2] *= of_row[1] * of_column.x;
        sums[i + 3] *= of_row[1] * of_column.y;
      }
    }
    if (with.bias != nullptr) {
#pragma unroll
      for (std::uint32_t i = 0; i < Count; i += 4) {
        const std::uint64_t column = first_of_group_ + within(column_of_b<Count>(i / 4, place));
        const auto* const bias = static_cast<const std::uint16_t*>(with.bias) + column;
        const float2 added = result_pair<Type>::unpack(*reinterpret_cast<const std::uint32_t*>(bias));
        sums[i] += added.x;
        sums[i + 1] += added.y;
        sums[i + 2] += added.x;
        sums[i + 3] += added.y;
      }
    }
  }

  /// Adds what C held, where C has 16 bits.
  template <std::uint32_t Count>
  __device__ void add_old(float (&sums)[Count], const result_place& place) const {
#pragma unroll
    for (std::uint32_t piece = 0; piece < Count / piece_sums; ++piece) {
      const std::uint32_t first = place.column + piece * piece_lines;
      if (first < place.columns) add_old_piece(sums + piece * piece_sums, first, place.columns);
    }
  }
  __device__ void add_old_singles(float (&results)[quarter_sums], std::uint32_t first, std::uint32_t columns) const {
    std::uint16_t old[quarter_sums];
#pragma unroll
    for (std::uint32_t i = 0; i < quarter_sums; ++i) {
      const std::uint32_t column = first + i / 2 * 4 + lane_column();
      old[i] = *reinterpret_cast<const std::uint16_t*>(c_at(i % 2, column < columns ? column : columns - 1));
    }
#pragma unroll
    for (std::uint32_t i = 0; i < quarter_sums; ++i) results[i] += result_pair<Type>::unpack(old[i]).x;
  }

  /// Reads the gates and values of 32 results that a gate kept. Without interleaving, word x of a
  /// pair is its gates and y its values. Interleaved, x is gate and value of the first and y those
  /// of the second.
  __device__ void read_kept(uint2 (&kept)[8], std::uint32_t first) const {
    const gemm::matrix& from = work_.with.gate.kept;
    const bool is_interleaved = work_.with.gate.columns == gemm::gate_columns::interleaved;
#pragma unroll
    for (std::uint32_t i = 0; i < 8; ++i) {
      const std::uint64_t row = from.address + (first_row_ + row_[i % 2]) * from.pitch_bytes;
      const std::uint64_t column = within(first + i / 2 * 8);
      if (is_interleaved) {
        kept[i] = *reinterpret_cast<const uint2*>(row + column * 2 * sizeof(std::uint16_t));
      } else {
        kept[i].x = *reinterpret_cast<const std::uint32_t*>(row + column * sizeof(std::uint16_t));
        kept[i].y = *reinterpret_cast<const std::uint32_t*>(row + (column + record_.n) * sizeof(std::uint16_t));
      }
    }
  }

  /// Turns what was kept into gradients, packed in the same way. `sums` are the gradients of the
  /// results.
  __device__ void differentiate(uint2 (&kept)[8], const float (&sums)[quarter_sums]) const {
    const gate_maths maths(work_.with.gate);
    const bool is_interleaved = work_.with.gate.columns == gemm::gate_columns::interleaved;
#pragma unroll
    for (std::uint32_t i = 0; i < 8; ++i) {
      const float2 x = result_pair<Type>::unpack(kept[i].x);
      const float2 y = result_pair<Type>::unpack(kept[i].y);
      const auto first = maths.differentiate(sums[i * 2], x.x, is_interleaved ? x.y : y.x);
      const auto second = maths.differentiate(sums[i * 2 + 1], is_interleaved ? y.x : x.y, y.y);
      kept[i].x = result_pair<Type>::pack(first.of_gate, is_interleaved ? first.of_value : second.of_gate);
      kept[i].y = result_pair<Type>::pack(is_interleaved ? second.of_gate : first.of_value, second.of_value);
    }
  }

  /// Sets `largest` to at least the magnitude of the results of each row half, in 32 columns of
  /// which `columns` are left. That is a multiple of 16. Magnitudes are compared as bits, so that a
  /// NaN is the largest.
  static __device__ void add_largest(std::uint32_t (&largest)[2], const float (&results)[quarter_sums],
                                     std::uint32_t columns, result_order order) {
    constexpr std::uint32_t magnitude = 0x7fffffff;
#pragma unroll
    for (std::uint32_t i = 0; i < quarter_sums; ++i) {
      const bool is_second = order == result_order::pairs ? i / 2 % 2 != 0 : i % 2 != 0;
      const bool is_within = i < quarter_sums / 2 || columns > quarter_columns / 2;
      const std::uint32_t size = is_within ? __float_as_uint(results[i]) & magnitude : 0;
      if (is_second) {
        largest[1] = max(largest[1], size);
      } else {
        largest[0] = max(largest[0], size);
      }
    }
  }

  __device__ bool has_given_scales() const {
    return work_.scales.are_given;
  }

  /// Sets `factors` to the reciprocals of the scales of the 128 results at `column`. Scales are
  /// given, or follow from the largest results and are written if `writes`.
  __device__ void find_scales(float (&factors)[2], const std::uint32_t (&largest)[2], const result_place& place,
                              std::uint32_t column, bool writes) const {
    constexpr float most = tmap::detail::largest_f8(ragged::value_type::f8_e4m3);
#pragma unroll
    for (std::uint32_t half = 0; half < 2; ++half) {
      if (has_given_scales()) {
        factors[half] = __frcp_rn(scale_at(row_[half], column));
        continue;
      }
      std::uint32_t most_of_row = largest[half];
      for (std::uint32_t step = 1; step < 4; step *= 2) {
        most_of_row = max(most_of_row, __shfl_xor_sync(~0u, most_of_row, step));
      }
      const float top = __uint_as_float(most_of_row);
      const tmap::detail::block_scale scale = tmap::detail::scale_of(top, most, work_.scales.are_powers_of_two);
      factors[half] = scale.inverse;
      const std::uint32_t row = place.row + place_sum(threadIdx.x / 32 % 4, threadIdx.x % 32, 0).row + half * 8;
      if (row >= record_.m || lane_column() != 0 || !writes) continue;
      scale_at(row, column) = scale.scale;
    }
  }

 private:
  __device__ float& scale_at(std::uint32_t row, std::uint32_t column) const {
    const gemm::result_scales& scales = work_.scales;
    return scales.values[(first_row_ + row) * scales.row_stride + column / gemm::scaled_results * scales.column_stride];
  }
  __device__ float row_factor(std::uint32_t half) const {
    const gemm::epilogue& with = work_.with;
    if (with.row_scales == nullptr) return 1;
    const std::uint32_t row = a_rows_.source(first_row_ + row_[half]);
    return row == no_row ? 1 : with.row_scales[row * with.row_scale_stride];
  }
  /// Returns this thread's column of the eight at `eight`, or its last if that is past the end.
  __device__ std::uint32_t within(std::uint32_t eight, std::uint32_t columns) const {
    const std::uint32_t column = eight + lane_column() * 2;
    return column < columns ? column : columns - 2;
  }
  __device__ std::uint32_t within(std::uint32_t eight) const {
    return within(eight, record_.n);
  }

  __device__ std::uint64_t c_at(std::uint32_t half, std::uint64_t column) const {
    return record_.c + c_row(half) * record_.c_pitch + column * sizeof(std::uint16_t);
  }
  /// Returns a row of C. For one that is not stored it is another.
  __device__ std::uint32_t c_row(std::uint32_t half) const {
    if constexpr (!Scatters) return row_[half];
    const std::uint32_t row = c_rows_.source(static_cast<std::uint32_t>(first_row_) + row_[half]);
    return row == no_row ? 0 : row;
  }

  __device__ void add_old_piece(float* sums, std::uint32_t first, std::uint32_t columns) const {
    std::uint32_t old[piece_sums / 2];
#pragma unroll
    for (std::uint32_t i = 0; i < piece_sums / 2; ++i) {
      old[i] = *reinterpret_cast<const std::uint32_t*>(c_at(i % 2, within(first + i / 2 * 8, columns)));
    }
#pragma unroll
    for (std::uint32_t i = 0; i < piece_sums; i += 2) {
      const float2 of = result_pair<Type>::unpack(old[i / 2]);
      sums[i] += of.x;
      sums[i + 1] += of.y;
    }
  }

  const result_work& work_;
  const row_index& a_rows_;
  const row_index& c_rows_;
  const gemm_group& record_;
  std::uint64_t first_row_;
  std::uint64_t first_of_group_;
  std::uint32_t gates_;
  std::uint32_t values_;
  std::uint32_t row_[2];
};

}  // namespace tmap::kernels
