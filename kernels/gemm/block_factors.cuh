// SPDX-License-Identifier: Apache-2.0
#pragma once

// The factors by which a consumer multiplies its sums of each 128 elements of K: the scale of a row
// of A times the scale of 128 columns of B.

#include <tmap/grouped_gemm.hpp>

#include <cstdint>

#include "kernels/gemm/gemm_group.hpp"
#include "kernels/gemm/tile_math.hpp"
#include "kernels/gemm/tile_ring.cuh"

namespace tmap::kernels {

/// Stands for factors of 1.
struct no_factors {
  __device__ void take(std::uint32_t) {}
};

/// The factors of one thread's sums. They have two rows, and each half of its columns lies within
/// columns that share a scale. Four threads have the same rows. Each of them holds the scales of
/// one of four blocks of K, and they pass them on by shuffles. With `Gathers` a row may be missing.
template <bool Gathers>
class block_factors {
 public:
  /// The thread's rows in A, and the first column in B of each half of its columns.
  struct place {
    std::uint32_t group;
    std::uint32_t rows[2];  ///< `no_row`: zeros, whose scale is 1
    std::uint32_t columns[2];
    std::uint32_t last_column;
    std::uint32_t blocks;  ///< of K
  };

  __device__ block_factors(const gemm::block_scales& a, const gemm::block_scales& b, const place& at)
      : a_(a), b_(b), blocks_(at.blocks) {
#pragma unroll
    for (std::uint32_t i = 0; i < 2; ++i) {
      const std::uint32_t column = at.columns[i];
      has_row_[i] = !Gathers || at.rows[i] != no_row;
      a_lines_[i] = at.rows[i] * static_cast<std::uint32_t>(a.line_stride);
      b_lines_[i] = at.group * static_cast<std::uint32_t>(b.group_stride) +
                    (column < at.last_column ? column : at.last_column) / gemm::scaled_columns *
                        static_cast<std::uint32_t>(b.line_stride);
    }
    load(0);
  }

  /// Goes on to block `block` of K. Blocks are taken in order. The scales of the next four are
  /// loaded one block before they are needed.
  __device__ void take(std::uint32_t block) {
    const int owner = static_cast<int>(block % 4);
    float of_a[2];
    float of_b[2];
#pragma unroll
    for (std::uint32_t i = 0; i < 2; ++i) {
      of_a[i] = __shfl_sync(~0u, of_a_[i], owner, 4);
      of_b[i] = __shfl_sync(~0u, of_b_[i], owner, 4);
    }
    if (owner == 3) load(block + 1);
#pragma unroll
    for (std::uint32_t row = 0; row < 2; ++row) {
#pragma unroll
      for (std::uint32_t half = 0; half < 2; ++half) factors_[row][half] = of_a[row] * of_b[half];
    }
  }

  /// Returns the factor of the block that was taken, for one of the thread's rows and one half of
  /// its columns.
  __device__ float of(std::uint32_t row, std::uint32_t half) const {
    return factors_[row][half];
  }

 private:
  /// Loads the scales of this thread's block of four.
  __device__ void load(std::uint32_t first) {
    const std::uint32_t own = first + threadIdx.x % 4;
    const std::uint32_t block = own < blocks_ ? own : blocks_ - 1;
    const bool are_ones = a_.values == nullptr;
#pragma unroll
    for (std::uint32_t i = 0; i < 2; ++i) {
      const bool is_one = are_ones || !has_row_[i];
      of_a_[i] = is_one ? 1 : __ldg(a_.values + (a_lines_[i] + block * static_cast<std::uint32_t>(a_.k_stride)));
      of_b_[i] = are_ones ? 1 : __ldg(b_.values + (b_lines_[i] + block * static_cast<std::uint32_t>(b_.k_stride)));
    }
  }

  const gemm::block_scales& a_;
  const gemm::block_scales& b_;
  std::uint32_t blocks_;
  bool has_row_[2];           ///< else its scale is 1
  std::uint32_t a_lines_[2];  ///< the elements before the scales of its rows, in block 0
  std::uint32_t b_lines_[2];
  float of_a_[2];  ///< of one of four blocks
  float of_b_[2];
  float factors_[2][2]{};
};

/// Returns the row of A whose scales belong to row `row` of the product.
template <class Config>
__device__ std::uint32_t scaled_row(const gemm_shape& shape, std::uint32_t row) {
  if constexpr (Config::gathers) {
    return shape.a_rows.source(row);
  } else {
    return row;
  }
}

/// Returns the factors of this thread's sums in the tile. `row` is the first of its consumer's rows
/// in the group.
template <class Config>
__device__ auto factors_of(const gemm_shape& shape, const tile_note& note, std::uint32_t row) {
  if constexpr (Config::has_block_scales) {
    const std::uint32_t consumer = threadIdx.x / 128;
    const std::uint32_t warp = threadIdx.x / 32 % 4;
    const b_columns columns{Config::share_n, shape.per_result, shape.values};
    const std::uint32_t first = Config::halves_rows ? 0 : consumer * Config::share_n;
    // Rows past the end of the group, whose results are not stored, take the scales of its last
    // one.
    const std::uint32_t first_row = note.record.first_row + row + place_sum(warp, threadIdx.x % 32, 0).row;
    const std::uint32_t last_row = note.record.first_row + note.record.m - 1;
    return block_factors<Config::gathers>(
        shape.a_scales, shape.b_scales,
        {.group = note.group,
         .rows = {scaled_row<Config>(shape, min(first_row, last_row)),
                  scaled_row<Config>(shape, min(first_row + 8, last_row))},
         .columns = {columns.source(note.column, first), columns.source(note.column, first + Config::share_n / 2)},
         .last_column = note.record.n - 1,
         .blocks = note.k_blocks});
  } else {
    return no_factors{};
  }
}

}  // namespace tmap::kernels
