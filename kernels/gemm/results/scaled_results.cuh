// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stores results of e4m3. Each 128 of a row share a scale, and a staged tile has these 128 columns.

#include <tmap/device/acquire.cuh>
#include <tmap/device/tile_copy.cuh>
#include <tmap/grouped_gemm.hpp>

#include <cstdint>

#include "kernels/gemm/results/quarters.cuh"
#include "kernels/gemm/results/shared_rows.cuh"
#include "kernels/gemm/results/staging.cuh"
#include "kernels/gemm/results/staging_tiles.cuh"
#include "kernels/gemm/results/thread_results.cuh"
#include "kernels/gemm/tile_math.hpp"

namespace tmap::kernels {

inline constexpr std::uint32_t scaled_quarters = gemm::scaled_results / quarter_columns;

/// Sets `largest` to the largest magnitudes of the 128 results that begin at quarter `first`, of
/// which `columns` are left.
template <gemm::operand_type Type, bool Scatters, std::uint32_t Count>
__device__ void find_largest(std::uint32_t (&largest)[2], const thread_results<Type, Scatters>& results,
                             const float (&sums)[Count], std::uint32_t first, std::uint32_t columns,
                             result_order order) {
  float quarter[quarter_sums];
#pragma unroll 1
  for (std::uint32_t i = 0; i < scaled_quarters && i * quarter_columns < columns; ++i) {
    take(quarter, sums, first + i);
    results.add_largest(largest, quarter, columns - i * quarter_columns, order);
  }
}

/// Stages these results from byte `first_byte` of a tile on.
template <std::uint32_t Count>
__device__ void stage_scaled(unsigned char* tile, std::uint32_t first_byte, const float (&sums)[Count],
                             std::uint32_t first, std::uint32_t columns, const float (&factors)[2],
                             result_order order) {
  float quarter[quarter_sums];
#pragma unroll 1
  for (std::uint32_t i = 0; i < scaled_quarters && i * quarter_columns < columns; ++i) {
    take(quarter, sums, first + i);
    stage_e4m3(tile, first_byte + i * quarter_columns, quarter, factors, order);
  }
}

/// A gate leaves a warp of fewer sums half of the 128 columns that share a scale. The plan then has
/// tiles of 64 rows, and a partner holds the other half.
template <gemm::operand_type Type, bool Scatters, std::uint32_t Count>
__device__ void store_e4m3(staging_tiles& tiles, const device::acquired_map& map,
                           const thread_results<Type, Scatters>& results, const float (&sums)[Count], std::uint32_t row,
                           const result_place& place, result_order order, bool has_gate) {
  const bool is_joint = Count < gemm::scaled_results && has_gate;
  const row_partner partner(tiles.first());
#pragma unroll 1
  for (std::uint32_t first = 0; first < Count / quarter_sums; first += scaled_quarters) {
    const std::uint32_t column = place.column + first * quarter_columns;
    if (column >= place.columns && !is_joint) break;
    const std::uint32_t columns = max(place.columns, column) - column;
    float factors[2];
    std::uint32_t largest[2] = {};
    if (!results.has_given_scales()) find_largest(largest, results, sums, first, columns, order);
    if (is_joint) {
      staging_tiles::wait<0>();
      partner.join(largest);
    }
    const bool is_second = is_joint && partner.is_second();
    results.find_scales(factors, largest, place, column, !is_second);
    unsigned char* const tile = is_joint ? tiles.take_common(partner) : tiles.take();
    stage_scaled(tile, is_second ? swizzle_bytes / 2 : 0, sums, first, columns, factors, order);
    if (is_joint) {
      device::fence_shared_writes();
      partner.meet();
      if (is_second) return;
    }
    staging_tiles::store(map, tile, column, row);
  }
}

}  // namespace tmap::kernels
