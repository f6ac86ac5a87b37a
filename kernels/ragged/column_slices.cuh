// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sums columns slice by slice, in the order of column_order.hpp.

#include "kernels/ragged/column_part.cuh"
#include "kernels/ragged/lane_ring.cuh"

#include <tmap/detail/column_order.hpp>

#include <cstdint>

namespace tmap::kernels {

/// The sums of all warps of a block for a chunk.
using warp_sums = float[column_warps][column_chunk];

/// Adds up the sums of all lanes. All threads call it; the first ones return the sum of a column
/// each.
__device__ inline float join_slice(lane_sums& sums, warp_sums& shared) {
  sums.join_rows();
  if (threadIdx.x % 32 < chunk_lanes) {
#pragma unroll
    for (std::uint32_t i = 0; i < chunk_values; ++i) {
      shared[threadIdx.x / 32][threadIdx.x % chunk_lanes * chunk_values + i] = sums.of[i];
    }
  }
  __syncthreads();
  float sum = 0;
  if (threadIdx.x >= column_chunk) return sum;
#pragma unroll
  for (std::uint32_t w = 0; w < column_warps; ++w) sum += shared[w][threadIdx.x];
  return sum;
}

/// Sums `count` slices from slice `first` on. All threads call it, and it calls `use(slice, sum)`
/// for each slice. Only the first threads have sums, of a column each.
template <value_type From, class Use>
__device__ void sum_slices(const column_part<From>& part, const lane_ring<From, column_threads>& ring,
                           std::uint32_t first, std::uint32_t count, warp_sums (&shared)[2], std::uint32_t& turn,
                           const Use& use) {
  constexpr std::uint32_t turn_rows = column_part<From>::batch * tmap::detail::column_values;
  const std::uint64_t each = tmap::detail::column_slice_rows(part.rows);
  const auto turns = static_cast<std::uint32_t>((each + turn_rows - 1) / turn_rows);
  const std::uint32_t own_row = threadIdx.x / 32 * warp_rows + part.lane_row();
  // Calls visit(chunk, address, whether it exists) for what the lane has in turn `i`.
  const auto visit_rows = [&](std::uint32_t i, const auto& visit) {
    const std::uint64_t begin = (first + i / turns) * each;
    const std::uint64_t end = part.rows - begin < each ? part.rows : begin + each;
    const std::uint64_t row = begin + std::uint64_t{i % turns} * turn_rows + own_row;
#pragma unroll
    for (std::uint32_t k = 0; k < column_part<From>::batch; ++k) {
      const std::uint64_t at = row + k * tmap::detail::column_values;
      visit(k, part.source + at * part.pitch, at < end);
    }
  };
  lane_sums sums;
  const auto finish = [&](const lane_chunks<From>& held, std::uint32_t i) {
#pragma unroll
    for (std::uint32_t k = 0; k < column_part<From>::batch; ++k) sums.add(held[k]);
    if ((i + 1) % turns != 0) return;
    use(first + i / turns, join_slice(sums, shared[turn++ % 2]));
    sums = {};
  };
  if (part.is_wide) {
    const auto load = [&](std::uint32_t set, std::uint32_t i) {
      visit_rows(i, [&](std::uint32_t k, std::uint64_t address, bool exists) {
        ring.load(set, k, address, exists && part.count != 0);
      });
    };
    return load_ahead(ring, {0, 1}, count * turns, load, finish);
  }
  for (std::uint32_t i = 0; i < count * turns; ++i) {
    lane_chunks<From> held;
    visit_rows(i, [&](std::uint32_t k, std::uint64_t address, bool exists) {
      held[k].template load<false>(address, exists ? part.count : 0);
    });
    finish(held, i);
  }
}

}  // namespace tmap::kernels
