// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sorts choices by expert, stably: a counting sort. A block takes a contiguous part of the choices,
// one tile at a time, and each of its warps a contiguous part of the tile. A choice's row is the
// sum of four numbers. The first is the first row of its expert. The others count the choices of
// that expert in earlier blocks, in earlier warps and in earlier lanes. No atomic operation decides
// an order.
//
// A block sorts its tile in shared memory first. So what it writes to the rows of an expert is
// contiguous.

#include <tmap/detail/row_offsets.hpp>
#include <tmap/device/warp.cuh>
#include <tmap/moe.hpp>

#include <cuda/ptx>

#include <cstdint>
#include <variant>

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
static_assert(moe::max_experts <= 1u << 16 && sort_tile <= 1u << 16, "a word holds an expert and a place in a tile");

/// The arguments of the kernels that sort. Choices are counted in 32 bits.
struct sort_work {
  std::uint32_t choices;
  std::uint32_t block_choices;  ///< of each block; the last ones may have fewer
  std::uint32_t experts;
  std::uint32_t k;
  std::uint32_t inverse_k;  ///< see `token_finder`
  std::uint32_t alignment;
  std::uint32_t rows;
  tmap::detail::integer_array<void> ids;
  const float* weights;  ///< null: all are 1
  moe::route_results results;
  std::uint32_t* totals;  ///< [blocks, experts]; null with a single cluster
  choice_reports reports;
};

/// An expert's choices in all blocks, in those before this one, and in the tile.
struct expert_total {
  std::uint32_t all;
  std::uint32_t before;
  std::uint32_t tile;
};

/// Places the choices of an expert in a tile.
struct alignas(8) expert_place {
  std::uint32_t first;   ///< the place of the first one in the sorted tile
  std::uint32_t to_row;  ///< turns a place in the sorted tile into a row if added (modulo 2^32)
};

/// The dynamic shared memory of a block.
class sort_memory {
 public:
  expert_place* places;       ///< [experts]
  std::uint32_t* next;        ///< the row of each expert's next choice
  std::uint32_t* gap_begins;  ///< the rows that alignment leaves free after each expert
  std::uint32_t* gap_ends;
  std::uint32_t* sorted;  ///< [sort_tile]: experts, and places in the tile, of the sorted choices
  float* sorted_weights;  ///< [sort_tile]

  __device__ sort_memory(void* memory, std::uint32_t experts)
      : places(static_cast<expert_place*>(memory)),
        next(reinterpret_cast<std::uint32_t*>(places + experts)),
        gap_begins(next + experts),
        gap_ends(gap_begins + experts),
        sorted(gap_ends + experts),
        sorted_weights(reinterpret_cast<float*>(sorted + sort_tile)),
        pairs_((experts + 1) / 2),
        totals_(reinterpret_cast<std::uint32_t*>(sorted_weights + sort_tile)),
        counts_(totals_ + sort_cluster_blocks * pairs_) {}
  static constexpr std::uint32_t bytes(std::uint32_t experts) {
    const std::uint32_t pairs = (experts + 1) / 2;
    const std::uint32_t words = 2 * sort_tile + sort_cluster_blocks * pairs + sort_warps * (pairs | 1);
    return placing_bytes(experts) + words * static_cast<std::uint32_t>(sizeof(std::uint32_t));
  }
  /// Returns the bytes of what places experts. Without a tile a block needs no more.
  static constexpr std::uint32_t placing_bytes(std::uint32_t experts) {
    return 5 * experts * static_cast<std::uint32_t>(sizeof(std::uint32_t));
  }

  /// The choices of a tile, as they were chosen here. They are read before the tile is sorted.
  __device__ std::int32_t* ids() const { return reinterpret_cast<std::int32_t*>(sorted); }
  __device__ float* weights() const { return sorted_weights; }

  /// A word for each pair of experts: the totals of a block's tile. Other blocks of the cluster
  /// write theirs here.
  __device__ std::uint32_t* totals_of(std::uint32_t block) const { return totals_ + block * pairs_; }
  __device__ std::uint32_t total(std::uint32_t block, std::uint32_t expert) const {
    return reinterpret_cast<const std::uint16_t*>(totals_of(block))[expert];
  }
  /// A word for each pair of experts: the choices of a warp, then those of the warps before. No
  /// two warps have the same pair in the same bank.
  __device__ std::uint32_t* counts_of(std::uint32_t warp) const { return counts_ + warp * (pairs_ | 1); }
  __device__ std::uint16_t& count(std::uint32_t warp, std::uint32_t expert) const {
    return reinterpret_cast<std::uint16_t*>(counts_of(warp))[expert];
  }
  __device__ std::uint32_t pairs() const { return pairs_; }

  __device__ void clear_counts() const {
    for (std::uint32_t i = threadIdx.x; i < sort_warps * (pairs_ | 1); i += sort_threads) counts_[i] = 0;
  }

 private:
  std::uint32_t pairs_;
  std::uint32_t* totals_;  // [sort_cluster_blocks, pairs]
  std::uint32_t* counts_;  // [sort_warps, pairs or one more]
};

/// The choices of a thread in one tile, in registers.
struct thread_choices {
  static constexpr std::int32_t empty = -1;
  static constexpr std::int32_t bad = -2;

  std::int32_t expert[sort_rounds];  // or `empty` or `bad`
  std::uint32_t rank[sort_rounds];   // among the choices of the expert in the warp
  float weight[sort_rounds];
};

/// A part of the choices, of at most `sort_tile`.
struct choice_tile {
  std::uint32_t begin;
  std::uint32_t count;
  tmap::detail::integer_array<void> ids;  ///< from the first one on, also in shared memory
  const float* weights;                   ///< from the first one on; null: all are 1

  __device__ std::uint32_t rounds() const { return (count + sort_threads - 1) / sort_threads; }
  /// Returns the place in the tile of this thread's choice in a round. The rounds of a warp follow
  /// each other.
  __device__ std::uint32_t place(std::uint32_t round) const {
    const std::uint32_t warp = threadIdx.x / device::warp_lanes;
    const std::uint32_t lane = threadIdx.x % device::warp_lanes;
    return (warp * rounds() + round) * device::warp_lanes + lane;
  }
};

/// Divides by k faster than the GPU divides. It is exact for the places in a tile and k more.
class token_finder {
 public:
  static constexpr std::uint32_t shift = 18;
  static constexpr std::uint32_t inverse(std::uint32_t k) { return (1u << shift) / k + 1; }

  __device__ token_finder(const sort_work& work, const choice_tile& tile)
      : token_(tile.begin / work.k), rest_(tile.begin - token_ * work.k), inverse_(work.inverse_k) {}
  __device__ std::uint32_t token_at(std::uint32_t place) const {
    return token_ + ((rest_ + place) * inverse_ >> shift);
  }

 private:
  static_assert((sort_tile + moe::max_k) * moe::max_k < 1u << shift);
  static_assert(std::uint64_t{sort_tile + moe::max_k} * ((1u << shift) + 1) < std::uint64_t{1} << 32);

  std::uint32_t token_;
  std::uint32_t rest_;
  std::uint32_t inverse_;
};

/// Describes how the choices of a route are sorted, by one block until the caller changes that. It
/// has choices only if they are given.
inline sort_work sort_of(const route_call& call) {
  const moe::route_problem& problem = call.problem;
  sort_work sort{};
  sort.choices = static_cast<std::uint32_t>(problem.tokens * problem.k);
  sort.block_choices = sort.choices;
  sort.experts = problem.experts;
  sort.k = problem.k;
  sort.inverse_k = token_finder::inverse(problem.k);
  sort.alignment = problem.alignment;
  sort.rows = static_cast<std::uint32_t>(problem.rows);
  sort.results = call.results;
  sort.reports = call.reports;
  if (const auto* given = std::get_if<moe::given_choices>(&problem.choices)) {
    sort.ids = {given->ids, given->bytes};
    sort.weights = given->weights;
  }
  return sort;
}

namespace detail {

__device__ inline std::int32_t judge_expert(std::int64_t id, std::uint32_t experts) {
  if (id >= 0 && id < std::int64_t{experts}) return static_cast<std::int32_t>(id);
  return id == -1 ? thread_choices::empty : thread_choices::bad;
}

__device__ inline void load_choices(const sort_work& work, const choice_tile& tile, thread_choices& mine) {
  const bool wants_weights = work.results.weight_of_row != nullptr && tile.weights != nullptr;
#pragma unroll
  for (std::uint32_t r = 0; r < sort_rounds; ++r) {
    const std::uint32_t place = tile.place(r);
    const bool exists = r < tile.rounds() && place < tile.count;
    mine.expert[r] = exists ? judge_expert(tile.ids[place], work.experts) : thread_choices::empty;
    mine.weight[r] = exists && wants_weights ? tile.weights[place] : 1.0f;
  }
}

/// Returns the lanes that have the same expert. Ballots on its bits take less time than
/// `__match_any_sync`.
__device__ inline std::uint32_t lanes_with(std::int32_t expert, std::uint32_t experts) {
  std::uint32_t same = __ballot_sync(~0u, expert >= 0);
#pragma unroll
  for (std::uint32_t bit = 0; 1u << bit < moe::max_experts; ++bit) {
    if (1u << bit >= experts) break;
    const bool is_set = (expert >> bit & 1) != 0;
    const std::uint32_t set = __ballot_sync(~0u, is_set);
    same &= is_set ? set : ~set;
  }
  return same;
}

/// Counts a warp's choices of each expert, in order, and ranks them.
__device__ inline void rank_in_warp(const sort_work& work, const sort_memory& memory, std::uint32_t rounds,
                                    thread_choices& mine) {
  const std::uint32_t warp = threadIdx.x / device::warp_lanes;
  const std::uint32_t lanes_before = cuda::ptx::get_sreg_lanemask_lt();
  std::uint32_t same[sort_rounds];
#pragma unroll
  for (std::uint32_t r = 0; r < sort_rounds; ++r) {
    if (r < rounds) same[r] = lanes_with(mine.expert[r], work.experts);
  }
#pragma unroll
  for (std::uint32_t r = 0; r < sort_rounds; ++r) {
    if (r >= rounds) break;
    const bool has_expert = mine.expert[r] >= 0;
    std::uint16_t& count = memory.count(warp, has_expert ? static_cast<std::uint32_t>(mine.expert[r]) : 0);
    const std::uint32_t before = count;
    mine.rank[r] = before + static_cast<std::uint32_t>(__popc(same[r] & lanes_before));
    __syncwarp();
    if (has_expert && (same[r] & lanes_before) == 0) {
      count = static_cast<std::uint16_t>(before + static_cast<std::uint32_t>(__popc(same[r])));
    }
    __syncwarp();
  }
}

/// Turns the counts of each warp into those of the warps before, and sends the totals to all
/// blocks. `totals_in(block)` returns this block's totals in the memory of a block.
template <class TotalsIn>
__device__ void sum_warps(const sort_memory& memory, std::uint32_t blocks, const TotalsIn& totals_in) {
  constexpr std::uint32_t at_once = 2;
  const std::uint32_t warp = threadIdx.x / device::warp_lanes;
  const std::uint32_t lane = threadIdx.x % device::warp_lanes;
  for (std::uint32_t first = warp; first < memory.pairs(); first += at_once * sort_warps) {
    std::uint32_t own[at_once];
    std::uint32_t up_to[at_once];
#pragma unroll
    for (std::uint32_t i = 0; i < at_once; ++i) {
      const std::uint32_t pair = first + i * sort_warps;
      own[i] = pair < memory.pairs() ? memory.counts_of(lane)[pair] : 0;
    }
#pragma unroll
    // No half of a word overflows.
    for (std::uint32_t i = 0; i < at_once; ++i) up_to[i] = join_up_to_lane(own[i], add{});
#pragma unroll
    for (std::uint32_t i = 0; i < at_once; ++i) {
      const std::uint32_t pair = first + i * sort_warps;
      const std::uint32_t total = __shfl_sync(~0u, up_to[i], device::warp_lanes - 1);
      if (pair >= memory.pairs()) continue;
      memory.counts_of(lane)[pair] = up_to[i] - own[i];
      if (lane < blocks) totals_in(lane)[pair] = total;
    }
  }
}

/// Returns the sum of the values of the threads before this one, and sets that of all. Threads
/// without an expert have 0. All threads of a block call it, and synchronise before the next call.
__device__ inline std::uint64_t sum_before(std::uint64_t value, std::uint32_t experts, std::uint64_t& all) {
  __shared__ std::uint64_t warp_sums[sort_warps];
  const std::uint32_t warp = threadIdx.x / device::warp_lanes;
  const std::uint64_t up_to = join_up_to_lane(value, add{});
  if (threadIdx.x % device::warp_lanes == device::warp_lanes - 1) warp_sums[warp] = up_to;
  __syncthreads();
  const std::uint32_t warps = (experts + device::warp_lanes - 1) / device::warp_lanes;
  std::uint64_t before = up_to - value;
  all = 0;
#pragma unroll 4
  for (std::uint32_t i = 0; i < warps; ++i) {
    const std::uint64_t sum = warp_sums[i];
    if (i < warp) before += sum;
    all += sum;
  }
  return before;
}

}  // namespace detail

/// Loads and ranks the choices of a tile after the counts are cleared, and sends totals as
/// `sum_warps` does. All threads of a block call it, and synchronise after it.
template <class TotalsIn>
__device__ void rank_tile(const sort_work& work, const choice_tile& tile, const sort_memory& memory,
                          std::uint32_t blocks, const TotalsIn& totals_in, thread_choices& mine) {
  detail::load_choices(work, tile, mine);
  detail::rank_in_warp(work, memory, tile.rounds(), mine);
  __syncthreads();
  detail::sum_warps(memory, blocks, totals_in);
}

}  // namespace tmap::kernels
