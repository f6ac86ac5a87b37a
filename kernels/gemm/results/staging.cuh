// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes results into a staging tile: 16 rows of 128 bytes, permuted as the copy engine reads them.
// A thread has 16 results of 32 columns, in one of two orders. No two lanes of a write meet in a
// bank.

#include <tmap/device/ptx_wgmma.cuh>
#include <tmap/grouped_gemm.hpp>

#include <cstdint>

#include "kernels/gemm/results/quarters.cuh"
#include "kernels/gemm/results/result_pair.cuh"
#include "kernels/gemm/tile_math.hpp"

namespace tmap::kernels {

/// The staging tiles of a warp.
inline constexpr std::uint32_t staged_results = 2;

/// The columns of a thread's results in a quarter.
enum class result_order : std::uint32_t {
  pairs,    ///< of sums: result 4 i + 2 h + j is of row half h and column 8 i + lane % 4 * 2 + j
  singles,  ///< of interleaved gates: result 2 i + h is of row half h and column 4 i + lane % 4
};

/// Eight packed pairs: word 2 i + h is of row half h and columns 8 i + lane % 4 * 2 and the next.
using packed_pairs = std::uint32_t[8];

__device__ inline std::uint32_t lane_row() {
  return threadIdx.x % 32 / 4;
}
__device__ inline std::uint32_t lane_column() {
  return threadIdx.x % 4;
}

/// Writes pairs of 16 bits to four units.
__device__ inline void stage_packed(unsigned char* tile, std::uint32_t first_unit, const packed_pairs& words) {
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t row = staged_row(lane);
#pragma unroll
  for (std::uint32_t unit = 0; unit < 4; unit += 2) {
    const std::uint32_t four[4] = {words[unit * 2], words[unit * 2 + 1], words[unit * 2 + 2], words[unit * 2 + 3]};
    device::ptx::stmatrix_x4(tile + swizzled_unit(row, staged_unit(lane, first_unit + unit)), four);
  }
}

/// Writes results to four units, rounded to 16 bits.
template <gemm::operand_type Type>
__device__ void stage_pairs(unsigned char* tile, std::uint32_t first_unit, const float (&results)[quarter_sums]) {
  packed_pairs words;
#pragma unroll
  for (std::uint32_t i = 0; i < 8; ++i) words[i] = result_pair<Type>::pack(results[i * 2], results[i * 2 + 1]);
  stage_packed(tile, first_unit, words);
}

/// Writes a piece of 64 columns of sums, rounded to 16 bits.
template <gemm::operand_type Type, std::uint32_t Count>
__device__ void stage_piece(unsigned char* tile, const float (&sums)[Count], std::uint32_t piece) {
#pragma unroll 1
  for (std::uint32_t half = 0; half < 2; ++half) {
    float quarter[quarter_sums];
    take(quarter, sums, piece * 2 + half);
    stage_pairs<Type>(tile, half * 4, quarter);
  }
}

/// Writes 32 bytes for each eight columns, so all of a row: `words[2 i + h]` are two words of
/// columns 8 i + lane % 4 * 2 and the next.
__device__ inline void stage_wide(unsigned char* tile, const uint2 (&words)[8]) {
  const bool is_odd = lane_row() % 2 != 0;
#pragma unroll
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t at = wide_eight(lane_row(), i) * 32 + lane_column() * 8;
#pragma unroll
    for (std::uint32_t half = 0; half < 2; ++half) {
      const uint2 own = words[i * 2 + half];
      const uint2 other = words[(i ^ 2) * 2 + half];
      *reinterpret_cast<uint2*>(tile + staged_byte(lane_row() + half * 8, at)) =
          make_uint2(is_odd ? other.x : own.x, is_odd ? other.y : own.y);
    }
  }
}

/// Writes results in f32, which take all of a tile.
__device__ inline void stage_f32(unsigned char* tile, const float (&results)[quarter_sums], result_order order) {
  if (order == result_order::pairs) {
    uint2 words[8];
#pragma unroll
    for (std::uint32_t i = 0; i < 8; ++i) {
      words[i] = make_uint2(__float_as_uint(results[i * 2]), __float_as_uint(results[i * 2 + 1]));
    }
    stage_wide(tile, words);
  } else {
#pragma unroll
    for (std::uint32_t i = 0; i < quarter_sums; ++i) {
      unsigned char* const to = tile + staged_byte(lane_row() + i % 2 * 8, i / 2 * 16 + lane_column() * 4);
      *reinterpret_cast<float*>(to) = results[i];
    }
  }
}

/// Writes single results, rounded to 16 bits, from byte `first` on.
template <gemm::operand_type Type>
__device__ void stage_singles(unsigned char* tile, std::uint32_t first, const float (&results)[quarter_sums]) {
#pragma unroll
  for (std::uint32_t i = 0; i < quarter_sums; i += 4) {
#pragma unroll
    for (std::uint32_t half = 0; half < 2; ++half) {
      const std::uint32_t two = result_pair<Type>::pack(results[i + half], results[i + 2 + half]);
      const std::uint32_t at = first + i * 4 + lane_column() * 2;
      const std::uint32_t row = lane_row() + half * 8;
      *reinterpret_cast<std::uint16_t*>(tile + staged_byte(row, at)) = static_cast<std::uint16_t>(two);
      *reinterpret_cast<std::uint16_t*>(tile + staged_byte(row, at + 8)) = static_cast<std::uint16_t>(two >> 16);
    }
  }
}

/// Writes results as e4m3, from byte `first` on. Those of row half h are multiplied by
/// `factors[h]`.
__device__ inline void stage_e4m3(unsigned char* tile, std::uint32_t first, const float (&results)[quarter_sums],
                                  const float (&factors)[2], result_order order) {
#pragma unroll
  for (std::uint32_t i = 0; i < quarter_sums; i += 2) {
    if (order == result_order::pairs) {
      const std::uint32_t half = i / 2 % 2;
      const std::uint32_t at = first + i / 4 * 8 + lane_column() * 2;
      *reinterpret_cast<std::uint16_t*>(tile + staged_byte(lane_row() + half * 8, at)) =
          pack_e4m3(results[i] * factors[half], results[i + 1] * factors[half]);
    } else {
      const std::uint16_t two = pack_e4m3(results[i] * factors[0], results[i + 1] * factors[1]);
      const std::uint32_t at = first + i / 2 * 4 + lane_column();
      tile[staged_byte(lane_row(), at)] = static_cast<unsigned char>(two);
      tile[staged_byte(lane_row() + 8, at)] = static_cast<unsigned char>(two >> 8);
    }
  }
}

}  // namespace tmap::kernels
