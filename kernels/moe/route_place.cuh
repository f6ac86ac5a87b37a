// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gives each ranked choice of a tile its row, and writes the results of a route.

#include <tmap/detail/row_offsets.hpp>
#include <tmap/moe.hpp>

#include <cstdint>

#include "kernels/moe/route_sort.cuh"

namespace tmap::kernels {

/// Names one of the blocks that share a route.
struct routing_block {
  std::uint32_t number;
  std::uint32_t count;
};

namespace detail {

__device__ inline std::int32_t clipped(std::uint32_t row, std::uint32_t rows) {
  return static_cast<std::int32_t>(min(row, rows));
}

__device__ inline void write_expert(const sort_work& work, std::uint32_t expert, std::uint32_t begin,
                                    std::uint32_t count) {
  const moe::route_results& to = work.results;
  if (to.counts != nullptr) to.counts[expert] = static_cast<std::int32_t>(count);
  if (to.begins != nullptr) to.begins[expert] = clipped(begin, work.rows);
  if (to.ends != nullptr) to.ends[expert] = clipped(begin + count, work.rows);
}

__device__ inline bool wants_rows(const moe::route_results& results) {
  return results.token_of_row != nullptr || results.weight_of_row != nullptr;
}

__device__ inline void write_row(const moe::route_results& results, std::uint32_t row, std::int32_t token,
                                 float weight) {
  if (results.token_of_row != nullptr) results.token_of_row[row] = token;
  if (results.weight_of_row != nullptr) results.weight_of_row[row] = weight;
}

/// Clears this block's share of the rows that belong to no choice: the gaps of the experts, and all
/// from `used` on.
__device__ inline void clear_free_rows(const sort_work& work, const sort_memory& memory, const routing_block& mine,
                                       std::uint32_t used) {
  if (!wants_rows(work.results)) return;
  const std::uint32_t warp = threadIdx.x / device::warp_lanes;
  const std::uint32_t lane = threadIdx.x % device::warp_lanes;
  if (work.alignment > 1) {
    for (std::uint32_t e = warp * mine.count + mine.number; e < work.experts; e += sort_warps * mine.count) {
      const std::uint32_t end = min(memory.gap_ends[e], work.rows);
      for (std::uint32_t row = memory.gap_begins[e] + lane; row < end; row += device::warp_lanes) {
        write_row(work.results, row, -1, 0);
      }
    }
  }
  // 64 bits: the step may pass 2^32.
  const std::uint64_t step = std::uint64_t{mine.count} * sort_threads;
  for (std::uint64_t row = std::uint64_t{used} + mine.number * sort_threads + threadIdx.x; row < work.rows;
       row += step) {
    write_row(work.results, static_cast<std::uint32_t>(row), -1, 0);
  }
}

}  // namespace detail

/// Finds the first row of each expert, and where the choices of the first tile are. The first block
/// writes what belongs to the experts. Thread e passes the total of expert e, other threads pass
/// zeros. Returns the sorted choices of the tile. All threads of a block call it.
__device__ inline std::uint32_t place_experts(const sort_work& work, const sort_memory& memory,
                                              const routing_block& mine, const expert_total& total) {
  const std::uint32_t expert = threadIdx.x;
  const std::uint32_t aligned = (total.all + work.alignment - 1) / work.alignment * work.alignment;
  std::uint64_t all = 0;
  // Two sums at once: of rows, and of places in the tile.
  const std::uint64_t before = detail::sum_before(std::uint64_t{aligned} << 32 | total.tile, work.experts, all);
  const auto begin = static_cast<std::uint32_t>(before >> 32);
  const auto used = static_cast<std::uint32_t>(all >> 32);
  if (expert < work.experts) {
    const auto first = static_cast<std::uint32_t>(before);
    memory.places[expert] = {first, begin + total.before - first};
    memory.next[expert] = begin + total.before + total.tile;
    memory.gap_begins[expert] = begin + total.all;
    memory.gap_ends[expert] = begin + aligned;
    if (mine.number == 0) detail::write_expert(work, expert, begin, total.all);
  }
  if (mine.number == 0 && threadIdx.x == 0 && work.results.begins != nullptr) {
    work.results.begins[work.experts] = detail::clipped(used, work.rows);
  }
  __syncthreads();
  detail::clear_free_rows(work, memory, mine, used);
  return static_cast<std::uint32_t>(all);
}

/// Finds where the choices of another tile of the same block are. Returns as `place_experts` does.
__device__ inline std::uint32_t place_next_tile(const sort_work& work, const sort_memory& memory,
                                                std::uint32_t tile_total) {
  std::uint64_t all = 0;
  const auto first = static_cast<std::uint32_t>(detail::sum_before(tile_total, work.experts, all));
  if (threadIdx.x < work.experts) {
    std::uint32_t& next = memory.next[threadIdx.x];
    memory.places[threadIdx.x] = {first, next - first};
    next += tile_total;
  }
  __syncthreads();
  return static_cast<std::uint32_t>(all);
}

namespace detail {

/// Puts a choice into its place in the sorted tile. Returns its row, or -1, and sets its status.
__device__ inline std::int32_t sort_choice(const sort_work& work, const sort_memory& memory, const thread_choices& mine,
                                           std::uint32_t round, std::uint32_t place, moe::choice_status& status) {
  if (mine.expert[round] < 0) {
    const bool is_empty = mine.expert[round] == thread_choices::empty;
    status.bits = is_empty ? moe::choice_status::empty_bit : static_cast<std::uint32_t>(moe::fault::expert);
    return -1;
  }
  const auto expert = static_cast<std::uint32_t>(mine.expert[round]);
  const expert_place at = memory.places[expert];
  const std::uint32_t sorted = at.first + memory.count(threadIdx.x / device::warp_lanes, expert) + mine.rank[round];
  memory.sorted[sorted] = expert << 16 | place;
  if (work.results.weight_of_row != nullptr) memory.sorted_weights[sorted] = mine.weight[round];
  const std::uint32_t row = at.to_row + sorted;
  if (row < work.rows) return static_cast<std::int32_t>(row);
  status.bits = static_cast<std::uint32_t>(moe::fault::capacity);
  return -1;
}

__device__ inline void write_rows(const sort_work& work, const choice_tile& tile, const sort_memory& memory,
                                  std::uint32_t count) {
  const token_finder finder(work, tile);
  for (std::uint32_t i = threadIdx.x; i < count; i += sort_threads) {
    const std::uint32_t choice = memory.sorted[i];
    const std::uint32_t row = memory.places[choice >> 16].to_row + i;
    if (row >= work.rows) continue;
    const auto token = static_cast<std::int32_t>(finder.token_at(choice & 0xffff));
    write_row(work.results, row, token, work.results.weight_of_row == nullptr ? 0 : memory.sorted_weights[i]);
  }
}

}  // namespace detail

/// Writes the rows of a tile whose experts have places, and what becomes of its choices. `count` of
/// them have experts. All threads of a block call it.
__device__ inline void place_tile(const sort_work& work, const choice_tile& tile, const sort_memory& memory,
                                  std::uint32_t count, const thread_choices& mine, block_header& header) {
#pragma unroll
  for (std::uint32_t r = 0; r < sort_rounds; ++r) {
    if (r >= tile.rounds()) break;
    const std::uint32_t place = tile.place(r);
    const std::uint32_t choice = tile.begin + place;
    moe::choice_status status{};
    if (place < tile.count) {
      const std::int32_t row = detail::sort_choice(work, memory, mine, r, place, status);
      if (work.results.row_of_choice != nullptr) work.results.row_of_choice[choice] = row;
      if (work.reports.statuses != nullptr) work.reports.statuses[choice] = status;
    }
    report_choices(work.reports, choice, status, &header);
  }
  if (!detail::wants_rows(work.results)) return;
  __syncthreads();
  detail::write_rows(work, tile, memory, count);
}

/// Returns the choices of a share that follow the first `first`, up to a tile of them.
__device__ inline choice_tile tile_at(const choice_tile& share, std::uint32_t first) {
  const auto* const ids = static_cast<const unsigned char*>(share.ids.values) + std::uint64_t{first} * share.ids.bytes;
  const float* const weights = share.weights == nullptr ? nullptr : share.weights + first;
  return {share.begin + first, min(sort_tile, share.count - first), {ids, share.ids.bytes}, weights};
}

/// Sorts a share of the choices, one tile after the other. `total_of()` returns what thread e
/// passes to `place_experts`, once the first tile is counted. Counts are clear before the call.
/// All threads of a block call it.
template <class TotalOf>
__device__ void sort_share(const sort_work& work, const choice_tile& share, const sort_memory& memory,
                           const routing_block& mine, block_header& header, const TotalOf& total_of) {
  const auto own_totals = [&](std::uint32_t) { return memory.totals_of(0); };
  choice_tile tile = tile_at(share, 0);
  thread_choices choices;
  rank_tile(work, tile, memory, 1, own_totals, choices);
  __syncthreads();
  std::uint32_t count = place_experts(work, memory, mine, total_of());
  place_tile(work, tile, memory, count, choices, header);
  for (std::uint32_t first = sort_tile; first < share.count; first += sort_tile) {
    __syncthreads();
    memory.clear_counts();
    __syncthreads();
    tile = tile_at(share, first);
    rank_tile(work, tile, memory, 1, own_totals, choices);
    __syncthreads();
    count = place_next_tile(work, memory, threadIdx.x < work.experts ? memory.total(0, threadIdx.x) : 0);
    place_tile(work, tile, memory, count, choices, header);
  }
}

/// Counts the given choices of each expert in a share. All threads of a block call it. `totals` has
/// a word for each thread, and they are there after a barrier.
__device__ inline void count_share(const sort_work& work, const choice_tile& share, std::uint32_t* totals) {
  totals[threadIdx.x] = 0;
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < share.count; i += sort_threads) {
    const std::int32_t expert = detail::judge_expert(share.ids[i], work.experts);
    if (expert >= 0) atomicAdd(&totals[expert], 1u);
  }
}

/// Gives some choices rows, in their order, after `place_experts`: those from `begin` to `end`.
/// Their experts are in `choices`, which get the rows. Others are no experts. All lanes of one warp
/// call it.
__device__ inline void place_choices(const sort_work& work, const sort_memory& memory, std::int32_t* choices,
                                     std::uint32_t begin, std::uint32_t end) {
  const std::uint32_t lanes_before = cuda::ptx::get_sreg_lanemask_lt();
  for (std::uint32_t first = begin; first < end; first += device::warp_lanes) {
    const std::uint32_t i = first + threadIdx.x % device::warp_lanes;
    const std::int32_t expert = i < end ? detail::judge_expert(choices[i], work.experts) : thread_choices::empty;
    const std::uint32_t same = detail::lanes_with(expert, work.experts);
    const std::uint32_t next = expert < 0 ? work.rows : memory.next[expert];
    const std::uint32_t row = next + static_cast<std::uint32_t>(__popc(same & lanes_before));
    __syncwarp();
    if (expert >= 0 && (same & lanes_before) == 0) {
      memory.next[expert] = next + static_cast<std::uint32_t>(__popc(same));
    }
    __syncwarp();
    if (i >= end) continue;
    const bool has_row = expert >= 0 && row < work.rows;
    choices[i] = has_row ? static_cast<std::int32_t>(row) : -1;
    if (work.results.row_of_choice != nullptr) work.results.row_of_choice[i] = choices[i];
    if (work.results.weight_of_row != nullptr && has_row) {
      work.results.weight_of_row[row] = work.weights == nullptr ? 1 : work.weights[i];
    }
  }
}

}  // namespace tmap::kernels
