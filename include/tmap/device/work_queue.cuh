// SPDX-License-Identifier: Apache-2.0
#pragma once

// Handing out work while a kernel runs: items 0, 1, ... (tiles, or runs of them: tile_shares.cuh)
// go to whichever worker is free. A worker is a thread, a warp, a block whose producing thread
// takes and passes the item on in a stage of its ring, or a cluster (cluster_queue.cuh).
//
// When it is worth it (H200; docs/measurements/ragged.md, "Distribution"):
// - Equal tiles: hardly ever. Static shares are as fast; a queue of single tiles costs 8 % at 16
//   KiB and a third at 4 KiB a tile, as a block takes one tile an answer of the counter; a queue of
//   runs costs 6 % at most.
// - Unequal tiles: always more than consecutive shares where the slow tiles lie together, which
//   took four times as long. Interleaved shares did as well as the queue; a queue of runs gained 4
//   % where slow tiles were scattered. Where neighbours are slow together keep runs short, or put
//   them first: the run taken last is the tail.

#include <tmap/detail/standard.hpp>
#include <tmap/device/warp.cuh>

namespace tmap::device {

/// What `take` answers when no item is left.
inline constexpr std::uint32_t no_item = ~0u;

/// In global memory, 0 before its first use (by a memset once, or by an earlier kernel). A queue
/// whose items have all been taken leaves it 0, ready for the next kernel in stream order and for
/// the next replay of a graph. One kernel at a time.
struct queue_counter {
  std::uint32_t taken;
};

/// When a worker asks the counter for an item: when it takes the one before, so that the atomic's
/// latency is hidden, or when it takes the item itself. Late, and taken just before it is needed,
/// an item starts when those next to it do: for items that are long, or that find in L2 what their
/// neighbours read.
enum class asks : std::uint32_t { early, late };

/// One worker's end of a queue, in registers. Its first item is the worker's own number. Every
/// worker takes until there is no item left, and not again.
class work_queue {
 public:
  /// `worker` below `workers`; the same `items` and `workers` everywhere, each at most 2^31. Behind
  /// an earlier kernel that may still be running (programmatic dependent launch): `take` only after
  /// `cudaGridDependencySynchronize`.
  __device__ work_queue(queue_counter* counter, std::uint32_t items, std::uint32_t worker, std::uint32_t workers,
                        asks when = asks::early)
      : counter_(counter), items_(items), workers_(workers), fetched_(worker - workers), when_(when) {}

  /// The next item, or `no_item`. One thread.
  __device__ std::uint32_t take() {
    if (when_ == asks::late && has_first_) fetched_ = fetch();
    has_first_ = true;
    const std::uint32_t item = workers_ + fetched_;
    if (item >= items_) return no_item;
    if (when_ == asks::early) fetched_ = fetch();
    return item;
  }

  /// The same for all lanes of a warp.
  __device__ std::uint32_t take_warp() {
    const bool fetches = lane_index() == 0;
    if (when_ == asks::late && has_first_ && fetches) fetched_ = fetch();
    has_first_ = true;
    const std::uint32_t item = workers_ + __shfl_sync(~0u, fetched_, 0);
    if (item >= items_) return no_item;
    if (when_ == asks::early && fetches) fetched_ = fetch();
    return item;
  }

 private:
  // Each worker fetches as often as it takes an item, so the counter wraps to 0 with the last fetch
  // of all. ptxas would add for all lanes at once if this were an addition, and wait for the answer
  // right behind it.
  __device__ std::uint32_t fetch() { return atomicInc(&counter_->taken, items_ - 1); }

  queue_counter* counter_;
  std::uint32_t items_;
  std::uint32_t workers_;
  std::uint32_t fetched_;  // as the atomic answers: an addition here would wait for it
  asks when_;
  bool has_first_{false};
};

}  // namespace tmap::device
