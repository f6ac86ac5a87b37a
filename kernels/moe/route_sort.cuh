// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sorts choices by expert, stably and without atomics: a counting sort. A block takes a contiguous
// part of the choices, one tile at a time, and each of its warps a contiguous part of the tile. A
// choice's row is the sum of four numbers: the first row of its expert, and the choices of that
// expert in the blocks, the warps and the lanes before.

#include <tmap/detail/row_offsets.hpp>
#include <tmap/device/warp.cuh>
#include <tmap/moe.hpp>

#include <cuda/ptx>

#include <cstdint>

#include "kernels/batch/block_header.cuh"
#include "kernels/batch/scan.cuh"
#include "kernels/moe/report_choices.cuh"
#include "kernels/moe_launch.hpp"

namespace tmap::kernels {

inline constexpr std::uint32_t sort_threads = 1024;
inline constexpr std::uint32_t sort_warps = sort_threads / device::warp_lanes;
/// A thread takes so many choices of a full tile.
inline constexpr std::uint32_t sort_rounds = sort_tile / sort_threads;
static_assert(moe::max_experts <= sort_threads, "each expert has a thread");

/// The arguments of the kernels. Choices are counted in 32 bits.
struct sort_work {
  std::uint32_t choices;
  std::uint32_t block_choices;  ///< of each block; the last ones may have fewer
  std::uint32_t experts;
  std::uint32_t k;
  std::uint32_t alignment;
  std::uint32_t rows;
  tmap::detail::integer_array<void> ids;
  const float* weights;  ///< null: all are 1
  moe::route_results results;
  std::uint32_t* totals;  ///< [blocks, experts]; null with a single cluster
  choice_reports reports;
};

/// The dynamic shared memory of a block.
struct sort_memory {
  std::uint32_t* next;        ///< the row of each expert's next choice
  std::uint32_t* totals;      ///< of each expert in the tile
  std::uint32_t* gap_begins;  ///< the rows that alignment leaves free after each expert
  std::uint32_t* gap_ends;
  std::uint16_t* counts;  ///< [sort_warps, experts]: choices of a warp, then of the warps before

  __device__ sort_memory(void* memory, std::uint32_t experts)
      : next(static_cast<std::uint32_t*>(memory)),
        totals(next + experts),
        gap_begins(totals + experts),
        gap_ends(gap_begins + experts),
        counts(reinterpret_cast<std::uint16_t*>(gap_ends + experts)) {}
};
constexpr std::uint32_t sort_memory_bytes(std::uint32_t experts) {
  return experts * (4 * sizeof(std::uint32_t) + sort_warps * sizeof(std::uint16_t));
}

/// The choices of a thread in one tile, in registers.
struct thread_choices {
  static constexpr std::int32_t empty = -1;
  static constexpr std::int32_t bad = -2;

  std::int32_t expert[sort_rounds];  // or `empty` or `bad`
  std::uint32_t rank[sort_rounds];   // among the choices of the expert in the warp
};

/// A part of the choices, of at most `sort_tile`.
struct choice_tile {
  std::uint32_t begin;
  std::uint32_t end;

  __device__ std::uint32_t rounds() const { return (end - begin + sort_threads - 1) / sort_threads; }
  /// Returns the choice of this thread in a round. The rounds of a warp follow each other.
  __device__ std::uint32_t choice(std::uint32_t round) const {
    const std::uint32_t warp = threadIdx.x / device::warp_lanes;
    const std::uint32_t lane = threadIdx.x % device::warp_lanes;
    return begin + (warp * rounds() + round) * device::warp_lanes + lane;
  }
};

namespace detail {

__device__ inline std::int32_t judge_expert(std::int64_t id, std::uint32_t experts) {
  if (id >= 0 && id < std::int64_t{experts}) return static_cast<std::int32_t>(id);
  return id == -1 ? thread_choices::empty : thread_choices::bad;
}

__device__ inline void load_experts(const sort_work& work, const choice_tile& tile, thread_choices& mine) {
#pragma unroll
  for (std::uint32_t r = 0; r < sort_rounds; ++r) {
    const std::uint32_t i = tile.choice(r);
    const bool exists = r < tile.rounds() && i < tile.end;
    mine.expert[r] = exists ? judge_expert(work.ids[i], work.experts) : thread_choices::empty;
  }
}

/// Counts a warp's choices of each expert, in order, and ranks them.
__device__ inline void rank_in_warp(std::uint16_t* counts, std::uint32_t rounds, thread_choices& mine) {
  const std::uint32_t lanes_before = cuda::ptx::get_sreg_lanemask_lt();
#pragma unroll
  for (std::uint32_t r = 0; r < sort_rounds; ++r) {
    if (r >= rounds) break;
    const std::int32_t expert = mine.expert[r];
    const std::uint32_t same = __match_any_sync(~0u, expert);
    const std::uint32_t before = expert >= 0 ? counts[expert] : 0;
    mine.rank[r] = before + static_cast<std::uint32_t>(__popc(same & lanes_before));
    __syncwarp();
    if (expert >= 0 && (same & lanes_before) == 0) {
      counts[expert] = static_cast<std::uint16_t>(before + static_cast<std::uint32_t>(__popc(same)));
    }
    __syncwarp();
  }
}

/// Turns the counts of each warp into those of the warps before. Thread e does so for expert e.
__device__ inline void sum_warps(const sort_memory& memory, std::uint32_t experts) {
  const std::uint32_t expert = threadIdx.x;
  if (expert >= experts) return;
  std::uint32_t total = 0;
  for (std::uint32_t warp = 0; warp < sort_warps; ++warp) {
    std::uint16_t& count = memory.counts[warp * experts + expert];
    const std::uint32_t more = count;
    count = static_cast<std::uint16_t>(total);
    total += more;
  }
  memory.totals[expert] = total;
}

}  // namespace detail

/// Loads, counts and ranks the choices of a tile. All threads of a block call it. The caller
/// synchronises the block before the next tile.
__device__ inline void count_tile(const sort_work& work, const choice_tile& tile, const sort_memory& memory,
                                  thread_choices& mine) {
  detail::load_experts(work, tile, mine);
  auto* const words = reinterpret_cast<std::uint32_t*>(memory.counts);
  for (std::uint32_t i = threadIdx.x; i < work.experts * sort_warps / 2; i += sort_threads) words[i] = 0;
  __syncthreads();
  const std::uint32_t warp = threadIdx.x / device::warp_lanes;
  detail::rank_in_warp(memory.counts + warp * work.experts, tile.rounds(), mine);
  __syncthreads();
  detail::sum_warps(memory, work.experts);
  __syncthreads();
}

/// An expert's choices in all blocks, and in those before this one.
struct expert_total {
  std::uint32_t all;
  std::uint32_t before;
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

__device__ inline void clear_row(const moe::route_results& results, std::uint32_t row) {
  if (results.token_of_row != nullptr) results.token_of_row[row] = -1;
  if (results.weight_of_row != nullptr) results.weight_of_row[row] = 0;
}

/// Clears the rows that belong to no choice: the gaps of the experts, and all from `used` on. The
/// blocks share them.
__device__ inline void clear_free_rows(const sort_work& work, const sort_memory& memory, std::uint32_t used) {
  if (work.results.token_of_row == nullptr && work.results.weight_of_row == nullptr) return;
  const std::uint32_t warp = threadIdx.x / device::warp_lanes;
  const std::uint32_t lane = threadIdx.x % device::warp_lanes;
  if (work.alignment > 1) {
    for (std::uint32_t e = warp * gridDim.x + blockIdx.x; e < work.experts; e += sort_warps * gridDim.x) {
      const std::uint32_t end = min(memory.gap_ends[e], work.rows);
      for (std::uint32_t row = memory.gap_begins[e] + lane; row < end; row += device::warp_lanes) {
        clear_row(work.results, row);
      }
    }
  }
  // 64 bits: the step may pass 2^32.
  const std::uint64_t step = std::uint64_t{gridDim.x} * sort_threads;
  for (std::uint64_t row = std::uint64_t{used} + blockIdx.x * sort_threads + threadIdx.x; row < work.rows;
       row += step) {
    clear_row(work.results, static_cast<std::uint32_t>(row));
  }
}

}  // namespace detail

/// Finds the first row of each expert, and of this block's choices of it. The first block writes
/// what belongs to the experts. `total_of(e)` returns an expert's total. All threads of a block
/// call it.
template <class TotalOf>
__device__ void place_experts(const sort_work& work, const sort_memory& memory, const TotalOf& total_of) {
  const std::uint32_t expert = threadIdx.x;
  const bool has_expert = expert < work.experts;
  const expert_total total = has_expert ? total_of(expert) : expert_total{};
  const std::uint32_t aligned = (total.all + work.alignment - 1) / work.alignment * work.alignment;
  std::uint32_t used = 0;
  const std::uint32_t begin = join_before_thread<sort_warps>(aligned, used, add{});
  if (has_expert) {
    memory.next[expert] = begin + total.before;
    memory.gap_begins[expert] = begin + total.all;
    memory.gap_ends[expert] = begin + aligned;
    if (blockIdx.x == 0) detail::write_expert(work, expert, begin, total.all);
  }
  if (blockIdx.x == 0 && threadIdx.x == 0 && work.results.begins != nullptr) {
    work.results.begins[work.experts] = detail::clipped(used, work.rows);
  }
  __syncthreads();
  detail::clear_free_rows(work, memory, used);
}

namespace detail {

struct placed_choice {
  std::int32_t row;  // or -1
  moe::choice_status status;
};

__device__ inline placed_choice place(const sort_work& work, const sort_memory& memory, std::int32_t expert,
                                      std::uint32_t rank) {
  if (expert == thread_choices::empty) return {-1, {moe::choice_status::empty_bit}};
  if (expert < 0) return {-1, {static_cast<std::uint32_t>(moe::fault::expert)}};
  const std::uint32_t warp = threadIdx.x / device::warp_lanes;
  const std::uint32_t row =
      memory.next[expert] + memory.counts[warp * work.experts + static_cast<std::uint32_t>(expert)] + rank;
  if (row >= work.rows) return {-1, {static_cast<std::uint32_t>(moe::fault::capacity)}};
  return {static_cast<std::int32_t>(row), {}};
}

__device__ inline void write_choice(const sort_work& work, std::uint32_t choice, std::int32_t row) {
  const moe::route_results& to = work.results;
  if (to.row_of_choice != nullptr) to.row_of_choice[choice] = row;
  if (row < 0) return;
  if (to.token_of_row != nullptr) to.token_of_row[row] = static_cast<std::int32_t>(choice / work.k);
  if (to.weight_of_row != nullptr) to.weight_of_row[row] = work.weights == nullptr ? 1.0f : work.weights[choice];
}

}  // namespace detail

/// Writes the rows of a counted tile, and what becomes of its choices. All threads of a block call
/// it.
__device__ inline void place_tile(const sort_work& work, const choice_tile& tile, const sort_memory& memory,
                                  const thread_choices& mine, block_header& header) {
#pragma unroll
  for (std::uint32_t r = 0; r < sort_rounds; ++r) {
    if (r >= tile.rounds()) break;
    const std::uint32_t choice = tile.choice(r);
    moe::choice_status status{};
    if (choice < tile.end) {
      const detail::placed_choice placed = detail::place(work, memory, mine.expert[r], mine.rank[r]);
      status = placed.status;
      detail::write_choice(work, choice, placed.row);
      if (work.reports.statuses != nullptr) work.reports.statuses[choice] = status;
    }
    report_choices(work.reports, choice, status, &header);
  }
}

/// Moves the rows of each expert past those of a tile that is placed.
__device__ inline void advance(const sort_work& work, const sort_memory& memory) {
  __syncthreads();
  if (threadIdx.x < work.experts) memory.next[threadIdx.x] += memory.totals[threadIdx.x];
}

}  // namespace tmap::kernels
