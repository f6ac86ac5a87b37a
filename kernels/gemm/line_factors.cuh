// SPDX-License-Identifier: Apache-2.0
#pragma once

// The factors by which a consumer multiplies its sums of each 128 elements of K, where each row of
// A and each column of B has a scale.

#include <tmap/device/ptx.cuh>
#include <tmap/device/ptx_wgmma.cuh>
#include <tmap/grouped_gemm.hpp>

#include <cstdint>

#include "kernels/gemm/gemm_group.hpp"
#include "kernels/gemm/tile_math.hpp"
#include "kernels/gemm/tile_ring.cuh"

namespace tmap::kernels {

/// The factors of one thread's sums. They have two rows, and two of each eight columns. The lanes
/// of a warp hold the scales of all columns of its consumer, and pass them on by shuffles.
template <std::uint32_t Columns>
class line_factors {
 public:
  /// The first of the thread's rows and of its consumer's columns, in the group.
  struct place {
    std::uint32_t group;
    std::uint32_t first_k;
    std::uint32_t row;
    std::uint32_t last_row;
    std::uint32_t column;
    std::uint32_t last_pair;  ///< the last column but one
  };

  __device__ line_factors(const gemm::block_scales& a, const gemm::block_scales& b, const place& at)
      : a_(a),
        b_(b),
        columns_(first_scale(b, at.group, at.first_k)),
        column_(at.column + held_column(threadIdx.x % 32, 0)),
        last_pair_(at.last_pair) {
#pragma unroll
    for (std::uint32_t i = 0; i < 2; ++i) {
      const std::uint32_t row = at.row + i * 8;
      rows_[i] = first_scale(a, at.group, at.first_k) +
                 (row < at.last_row ? row : at.last_row) * static_cast<std::uint32_t>(a.line_stride);
    }
  }

  /// Loads the scales of the next block of K, the first one at first. They arrive while the block's
  /// products run. No register is left to load them earlier, nor to keep their places.
  __device__ void take(std::uint32_t) {
    device::ptx::keep_word(columns_);
    device::ptx::keep_word(column_);
#pragma unroll
    for (std::uint32_t part = 0; part < parts; ++part) {
      const std::uint32_t column = column_ + held_column(0, part);
      const float* const from = b_.values + (columns_ + (column < last_pair_ ? column : last_pair_));
      held_[part] = {__ldg(from), __ldg(from + 1)};
    }
    columns_ += static_cast<std::uint32_t>(b_.k_stride);
#pragma unroll
    for (std::uint32_t i = 0; i < 2; ++i) {
      device::ptx::keep_word(rows_[i]);
      of_row_[i] = __ldg(a_.values + rows_[i]);
      rows_[i] += static_cast<std::uint32_t>(a_.k_stride);
    }
  }

  /// Adds the sums of the block that was taken for the `part`-th 128 columns, times their factors.
  template <std::uint32_t Sums, std::uint32_t PartSums>
  __device__ void add(float (&sums)[Sums], const float (&partial)[PartSums], std::uint32_t part) const {
#pragma unroll
    for (std::uint32_t i = 0; i < PartSums; i += 4) {
      const std::uint32_t at = part * PartSums + i;
      const float2 held = held_[holding_part(at / 4)];
      const std::uint32_t row = holding_row(at / 4);
      const float of_column[2] = {device::ptx::shuffle_in_column(held.x, row),
                                  device::ptx::shuffle_in_column(held.y, row)};
#pragma unroll
      for (std::uint32_t j = 0; j < 4; ++j) {
        sums[at + j] = fmaf(of_row_[j / 2] * of_column[j % 2], partial[i + j], sums[at + j]);
      }
    }
  }

 private:
  static constexpr std::uint32_t parts = Columns / held_columns;

  const gemm::block_scales& a_;
  const gemm::block_scales& b_;
  std::uint32_t rows_[2];  ///< the elements of the next block's scales
  std::uint32_t columns_;  ///< the element of column 0
  std::uint32_t column_;
  std::uint32_t last_pair_;
  float of_row_[2]{};
  float2 held_[parts]{};
};

/// Returns the factors of this thread's sums in the tile. `row` is the first of its consumer's rows
/// in the group.
template <class Config>
__device__ auto line_factors_of(const gemm_shape& shape, const tile_note& note, std::uint32_t row) {
  const std::uint32_t consumer = threadIdx.x / 128;
  const std::uint32_t warp = threadIdx.x / 32 % 4;
  return line_factors<Config::share_n>(shape.a_scales, shape.b_scales,
                                       {.group = note.group,
                                        .first_k = note.record.first_k,
                                        .row = row + place_sum(warp, threadIdx.x % 32, 0).row,
                                        .last_row = note.record.m - 1,
                                        .column = note.column + (Config::halves_rows ? 0 : consumer * Config::share_n),
                                        .last_pair = note.record.n - 2});
}

}  // namespace tmap::kernels
