// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// A ring of shared-memory stages between the threads of a block that fill them and those that use
/// them. Each stage has a barrier for "full" (all data for it has landed) and one for "empty" (its
/// last reader is done with it). It suits
/// - one thread that fills (`Fillers` 1: tensor map and bulk copies), or several (a warp with
///   LDGSTS copies; threads that compute what another thread stores);
/// - any number of consumers: threads, warps, or one thread that stores what the stages hold;
/// - a thread or warp that does both: it keeps a producer and a consumer, and fills at most
///   `stages` ahead of its use.
///
/// The number of stages is a constant (`Capacity`), or known only when the kernel runs (the last
/// constructor argument).
///
/// Every thread that takes part keeps its own producer or consumer (registers) and goes through all
/// stages in turn. All waits are by parity, which only distinguishes a phase from the one before
/// it, so no thread may run further ahead. The ring ensures that, as each thread arrives for
/// itself: a stage is neither full nor empty before the last of them has called, however late that
/// is. (PTX ISA 9.7.13.15, mbarrier)

#include <tmap/detail/standard.hpp>
#include <tmap/device/async_copy.cuh>
#include <tmap/device/tile_copy.cuh>
#include <tmap/device/warp.cuh>

namespace tmap::device {

/// The barriers of up to `Capacity` stages, in shared memory. `Fillers` is the number of threads
/// that take part in filling each stage, including those that pass.
template <std::uint32_t Capacity, std::uint32_t Fillers = 1>
struct ring_barriers {
  static_assert(Capacity >= 1 && Fillers >= 1);
  tile_barrier full[Capacity];
  tile_barrier empty[Capacity];

  /// One thread calls it before a block barrier. It calls `fence_barrier_init` itself. `releases`
  /// is the number of releases that empty a stage: one from each consuming thread (`release`,
  /// `store_issued`) or warp (`release_warp`).
  __device__ void init(std::uint32_t stages = Capacity, std::uint32_t releases = 1) {
    for (std::uint32_t i = 0; i < stages; ++i) {
      full[i].init(Fillers);
      empty[i].init(releases);
    }
    fence_barrier_init();
  }
};

/// A thread's place in the ring: stage 0, 1, ... and, after each round, the other parity. It is a
/// register value.
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
  /// Passes over as many stages as the ring has.
  __device__ void advance_round() { parity_ ^= 1; }

 private:
  std::uint32_t stages_;
  std::uint32_t stage_{0};
  std::uint32_t parity_{0};
};

/// Remembers which phase each of up to 32 stages completes next. It is a register value of a thread
/// whose own warp fills the stages, and which waits only for some of them. A warp that orders its
/// loads and uses by itself needs no "empty" barriers.
class stage_phases {
 public:
  /// Waits until the stage that this barrier belongs to is full once more.
  __device__ void wait_full(tile_barrier& full, std::uint32_t stage) {
    full.wait(bits_ >> stage & 1);
    bits_ ^= 1u << stage;
  }

 private:
  std::uint32_t bits_{0};  // bit i: the parity that stage i completes next
};

/// The producing end. For each stage call `acquire_stage`, then exactly one of the calls below it.
/// Where several threads fill, each keeps a producer and makes its own call, which is its one
/// arrival. Each thread may choose another call for each stage:
///
/// - `announce` to load by the copy engine.
/// - `publish_after_copies` to load by LDGSTS.
/// - `publish` after ordinary stores.
/// - `pass` to bring nothing.
template <std::uint32_t Capacity, std::uint32_t Fillers = 1>
class ring_producer {
 public:
  explicit __device__ ring_producer(ring_barriers<Capacity, Fillers>& barriers, std::uint32_t stages = Capacity)
      : barriers_(barriers), position_(stages) {}

  /// Waits until the next stage is empty and returns its index. On a fresh ring every stage is
  /// empty: a wait for the parity opposite to a barrier's first phase returns at once.
  __device__ std::uint32_t acquire_stage() {
    barriers_.empty[position_.stage()].wait(position_.parity() ^ 1);
    return position_.stage();
  }

  /// Publishes what this thread wrote for the stage and announces `bytes` of copies, which the
  /// caller then starts on the returned barrier.
  __device__ tile_barrier& announce(std::uint32_t bytes) {
    tile_barrier& full = barriers_.full[position_.stage()];
    // LDGSTS or ordinary stores may have written the stage in the last round.
    if constexpr (Fillers > 1) fence_shared_writes();
    full.arrive_expect(bytes);
    position_.advance();
    return full;
  }

  /// Leaves the stage to the others.
  __device__ void pass() {
    static_assert(Fillers > 1,
                  "a thread that passes is a filler: count it in `Fillers`, or let it leave the ring alone");
    publish();
  }

  /// Publishes what this thread wrote for the stage by ordinary stores.
  __device__ void publish() {
    barriers_.full[position_.stage()].arrive();
    position_.advance();
  }

  /// Publishes the data of this thread's LDGSTS copies so far once they have landed, without
  /// waiting for them. It does not cover ordinary stores. A consumer that stores the stage by the
  /// copy engine calls `fence_shared_writes` first, as no other thread can.
  __device__ void publish_after_copies() {
    arrive_after_copies(barriers_.full[position_.stage()]);
    position_.advance();
  }

 private:
  ring_barriers<Capacity, Fillers>& barriers_;
  ring_position position_;
};

/// The consuming end of threads that read the stages: each waits for the next full stage, reads it,
/// and releases it. The releases of a stage must be as many as the barriers were initialised with.
template <std::uint32_t Capacity, std::uint32_t Fillers = 1>
class ring_consumer {
 public:
  explicit __device__ ring_consumer(ring_barriers<Capacity, Fillers>& barriers, std::uint32_t stages = Capacity)
      : barriers_(barriers), position_(stages) {}

  /// Waits until the next stage is full and returns its index.
  __device__ std::uint32_t wait_full() {
    barriers_.full[position_.stage()].wait(position_.parity());
    return position_.stage();
  }

  /// Releases the stage once: this thread has read it.
  __device__ void release() {
    barriers_.empty[position_.stage()].arrive();
    position_.advance();
  }

  /// Releases the stage once: this warp has read it. All its lanes call it.
  __device__ void release_warp() {
    __syncwarp();
    if (lane_index() == 0) barriers_.empty[position_.stage()].arrive();
    position_.advance();
  }

 private:
  ring_barriers<Capacity, Fillers>& barriers_;
  ring_position position_;
};

/// The consuming end of a thread that stores what the stages hold. It takes full stages in turn,
/// and hands each back once the store from it has read it, when the next one has been issued. The
/// ring must have at least two stages, and a thread that fills as well runs at most `stages - 1`
/// ahead. It is the only consumer, or one of those that `releases` counts.
template <std::uint32_t Capacity, std::uint32_t Fillers = 1>
class ring_storer {
 public:
  explicit __device__ ring_storer(ring_barriers<Capacity, Fillers>& barriers, std::uint32_t stages = Capacity)
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

  /// Waits until every store has been written. Shared memory may then be freed, and any thread that
  /// this one signals next sees the data. Hands back the last stage, so that the ring may go on.
  __device__ void drain() {
    wait_stores_written();
    if (previous_ != none) barriers_.empty[previous_].arrive();
    previous_ = none;
  }

 private:
  static constexpr std::uint32_t none = ~0u;

  ring_barriers<Capacity, Fillers>& barriers_;
  ring_position position_;
  std::uint32_t previous_{none};
};

}  // namespace tmap::device
