// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sorts the choices of few tokens by rank, stably, in one block. Ranks are so few that a ballot for
// each of them takes less time than a route.

#include <tmap/device/peer_link.cuh>
#include <tmap/device/warp.cuh>

#include <cstdint>

#include "kernels/batch/scan.cuh"
#include "kernels/peer/protocol_prepare.hpp"

namespace tmap::kernels::peer {

/// Lies in shared memory.
template <std::uint32_t Warps>
class rank_sort {
 public:
  /// Writes how many choices each rank has, and the number of each choice in the order of ranks.
  /// All threads of a block of `Warps` warps call it. What it makes is there after a barrier.
  template <class RankOf>
  __device__ void run(const device::peer_link& link, const preparation& work, const RankOf& rank_of) {
    const expert_arrays& at = work.at;
    const std::uint32_t choices = at.tokens * at.k, me = link.rank(), ranks = link.ranks();
    const std::uint32_t used = (choices + threads - 1) / threads;
    std::uint32_t rank[rounds], before[rounds];
#pragma unroll
    for (std::uint32_t r = 0; r < rounds; ++r) {
      rank[r] = r < used && place(used, r) < choices ? rank_of(place(used, r)) : none;
    }
    count(ranks, rank, before);
    __syncthreads();
    if (warp() < ranks) sum_warps();
    __syncthreads();
    const std::uint32_t total = lane() < ranks ? totals_[lane()] : 0;
    const std::uint32_t end = join_up_to_lane(total, add{});
    const std::uint32_t eager = __ballot_sync(~0u, work.has_eager_records(ranks, total));
    if (warp() == 0 && lane() < ranks) link.store(me, word_at(at.departed, lane()), total);
    if (threadIdx.x == device::warp_lanes - 1) records_ = end;
    const std::uint32_t sent = __ballot_sync(~0u, total != 0);
    if (threadIdx.x == 0) are_pulled_ = (sent & ~eager) != 0;
#pragma unroll
    for (std::uint32_t r = 0; r < rounds; ++r) {
      const bool goes = rank[r] < ranks;
      const std::uint32_t first = __shfl_sync(~0u, end - total, static_cast<int>(goes ? rank[r] : 0));
      if (r >= used || place(used, r) >= choices) continue;
      const std::uint32_t number = goes ? first + counts_[warp()][rank[r]] + before[r] : none;
      link.store(me, word_at(at.record_of_choice, place(used, r)), number);
      if (goes) order_[number] = {place(used, r) / at.k, rank[r], (eager >> rank[r] & 1) != 0 ? number - first : none};
    }
  }

  __device__ std::uint32_t records() const {
    return records_;
  }
  __device__ bool are_pulled() const {
    return are_pulled_;
  }
  __device__ departing_record record(std::uint32_t i) const {
    return order_[i];
  }

 private:
  static constexpr std::uint32_t threads = Warps * device::warp_lanes;
  static constexpr std::uint32_t rounds = most_prepared_choices / threads;
  static_assert(Warps == device::warp_lanes, "a warp sums up the counts of all warps");
  static_assert(max_group_ranks <= Warps, "each rank has a warp, and a lane");

  static __device__ std::uint32_t warp() {
    return threadIdx.x / device::warp_lanes;
  }
  static __device__ std::uint32_t lane() {
    return threadIdx.x % device::warp_lanes;
  }
  /// Returns this thread's choice of a round. The rounds of a warp follow each other.
  static __device__ std::uint32_t place(std::uint32_t used, std::uint32_t round) {
    return (warp() * used + round) * device::warp_lanes + lane();
  }

  /// Counts the warp's choices of each rank, and those before each choice.
  __device__ void count(std::uint32_t ranks, const std::uint32_t (&rank)[rounds], std::uint32_t (&before)[rounds]) {
    TMAP_KEEP_ROLLED
    for (std::uint32_t each = 0; each < ranks; ++each) {
      std::uint32_t seen = 0;
#pragma unroll
      for (std::uint32_t r = 0; r < rounds; ++r) {
        const std::uint32_t lanes = __ballot_sync(~0u, rank[r] == each);
        const std::uint32_t lower = lanes & ((1u << lane()) - 1);
        if (rank[r] == each) before[r] = seen + static_cast<std::uint32_t>(__popc(lower));
        seen += static_cast<std::uint32_t>(__popc(lanes));
      }
      if (lane() == 0) counts_[warp()][each] = seen;
    }
  }

  /// Turns the counts of the rank of this warp's number into those of the warps before.
  __device__ void sum_warps() {
    const std::uint32_t own = counts_[lane()][warp()];
    const std::uint32_t up_to = join_up_to_lane(own, add{});
    counts_[lane()][warp()] = up_to - own;
    if (lane() == device::warp_lanes - 1) totals_[warp()] = up_to;
  }

  std::uint32_t counts_[Warps][max_group_ranks + 1];  // no two warps have a rank in the same bank
  std::uint32_t totals_[max_group_ranks];
  std::uint32_t records_;
  bool are_pulled_;
  departing_record order_[most_prepared_choices];
};

}  // namespace tmap::kernels::peer
