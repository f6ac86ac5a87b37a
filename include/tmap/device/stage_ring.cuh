// SPDX-License-Identifier: Apache-2.0
#pragma once

// A ring of shared-memory stages between one producing and one consuming thread of a block. Each stage has a barrier
// for "full" (its load has landed) and one for "empty" (its last reader is done with it).

#include <tmap/device/tile_copy.cuh>

#include <cstdint>

namespace tmap::device {

/// The barriers of up to `Capacity` stages, in shared memory.
template <std::uint32_t Capacity>
struct ring_barriers {
  tile_barrier full[Capacity];
  tile_barrier empty[Capacity];

  /// By one thread, before a block barrier.
  __device__ void init(std::uint32_t stages) {
    for (std::uint32_t i = 0; i < stages; ++i) {
      full[i].init(1);
      empty[i].init(1);
    }
    fence_barrier_init();
  }
};

/// A thread's place in the ring: stage 0, 1, ... and, each time round, the other parity. A register value.
class ring_position {
 public:
  explicit __device__ ring_position(std::uint32_t stages) : stages_(stages) {}

  __device__ std::uint32_t stage() const { return stage_; }
  __device__ std::uint32_t parity() const { return parity_; }
  __device__ void advance() {
    if (++stage_ == stages_) {
      stage_ = 0;
      parity_ ^= 1;
    }
  }

 private:
  std::uint32_t stages_;
  std::uint32_t stage_{0};
  std::uint32_t parity_{0};
};

/// The producing end: takes empty stages in turn and announces the bytes that fill each.
template <std::uint32_t Capacity>
class ring_producer {
 public:
  __device__ ring_producer(ring_barriers<Capacity>& barriers, std::uint32_t stages)
      : barriers_(barriers), position_(stages) {}

  /// Waits until the next stage is empty and returns its index. On a fresh ring every stage is: waiting for the parity
  /// opposite to a barrier's first phase returns at once.
  __device__ std::uint32_t acquire_stage() {
    barriers_.empty[position_.stage()].wait(position_.parity() ^ 1);
    return position_.stage();
  }

  /// Publishes what this thread wrote for the stage and announces `bytes` of loads; the loads then complete on the
  /// returned barrier.
  __device__ tile_barrier& announce(std::uint32_t bytes) {
    tile_barrier& full = barriers_.full[position_.stage()];
    full.arrive_expect(bytes);
    position_.advance();
    return full;
  }

 private:
  ring_barriers<Capacity>& barriers_;
  ring_position position_;
};

/// The consuming end of a thread that stores what the stages hold: takes full stages in turn, and hands each back once
/// the store from it has read it, one stage behind the newest. The ring must have at least two stages.
template <std::uint32_t Capacity>
class ring_storer {
 public:
  __device__ ring_storer(ring_barriers<Capacity>& barriers, std::uint32_t stages)
      : barriers_(barriers), position_(stages) {}

  /// Waits until the next stage is full and returns its index.
  __device__ std::uint32_t wait_full() {
    barriers_.full[position_.stage()].wait(position_.parity());
    return position_.stage();
  }

  /// Closes the group of stores from the current stage, and hands back the stage before it.
  __device__ void store_issued() {
    commit_stores();
    wait_stores_read<1>();
    if (previous_ != none) barriers_.empty[previous_].arrive();
    previous_ = position_.stage();
    position_.advance();
  }

  /// Waits until every store has been written: shared memory may go, and the data is there for whomever this thread
  /// signals next.
  __device__ void drain() { wait_stores_written(); }

 private:
  static constexpr std::uint32_t none = ~0u;

  ring_barriers<Capacity>& barriers_;
  ring_position position_;
  std::uint32_t previous_{none};
};

}  // namespace tmap::device
