// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stores the rows of a staging tile in the rows of C that an index names. The copy engine's maps
// cannot do it, so the warp reads the tile back and writes 16 bytes a lane: 128 bytes of four rows
// at once.

#include <tmap/device/ptx_reduce.cuh>
#include <tmap/device/ptx_wgmma.cuh>
#include <tmap/device/report_bad.cuh>

#include <cstdint>

#include "kernels/gemm/gemm_group.hpp"
#include "kernels/gemm/tile_math.hpp"

namespace tmap::kernels {

/// The columns of C that a staged tile has.
struct staged_columns {
  std::uint32_t first;
  std::uint32_t end;    ///< of C
  std::uint32_t bytes;  ///< of a result
};

/// Stores a tile in the rows of C that `index` names, or adds it to them in f32. Its rows begin at
/// row `row` of the group. All lanes call it.
__device__ inline void store_rows(const row_index& index, const gemm_group& record, const unsigned char* tile,
                                  std::uint32_t row, const staged_columns& columns, bool adds) {
  constexpr std::uint32_t unit_bytes = 16;
  __syncwarp();
  // The compiler must compute all that depends on the lane again for each tile. The sums leave no
  // registers for it.
  std::uint32_t lane = threadIdx.x % 32;
  device::ptx::keep_word(lane);
  const std::uint32_t unit = stored_unit(lane);
  const std::uint64_t at = std::uint64_t{columns.first} * columns.bytes + unit * unit_bytes;
  if (at >= std::uint64_t{columns.end} * columns.bytes) return;
  // All targets are read before the first store, so that their loads do not wait for each other.
  std::uint32_t targets[strip_rows / stored_rows];
#pragma unroll
  for (std::uint32_t i = 0; i < strip_rows / stored_rows; ++i) {
    const std::uint32_t in_group = row + i * stored_rows + stored_row(lane);
    targets[i] = in_group < record.m ? index.source(record.first_row + in_group) : no_row;
  }
#pragma unroll
  for (std::uint32_t i = 0; i < strip_rows / stored_rows; ++i) {
    if (targets[i] == no_row) continue;
    const std::uint32_t tile_row = i * stored_rows + stored_row(lane);
    const auto four = *reinterpret_cast<const float4*>(tile + swizzled_unit(tile_row, unit));
    auto* const to = reinterpret_cast<float4*>(record.c + targets[i] * record.c_pitch + at);
    if (adds) {
      device::ptx::red_add(to, four);
    } else {
      *to = four;
    }
  }
}

/// Reports which of a warp's rows are named by a number that is no row of C. All lanes call it.
__device__ inline void report_targets(const row_index& index, const gemm_group& record, std::uint32_t row) {
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t at = record.first_row + row + lane;
  const bool has_row = lane < strip_rows && row + lane < record.m;
  const bool is_bad = has_row && index.rows[at] != -1 && !index.has(index.rows[at]);
  device::report_bad(index.faults, item_kind::group, at, is_bad ? static_cast<std::uint32_t>(gemm::fault::c_row) : 0);
}

}  // namespace tmap::kernels
