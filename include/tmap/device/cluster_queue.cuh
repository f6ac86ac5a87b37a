// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// A queue whose worker is a cluster: its blocks work on the same items at the same time. One warp,
/// the leader, fetches the items and sends each to all blocks by st.async, which completes on a
/// barrier of the receiving block (PTX ISA 9.7.9.12). A cluster may have one block.

#include <tmap/detail/standard.hpp>
#include <tmap/device/remote_store.cuh>
#include <tmap/device/stage_ring.cuh>
#include <tmap/device/warp.cuh>
#include <tmap/device/work_queue.cuh>

#include <cuda/ptx>

namespace tmap::device {

/// Holds two items in the shared memory of each block, at the same place in all blocks.
struct cluster_mailbox {
  static constexpr std::uint32_t slots = 2;
  std::uint32_t item[slots];
  tile_barrier full[slots];
  tile_barrier empty[slots];  // those of the leader's block count the readers of all blocks

  /// One thread of each block calls it before `sync_cluster`. `readers` is the number of warps of a
  /// block that take items.
  __device__ void init(std::uint32_t readers) {
    for (std::uint32_t i = 0; i < slots; ++i) {
      full[i].init(1);
      full[i].arrive_expect(sizeof(std::uint32_t));
      empty[i].init(readers * blocks_of_cluster());
    }
    fence_barrier_init();
  }
};

/// A reading warp's end of the queue, in registers. All lanes call its functions. Every reader of
/// every block takes until no item is left. After that no block touches the memory of another.
class cluster_queue {
 public:
  /// Construct it after `sync_cluster`. `reader` is this warp's number among those that take, from
  /// 0. Items are numbered as in `work_queue`, whose workers are the clusters of a one-dimensional
  /// grid.
  __device__ cluster_queue(cluster_mailbox& mailbox, queue_counter* counter, std::uint32_t items, std::uint32_t reader,
                           asks when = asks::early)
      : mailbox_(mailbox),
        queue_(counter, items, cuda::ptx::get_sreg_clusterid_x(), cuda::ptx::get_sreg_nclusterid_x(), when),
        is_first_(reader == 0),
        leads_(reader == 0 && block_of_cluster() == 0),
        when_(when) {
    if (leads_ && when_ == asks::early) send();
  }

  /// Returns the next item, the same in all blocks of the cluster, or `no_item`. With
  /// `asks::early`, while the leader works on one item, the next one is in the mailboxes and the
  /// one after it is being fetched.
  __device__ std::uint32_t take_warp() {
    if (leads_) send();
    const std::uint32_t slot = reads_.stage();
    mailbox_.full[slot].wait_cluster(reads_.parity());
    const std::uint32_t item = mailbox_.item[slot];
    if (item == no_item) {
      if (leads_ && when_ == asks::late) send();
      return no_item;
    }
    __syncwarp();
    if (lane_index() == 0) hand_back(slot);
    reads_.advance();
    return item;
  }

 private:
  // Waits until all readers have read what the slot held, then sends the next item. After the last
  // one, which is `no_item`, it only waits, so that the leader's block outlives the arrivals of the
  // others.
  __device__ void send() {
    const std::uint32_t slot = sends_.stage();
    wait_read(mailbox_.empty[slot], sends_.parity() ^ 1);
    if (has_ended_) return;
    const std::uint32_t item = queue_.take_warp();
    if (const std::uint32_t block = lane_index(); block < blocks_of_cluster()) {
      store_async(shared_of_block(block, &mailbox_.item[slot]), item, remote_barrier(block, mailbox_.full[slot]));
    }
    has_ended_ = item == no_item;
    sends_.advance();
  }

  // One lane calls it. It expects the slot's next item, and signals to the leader that this warp
  // has read this one. The arrival is relaxed, as only that read must come before it: a release
  // would wait for every store of this thread to global memory.
  __device__ void hand_back(std::uint32_t slot) {
    namespace ptx = cuda::ptx;
    if (is_first_) mailbox_.full[slot].arrive_expect(sizeof(std::uint32_t));
    std::uint64_t* const empty = remote_barrier(0, mailbox_.empty[slot]).word();
    ptx::mbarrier_arrive(ptx::sem_relaxed, ptx::scope_cluster, ptx::space_cluster, empty);
  }

  static __device__ void wait_read(tile_barrier& empty, std::uint32_t parity) {
    namespace ptx = cuda::ptx;
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_relaxed, ptx::scope_cluster, empty.word(), parity)) {
    }
  }

  cluster_mailbox& mailbox_;
  work_queue queue_;
  bool is_first_;
  bool leads_;
  asks when_;
  bool has_ended_{false};
  ring_position sends_{cluster_mailbox::slots};
  ring_position reads_{cluster_mailbox::slots};
};

}  // namespace tmap::device
