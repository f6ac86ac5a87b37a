// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Hands out work while a kernel runs: items 0, 1, ... (tiles, or runs of them: tile_shares.cuh) go
/// to the worker that is free. A worker is a thread, a warp, a cluster (cluster_queue.cuh), or a
/// block whose producing thread takes the item and passes it on in a stage of its ring.
///
/// When it is worth it (H200; docs/measurements/ragged.md, "Distribution of tiles over blocks"):
/// - Equal tiles: hardly ever. Static shares are as fast. A queue of single tiles costs 8 % at 16
///   KiB a tile, and a third at 4 KiB, as a block fetches each tile from the counter. A queue of
///   runs costs at most 6 %.
/// - Unequal tiles: always, compared with consecutive shares, which took four times as long where
///   the slow tiles lay together. Interleaved shares did as well as the queue. A queue of runs
///   gained 4 % where slow tiles were scattered. Where neighbours are slow together, keep runs
///   short, or put them first: the run taken last is the tail.

#include <tmap/detail/standard.hpp>
#include <tmap/device/warp.cuh>

namespace tmap::device {

/// The value that `take` returns when no item is left.
inline constexpr std::uint32_t no_item = ~0u;

/// The counter of a queue, in global memory. It must be 0 before its first use (by a memset once,
/// or by an earlier kernel). A queue whose items have all been taken leaves it 0, ready for the
/// next kernel in stream order and for the next replay of a graph. One kernel uses it at a time.
struct queue_counter {
  std::uint32_t taken;
};

/// When a worker asks the counter for an item. `early` asks when it takes the item before, which
/// hides the atomic's latency. `late` asks when it takes the item itself. An item that is taken
/// late, just before it is needed, starts when its neighbours do: that suits items that are long,
/// or that find in L2 what their neighbours read.
enum class asks : std::uint32_t { early, late };

/// One worker's end of a queue, in registers. Its first item is the worker's own number. Every
/// worker takes until no item is left, and not again.
class work_queue {
 public:
  /// `worker` is below `workers`. `items` and `workers` are the same for all, each at most 2^31.
  /// After an earlier kernel that may still be running (programmatic dependent launch), call `take`
  /// only after `cudaGridDependencySynchronize`.
  __device__ work_queue(queue_counter* counter, std::uint32_t items, std::uint32_t worker, std::uint32_t workers,
                        asks when = asks::early)
      : counter_(counter), items_(items), workers_(workers), fetched_(worker - workers), when_(when) {}

  /// Returns the next item, or `no_item`. One thread calls it.
  __device__ std::uint32_t take() {
    if (when_ == asks::late && has_first_) fetched_ = fetch();
    has_first_ = true;
    const std::uint32_t item = workers_ + fetched_;
    if (item >= items_) return no_item;
    if (when_ == asks::early) fetched_ = fetch();
    return item;
  }

  /// Returns the same item to all lanes of a warp, which call it together.
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
  // of all. If this were an addition, ptxas would add for all lanes at once and wait for the result
  // right after it.
  __device__ std::uint32_t fetch() { return atomicInc(&counter_->taken, items_ - 1); }

  queue_counter* counter_;
  std::uint32_t items_;
  std::uint32_t workers_;
  std::uint32_t fetched_;  // as the atomic returns it: an addition here would wait for it
  asks when_;
  bool has_first_{false};
};

}  // namespace tmap::device
