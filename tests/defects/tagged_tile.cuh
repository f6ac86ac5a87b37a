// SPDX-License-Identifier: Apache-2.0
#pragma once

// Every element of a tensor is a tag that names its tensor, so one foreign element proves that a
// tile came through a wrong map. A warp loads tiles and counts foreign elements. Seeded faults load
// without the acquire.

#include <tmap/device/acquire.cuh>
#include <tmap/device/tile_copy.cuh>
#include <tmap/tensor_map.hpp>

#include <cuda/ptx>

#include <cstdint>

namespace tmap::testing {

using tag = std::uint32_t;
/// Counts in device memory, where kernels add to it.
using device_count = unsigned long long;

inline constexpr tag poison_tag = 0x5c5c5c5c;

/// Holds one tile in shared memory, and the barrier on which its loads complete.
template <std::uint32_t Elements>
struct tagged_tile {
  alignas(128) tag elements[Elements];
  device::tile_barrier barrier;
};

/// Waits for a phase with a limit, so that a load that never completes fails its test instead of
/// hanging it.
__device__ inline bool wait_a_second(device::tile_barrier& barrier, std::uint32_t parity) {
  constexpr long long cycles = std::int64_t{1} << 31;
  const long long begin = clock64();
  while (!cuda::ptx::mbarrier_try_wait_parity(barrier.word(), parity)) {
    if (clock64() - begin > cycles) return false;
  }
  return true;
}

/// Starts a load through a map that nobody acquired, by the instruction that `load_tile` guards.
/// One thread calls it.
template <std::uint32_t Rank>
__device__ void load_tile_unacquired(void* shared, const tensor_map* slot, const std::int32_t (&at)[Rank],
                                     device::tile_barrier& barrier) {
  namespace ptx = cuda::ptx;
  ptx::cp_async_bulk_tensor(ptx::space_shared, ptx::space_global, shared, slot, at, barrier.word());
}

/// Loads into one tile with one warp. All 32 lanes call each function together.
template <std::uint32_t Elements>
class tile_reader {
 public:
  explicit __device__ tile_reader(tagged_tile<Elements>& tile) : tile_(tile) {
    if (lane() == 0) {
      tile_.barrier.init(1);
      device::fence_barrier_init();
    }
    __syncwarp();
  }

  static __device__ std::uint32_t lane() { return threadIdx.x % warpSize; }

  /// Loads through the acquired map that `obtain` returns. Lane 0 calls `obtain`.
  template <std::uint32_t Rank, class Obtain>
  __device__ void load(const Obtain& obtain, const std::int32_t (&at)[Rank]) {
    load_by([&] { device::load_tile<Rank>(tile_.elements, obtain(), at, tile_.barrier); });
  }

  template <std::uint32_t Rank>
  __device__ void load_unacquired(const tensor_map* slot, const std::int32_t (&at)[Rank]) {
    load_by([&] { load_tile_unacquired<Rank>(tile_.elements, slot, at, tile_.barrier); });
  }

  template <std::uint32_t Rank>
  __device__ void load_slot(const tensor_map* slot, const std::int32_t (&at)[Rank], bool acquires) {
    if (acquires) {
      load([&] { return device::acquire(slot); }, at);
    } else {
      load_unacquired(slot, at);
    }
  }

  /// Counts the elements of the tile that are not `expected(i)`. Every lane returns the same
  /// number.
  template <class Expected>
  __device__ std::uint32_t foreign(const Expected& expected) const {
    std::uint32_t count = 0;
    for (std::uint32_t i = lane(); i < Elements; i += warpSize) count += tile_.elements[i] != expected(i) ? 1 : 0;
    return __reduce_add_sync(~0u, count);
  }

 private:
  /// Poisons the tile first, so that every element counts as foreign if the load never arrives.
  template <class Issue>
  __device__ void load_by(const Issue& issue) {
    for (std::uint32_t i = lane(); i < Elements; i += warpSize) tile_.elements[i] = poison_tag;
    device::fence_shared_writes();
    __syncwarp();
    if (hung_) return;
    if (lane() == 0) {
      tile_.barrier.arrive_expect(Elements * sizeof(tag));
      issue();
    }
    __syncwarp();
    hung_ = __any_sync(~0u, !wait_a_second(tile_.barrier, parity_)) != 0;
    parity_ ^= 1;
  }

  tagged_tile<Elements>& tile_;
  std::uint32_t parity_{0};
  bool hung_{false};
};

}  // namespace tmap::testing
