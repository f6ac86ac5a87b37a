// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sorts the choices of few tokens by rank, stably, in each block. Ranks are so few that a ballot
// for each of them takes less time than a route.

#include <tmap/device/peer_link.cuh>
#include <tmap/device/tile_copy.cuh>
#include <tmap/device/warp.cuh>

#include <cstdint>

#include "kernels/batch/scan.cuh"
#include "kernels/peer/protocol_prepare.hpp"

namespace tmap::kernels::peer {

/// Lies in shared memory.
template <std::uint32_t Warps>
class rank_sort {
 public:
  /// Keeps the share of this block, number `block`, in `order`. The first block writes how many
  /// choices each rank has, and the number of each choice in the order of ranks. All threads of a
  /// block of `Warps` warps call it. What it makes is there after a barrier.
  template <class RankOf>
  __device__ void run(const device::peer_link& link, const preparation& work, std::uint32_t block,
                      departing_record* order, const RankOf& rank_of) {
    const expert_arrays& at = work.at;
    const std::uint32_t choices = at.tokens * at.k, me = link.rank(), ranks = link.ranks();
    const std::uint32_t used = (choices + threads - 1) / threads;
    std::uint32_t rank[rounds], before[rounds];
#pragma unroll
    for (std::uint32_t r = 0; r < rounds; ++r) {
      if (r >= used) break;
      rank[r] = place(used, r) < choices ? rank_of(place(used, r)) : none;
    }
    count(ranks, used, rank, before);
    __syncthreads();
    if (warp() < ranks) sum_warps();
    __syncthreads();
    const std::uint32_t total = lane() < ranks ? totals_[lane()] : 0;
    const std::uint32_t end = join_up_to_lane(total, add{});
    const std::uint32_t eager = __ballot_sync(~0u, work.has_eager_records(ranks, total));
    const bool is_first = block == 0;
    if (is_first && warp() == 0 && lane() < ranks) link.store(me, word_at(at.departed, lane()), total);
    const std::uint32_t sent = __ballot_sync(~0u, total != 0);
    const std::uint32_t all = __shfl_sync(~0u, end, device::warp_lanes - 1);
    const record_share own = share_of_block(all, block, work.records.blocks);
    if (threadIdx.x == 0) {
      are_pulled_ = (sent & ~eager) != 0;
      own_ = own;
    }
#pragma unroll
    for (std::uint32_t r = 0; r < rounds; ++r) {
      if (r >= used) break;
      const bool goes = rank[r] < ranks;
      const std::uint32_t first = __shfl_sync(~0u, end - total, static_cast<int>(goes ? rank[r] : 0));
      if (place(used, r) >= choices) continue;
      const std::uint32_t number = goes ? first + counts_[warp()][rank[r]] + before[r] : none;
      if (is_first) link.store(me, word_at(at.record_of_choice, place(used, r)), number);
      if (number - own.begin >= own.end - own.begin) continue;
      const bool is_eager = (eager >> rank[r] & 1) != 0;
      order[number - own.begin] = {place(used, r) / at.k, rank[r], is_eager ? number - first : none};
    }
    device::fence_shared_writes();  // bulk copies overwrite it later
  }

  __device__ bool are_pulled() const {
    return are_pulled_;
  }
  /// Returns how many records go to a rank.
  __device__ std::uint32_t departures(std::uint32_t rank) const {
    return totals_[rank];
  }
  /// Returns the records of this block's share.
  __device__ record_share own() const {
    return own_;
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
  __device__ void count(std::uint32_t ranks, std::uint32_t used, const std::uint32_t (&rank)[rounds],
                        std::uint32_t (&before)[rounds]) {
    TMAP_KEEP_ROLLED
    for (std::uint32_t each = 0; each < ranks; ++each) {
      std::uint32_t seen = 0;
#pragma unroll
      for (std::uint32_t r = 0; r < rounds; ++r) {
        if (r >= used) break;
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
  record_share own_;
  bool are_pulled_;
};

}  // namespace tmap::kernels::peer
