// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adds up the results of the records that came from other ranks, and sends the sums.

#include <tmap/device/peer_link.cuh>

#include <cuda/atomic>

#include <cstdint>

#include "kernels/peer/combine_block.cuh"
#include "kernels/peer/sum_rows.cuh"

namespace tmap::kernels {

inline constexpr std::uint32_t sending_warps = combine_warps - 1;  ///< of a block; the last one counts

/// Numbers the records that came from other ranks. They are visited from as many places as there
/// are such ranks, so that sums for all of them go on their way all the time.
class foreign_records {
 public:
  __device__ foreign_records(const device::peer_link& link, const combine_work& work)
      : own_(records_of_own(link, work.arrived)),
        count_(link.load(link.rank(), work.request.total) - own_.count),
        places_(link.ranks() > 1 ? link.ranks() - 1 : 1),
        of_place_((count_ + places_ - 1) / places_) {}

  /// Returns how many turns there are. Some have no record, after the last one.
  __device__ std::uint32_t turns() const { return of_place_ * places_; }
  __device__ bool has_record(std::uint32_t turn) const { return number(turn) < count_; }
  __device__ std::uint32_t record(std::uint32_t turn) const {
    const std::uint32_t i = number(turn);
    return i < own_.begin ? i : i + own_.count;
  }

 private:
  __device__ std::uint32_t number(std::uint32_t turn) const { return turn % places_ * of_place_ + turn / places_; }

  records_of_rank own_;
  std::uint32_t count_;
  std::uint32_t places_;
  std::uint32_t of_place_;
};

/// Returns whether bytes lie in the user's bytes of some window. All lanes of a warp call it.
__device__ inline bool lie_in_window(const peer_memory_ref& window, std::uint64_t address, std::uint64_t bytes) {
  const std::uint32_t rank = lane_of_thread();
  if (bytes > window.bytes) return false;
  return __any_sync(~0u, rank < window.ranks && address - window.address(rank) <= window.bytes - bytes);
}

/// Lets one warp of a block count what the others have stored. A fence takes microseconds, in which
/// the others go on. It lies in shared memory.
class stored_parts {
 public:
  /// All threads of the block call it.
  __device__ void init() {
    for (std::uint32_t i = threadIdx.x; i < sending_warps * kept; i += combine_threads) parts_[i / kept][i % kept] = 0;
    if (threadIdx.x == 0) senders_ = sending_warps;
    __syncthreads();
  }

  /// Passes on part number `n` of a warp, all of whose lanes have stored it. One lane calls it.
  __device__ void pass(std::uint32_t n, std::uint64_t place, std::uint32_t units) {
    const word part(parts_[warp_of_thread()][n % kept]);
    std::uint64_t none = 0;
    while (
        !part.compare_exchange_weak(none, place << 4 | units, cuda::memory_order_release, cuda::memory_order_relaxed)) {
      none = 0;
    }
  }
  /// Ends a warp's share. One lane calls it.
  __device__ void leave() { counter(senders_).fetch_sub(1, cuda::memory_order_release); }

  /// Counts all parts, by a warp: lane w those of warp w. If they `are_few`, which `kept` has room
  /// for, it counts them together: the last ones need not wait for the fence of the first.
  __device__ void count(const device::peer_link& link, const peer::sum_place& place, bool are_few) {
    TMAP_KEEP_ROLLED
    for (;;) {
      const bool is_over = have_left();
      if (are_few && !is_over) continue;
      std::uint64_t found[kept];
      if (take(found)) {
        count_found(link, place, found);
      } else if (is_over) {
        return;
      }
    }
  }

 private:
  static constexpr std::uint32_t kept = 4;  ///< parts of a warp
  static_assert(device::warp_lanes * summed_units <= 0xff);
  using word = cuda::atomic_ref<std::uint64_t, cuda::thread_scope_block>;
  using counter = cuda::atomic_ref<std::uint32_t, cuda::thread_scope_block>;

  /// Returns whether all senders have left.
  __device__ bool have_left() {
    std::uint32_t left = 0;
    if (lane_of_thread() == 0) left = counter(senders_).fetch_sub(0, cuda::memory_order_acquire);
    __syncwarp();  // all lanes know what the first one does
    return __shfl_sync(~0u, left, 0) == 0;
  }
  /// Takes the parts of this lane's warp. Returns whether any lane has found some.
  __device__ bool take(std::uint64_t (&found)[kept]) {
    bool has_some = false;
#pragma unroll
    for (std::uint32_t i = 0; i < kept; ++i) {
      const bool is_sender = lane_of_thread() < sending_warps;
      found[i] = is_sender ? word(parts_[lane_of_thread()][i]).exchange(0, cuda::memory_order_acquire) : 0;
      has_some |= found[i] != 0;
    }
    return __any_sync(~0u, has_some);
  }
  static __device__ void count_found(const device::peer_link& link, const peer::sum_place& place,
                                     const std::uint64_t (&found)[kept]) {
    link.release();
#pragma unroll
    for (const std::uint64_t part : found) {
      if (part != 0) peer::count_units(link, place, part >> 8 << 4, static_cast<std::uint32_t>(part & 0xff));
    }
  }

  // The address of a place, which is a multiple of 16, and eight bits for the units. 0: none.
  std::uint64_t parts_[sending_warps][kept];
  std::uint32_t senders_;  ///< warps that may still pass parts
};

/// Sends a warp's share of the sums of records that came from other ranks. A counter deals the
/// parts: some multiprocessors have a slower way to other GPUs.
template <class Element>
class sum_sender {
 public:
  __device__ sum_sender(const device::peer_link& link, const peer_memory_ref& window, const combine_work& work,
                        stored_parts& stored)
      : link_(link),
        window_(window),
        work_(work),
        stored_(stored),
        records_(link, work),
        warps_(work.senders * sending_warps),
        first_dealt_(2 * warps_),
        parts_(records_.turns(), work.request.place.units(), warps_) {}

  /// Returns whether each warp has one part at most.
  __device__ bool are_few() const { return parts_.count() <= warps_; }

  __device__ void run() {
    std::uint32_t part = blockIdx.x * sending_warps + warp_of_thread(), next = part + warps_, sent = 0;
    sum_of_record now = load(part);
    TMAP_KEEP_ROLLED
    while (part < parts_.count()) {
      const sum_of_record of_next = load(next);  // it comes while this part is added up, as the number does
      const std::uint32_t dealt = deal();
      if (now.is_there && lie_in_window(window_, now.target, work_.request.place.end())) send(part, now, sent++);
      part = next;
      now = of_next;
      next = first_dealt_ + __shfl_sync(~0u, dealt, 0);
    }
    if (lane_of_thread() == 0) stored_.leave();
  }

 private:
  struct sum_of_record {
    bool is_there;
    lane_row mine;
    std::uint64_t target;
  };

  /// Returns a number to the first lane. Each warp has begun with two parts of its own.
  __device__ std::uint32_t deal() const {
    return lane_of_thread() == 0 ? link_.deal(offsetof(tmap::detail::peer::window_header, pieces_dealt)) : 0;
  }
  __device__ sum_of_record load(std::uint32_t part) const {
    if (part >= parts_.count() || !records_.has_record(parts_.row(part))) return {};
    const std::uint32_t record = records_.record(parts_.row(part));
    return {true, load_rows(work_.came, record), work_.targets[record]};
  }
  /// Sends a part, number `n` of this warp.
  __device__ void send(std::uint32_t part, const sum_of_record& of, std::uint32_t n) const {
    const summed_part at{parts_, part};
    unit_sums<Element> sums;
    begin_sums<Element>(at, nullptr, sums);
    add_rows<Element>(at, of.mine, lanes_with_rows(of.mine), sums);
    store_sums<Element>(at, sums, reinterpret_cast<uint4*>(of.target));
    __syncwarp();
    if (lane_of_thread() == 0) stored_.pass(n, of.target, parts_.units(part));
    __syncwarp();
  }

  const device::peer_link& link_;
  const peer_memory_ref& window_;
  const combine_work& work_;
  stored_parts& stored_;
  foreign_records records_;
  std::uint32_t warps_;  ///< of all senders
  std::uint32_t first_dealt_;
  summed_parts parts_;
};

/// Runs a block of senders.
template <class Element>
__device__ void send_sums(const device::peer_link& link, const peer_memory_ref& window, const combine_work& work) {
  __shared__ stored_parts stored;
  stored.init();
  sum_sender<Element> sender(link, window, work, stored);
  if (warp_of_thread() == sending_warps) {
    stored.count(link, work.request.place, sender.are_few());
  } else {
    sender.run();
  }
}

}  // namespace tmap::kernels
