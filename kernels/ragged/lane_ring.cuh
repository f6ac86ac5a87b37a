// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loads ahead into shared memory, where each lane has places of its own. Lanes need no barriers,
// and registers hold only what is used.

#include "kernels/values/value_chunk.cuh"

#include <tmap/device/async_copy.cuh>

#include <cstdint>

namespace tmap::kernels {

/// All that a lane holds at once.
template <value_type From>
using lane_chunks = chunk<From>[chunk<From>::most];

/// A lane loads two sets of values while it uses the third.
inline constexpr std::uint32_t ring_sets = 3;
inline constexpr std::uint32_t sets_ahead = ring_sets - 1;

/// Returns the shared memory that the lanes of a block need.
constexpr std::uint32_t lane_ring_bytes(std::uint32_t threads) {
  return ring_sets * lane_bytes * threads;
}

/// The places in shared memory for what a lane loads ahead. No other lane reads them, so a lane
/// waits for its own loads only.
template <value_type From, std::uint32_t Threads>
class lane_ring {
 public:
  explicit __device__ lane_ring(uint4* shared) : own_(shared + threadIdx.x) {}

  /// Starts to load chunk `k` of a set. A chunk that does not exist becomes 0.
  __device__ void load(std::uint32_t set, std::uint32_t k, std::uint64_t address, bool exists) const {
#pragma unroll
    for (std::uint32_t i = 0; i < units; ++i) {
      device::copy_async_zero_filled<sizeof(uint4)>(place(set, k, i), reinterpret_cast<const uint4*>(address) + i,
                                                    exists ? sizeof(uint4) : 0);
    }
  }
  __device__ void read(std::uint32_t set, lane_chunks<From>& held) const {
#pragma unroll
    for (std::uint32_t k = 0; k < chunk<From>::most; ++k) {
#pragma unroll
      for (std::uint32_t i = 0; i < units; ++i) held[k].set_unit(i, *place(set, k, i));
    }
  }
  __device__ static std::uint32_t after(std::uint32_t set) {
    return set + 1 == ring_sets ? 0 : set + 1;
  }

 private:
  static constexpr std::uint32_t units = chunk<From>::bytes / sizeof(uint4);

  __device__ uint4* place(std::uint32_t set, std::uint32_t k, std::uint32_t unit) const {
    return own_ + ((set * chunk<From>::most + k) * units + unit) * Threads;
  }

  uint4* own_;
};

/// The part of a piece that one of several workers does: `number`, `number` + `count`, ... of its
/// batches.
struct piece_share {
  std::uint32_t number;
  std::uint32_t count;
};

/// Calls `finish(values, i)` for each i below `count` that is the worker's. `load(set, i)` starts
/// to load them.
template <value_type From, std::uint32_t Threads, class Load, class Finish>
__device__ void load_ahead(const lane_ring<From, Threads>& ring, piece_share share, std::uint32_t count,
                           const Load& load, const Finish& finish) {
  std::uint32_t next = share.number;
  const auto load_next = [&](std::uint32_t set) {
    if (next < count) load(set, next);
    device::commit_copies();
    next += share.count;
  };
#pragma unroll
  for (std::uint32_t set = 0; set < sets_ahead; ++set) load_next(set);
  std::uint32_t used = sets_ahead;
  std::uint32_t set = 0;
#pragma unroll 1
  for (std::uint32_t i = share.number; i < count; i += share.count) {
    load_next(used);
    device::wait_copies<sets_ahead>();
    lane_chunks<From> held;
    ring.read(set, held);
    finish(held, i);
    used = set;
    set = ring.after(set);
  }
}

}  // namespace tmap::kernels
