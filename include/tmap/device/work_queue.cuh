// SPDX-License-Identifier: Apache-2.0
#pragma once

// Handing out work while a kernel runs: items 0, 1, ... (tiles, or runs of them: tile_shares.cuh) go to whichever
// worker is free. A worker is a thread, a warp, a block whose producing thread takes and passes the item on in a stage
// of its ring, or a cluster (cluster_queue.cuh).

#include <cstdint>

namespace tmap::device {

/// What `take` answers when no item is left.
inline constexpr std::uint64_t no_item = ~std::uint64_t{0};

/// In global memory, 0 before its first use. A queue whose items have all been taken leaves it 0, ready for the next
/// kernel in stream order and for the next replay of a graph. One kernel at a time.
struct queue_counter {
  unsigned long long taken;
};

/// One worker's end of a queue, in registers. Its first item is the worker's own number, each further one is fetched
/// from the counter while the worker still works on the one before it, so that the atomic's latency is hidden. Every
/// worker takes until there is no item left.
class work_queue {
 public:
  /// `worker` below `workers`, the same `items` and `workers` everywhere. Behind an earlier kernel that is still
  /// running (programmatic dependent launch): `take` only after `cudaGridDependencySynchronize`.
  __device__ work_queue(queue_counter* counter, std::uint64_t items, std::uint64_t worker, std::uint64_t workers)
      : counter_(counter), items_(items), workers_(workers), fetched_(worker - workers) {}

  /// The next item, or `no_item`. One thread.
  __device__ std::uint64_t take() {
    const std::uint64_t item = workers_ + fetched_;
    if (item >= items_) return end(item);
    fetched_ = atomicAdd(&counter_->taken, 1ull);
    return item;
  }

  /// The same for all lanes of a warp.
  __device__ std::uint64_t take_warp() {
    const bool fetches = threadIdx.x % 32 == 0;
    const std::uint64_t item = workers_ + __shfl_sync(~0u, fetched_, 0);
    if (item >= items_) return fetches ? end(item) : no_item;
    if (fetches) fetched_ = atomicAdd(&counter_->taken, 1ull);
    return item;
  }

 private:
  // Each item taken fetches once: who is told that `items_ - 1` fetches came before fetched last of all.
  __device__ std::uint64_t end(std::uint64_t item) {
    if (item == workers_ + items_ - 1) counter_->taken = 0;
    return no_item;
  }

  queue_counter* counter_;
  std::uint64_t items_;
  std::uint64_t workers_;
  std::uint64_t fetched_;  // as the atomic answers: an addition here would wait for it
};

}  // namespace tmap::device
