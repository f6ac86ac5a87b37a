// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adds up the tokens of this rank: the results that are here, and the sums of other ranks as they
// come.

#include <tmap/device/peer_link.cuh>

#include <cstdint>

#include "kernels/peer/combine_block.cuh"
#include "kernels/peer/sum_rows.cuh"

namespace tmap::kernels {

/// Finds where the sum of each record of a token is made.
class record_finder {
 public:
  __device__ record_finder(const device::peer_link& link, const combine_work& work)
      : link_(link),
        departed_(work.departed),
        left_(records_of_own(link, work.departed)),
        came_(records_of_own(link, work.arrived)) {}

  __device__ bool is_here(std::uint32_t record) const { return record - left_.begin < left_.count; }
  /// Returns the number of a record that is here among those that came.
  __device__ std::uint32_t arrival(std::uint32_t record) const { return record - left_.begin + came_.begin; }
  __device__ std::uint32_t rank(std::uint32_t record) const { return peer::rank_of_record(link_, departed_, record); }

 private:
  const device::peer_link& link_;
  std::uint64_t departed_;
  records_of_rank left_;
  records_of_rank came_;
};

/// Takes a warp's share of this rank's tokens. Lane j knows of choice j.
template <class Element>
class sum_taker {
 public:
  __device__ sum_taker(const device::peer_link& link, const combine_work& work, std::uint64_t deadline)
      : link_(link),
        work_(work),
        deadline_(deadline),
        find_(link, work),
        warps_((work.request.blocks - work.senders) * combine_warps),
        parts_(static_cast<std::uint32_t>(work.tokens), work.request.place.units(), warps_) {}

  /// Ends early if sums do not come.
  __device__ void run() {
    std::uint32_t part = (blockIdx.x - work_.senders) * combine_warps + warp_of_thread();
    std::uint32_t record = load_record(part), of_next = load_record(part + warps_);
    lane_row here = load_here(record);
    TMAP_KEEP_ROLLED
    while (part < parts_.count()) {
      const std::uint32_t after_next = load_record(part + 2 * warps_);
      const lane_row here_next = load_here(of_next);  // they come while this part is added up
      if (!add_up(part, record, here)) return;
      part += warps_;
      record = of_next;
      of_next = after_next;
      here = here_next;
    }
  }

 private:
  /// Returns the record of this lane's choice of a part's token.
  __device__ std::uint32_t load_record(std::uint32_t part) const {
    if (part >= parts_.count() || lane_of_thread() >= work_.came.k) return peer::none;
    const std::uint64_t choice = std::uint64_t{parts_.row(part)} * work_.came.k + lane_of_thread();
    return static_cast<std::uint32_t>(work_.record_of_choice[choice]);
  }
  /// Returns the lane whose record is here, as a mask. A token has one at most.
  __device__ std::uint32_t lane_of_here(std::uint32_t record) const {
    return __ballot_sync(~0u, find_.is_here(record));
  }
  /// Returns the row of a choice of the record that is here.
  __device__ lane_row load_here(std::uint32_t record) const {
    const std::uint32_t lane = lane_of_here(record);
    if (lane == 0) return {0, 0};
    return load_rows(work_.came, find_.arrival(__shfl_sync(~0u, record, static_cast<int>(first_lane(lane)))));
  }
  __device__ std::uint64_t place(std::uint32_t record) const {
    return work_.returned + std::uint64_t{record} * work_.request.place.pitch();
  }
  /// Waits for this lane's sum. Returns whether all sums of the token have come.
  __device__ bool await(bool is_foreign, std::uint32_t record) const {
    bool has_come = true;
    if (is_foreign) {
      has_come = peer::await_sum(link_, work_.request.place, place(record), find_.rank(record), deadline_);
    }
    return __all_sync(~0u, has_come);
  }
  /// Adds up a part: the sum of each rank, in the order of choices. Each is rounded to the type.
  __device__ bool add_up(std::uint32_t part, std::uint32_t record, const lane_row& here) const {
    const summed_part at{parts_, part};
    const std::uint32_t own = lane_of_here(record);
    const bool is_foreign = record != peer::none && !find_.is_here(record);
    const std::uint32_t foreign = __ballot_sync(~0u, is_foreign), before = foreign & (own - 1);
    const lane_row sum{is_foreign ? link_.address(link_.rank(), place(record)) : 0, 1.0f};
    unit_sums<Element> made, sums;
    begin_sums<Element>(at, nullptr, made);
    add_rows<Element>(at, here, lanes_with_rows(here), made);
    begin_sums<Element>(at, work_.base.address == 0 ? nullptr : unit_at(work_.base, at.row(), 0), sums);
    if (!await(is_foreign, record)) return false;
    add_rows<Element>(at, sum, before, sums);
    if (own != 0) add_made(made, sums);
    add_rows<Element>(at, sum, foreign & ~before, sums);
    store_sums<Element>(at, sums, unit_at(work_.out, at.row(), 0));
    return true;
  }
  static __device__ void add_made(const unit_sums<Element>& made, unit_sums<Element>& sums) {
#pragma unroll
    for (std::uint32_t i = 0; i < summed_units; ++i) add_unit<Element>(unit_of<Element>::write(made[i]), 1.0f, sums[i]);
  }

  const device::peer_link& link_;
  const combine_work& work_;
  std::uint64_t deadline_;
  record_finder find_;
  std::uint32_t warps_;  ///< of all takers
  summed_parts parts_;
};

/// Runs a block of takers. The first one lets all ranks know that this one has begun.
template <class Element>
__device__ void take_sums(device::peer_link& link, const combine_work& work, std::uint64_t deadline) {
  __shared__ bool have_begun;
  if (threadIdx.x == 0) {
    if (blockIdx.x == work.senders) tmap::detail::peer::come_to_barrier(link);
    have_begun = peer::await_combines(link, deadline);
  }
  __syncthreads();
  if (have_begun) sum_taker<Element>(link, work, deadline).run();
}

}  // namespace tmap::kernels
