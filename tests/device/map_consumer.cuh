// SPDX-License-Identifier: Apache-2.0
#pragma once

// Uses maps as a naive consumer would: loads and stores at every kind of corner, with one warp per
// map.

#include <tmap/device/acquire.cuh>
#include <tmap/device/tile_copy.cuh>
#include <tmap/patch_rules.hpp>

#include <cstdint>

#include "support/tile_corners.hpp"

namespace tmap::testing {

inline constexpr unsigned char canary = 0xa5;
struct consumed {
  unsigned long long maps;      ///< maps whose copies all completed
  unsigned long long too_wide;  ///< maps whose tile does not fit the shared memory
  unsigned long long canaries;  ///< bytes read from places that no map may reach
};

template <std::uint32_t Rank>
class corner_user {
 public:
  __device__ corner_user(const tensor_spec& spec, unsigned char* tile, device::tile_barrier& barrier)
      : spec_(spec), tile_(tile), barrier_(barrier) {}

  /// Loads at every corner. If `counts_canaries` is set, looks for bytes that no map may reach.
  __device__ void load_all(device::acquired_map map, std::uint32_t& parity, bool counts_canaries, consumed* totals) {
    for (std::uint32_t turn = 0; turn < 2 * load_corners; ++turn) {
      std::int32_t at[Rank];
      place(at, turn, load_corners);
      if (threadIdx.x == 0) {
        barrier_.arrive_expect(static_cast<std::uint32_t>(tile_bytes(spec_)));
        device::load_tile<Rank>(tile_, map, at, barrier_);
      }
      barrier_.wait(parity);
      parity ^= 1;
      if (counts_canaries) count_canaries(totals);
      __syncwarp();
    }
  }

  /// One thread calls it.
  __device__ void store_all(device::acquired_map map) {
    for (std::uint32_t turn = 0; turn < 2 * store_corners; ++turn) {
      std::int32_t at[Rank];
      place(at, turn, store_corners);
      device::store_tile<Rank>(map, at, tile_);
    }
    device::commit_stores();
    device::wait_stores_written();
  }

 private:
  __device__ void place(std::int32_t (&at)[Rank], std::uint32_t turn, std::uint32_t corners) const {
    for (std::uint32_t axis = 0; axis < Rank; ++axis) at[axis] = corner_coordinate(spec_, axis, turn, corners);
  }

  __device__ void count_canaries(consumed* totals) const {
    const auto bytes = static_cast<std::uint32_t>(tile_footprint_bytes(spec_));
    for (std::uint32_t i = 4 * threadIdx.x; i < bytes; i += 4 * warpSize) {
      const std::uint32_t same = __vcmpeq4(*reinterpret_cast<const std::uint32_t*>(tile_ + i), 0x01010101u * canary);
      if (same != 0) atomicAdd(&totals->canaries, 1);
    }
  }

  const tensor_spec& spec_;
  unsigned char* tile_;
  device::tile_barrier& barrier_;
};

/// Consumes every map of a batch, with blocks of one warp and `tile_limit` bytes of dynamic shared
/// memory.
template <std::uint32_t Rank>
__global__ void consume_maps(const __grid_constant__ map_template base, const map_patch* patches,
                             const tensor_map* maps, const map_status* statuses, std::uint64_t count,
                             std::uint32_t tile_limit, bool counts_canaries, consumed* totals) {
  extern __shared__ __align__(1024) unsigned char tile[];
  __shared__ device::tile_barrier barrier;
  if (threadIdx.x == 0) barrier.init(1), device::fence_barrier_init();
  for (std::uint32_t i = threadIdx.x; i < tile_limit; i += warpSize) tile[i] = 0x5c;
  device::fence_shared_writes();
  __syncwarp();
  std::uint32_t parity = 0;
  for (std::uint64_t i = blockIdx.x; i < count; i += gridDim.x) {
    const tensor_spec spec = statuses[i].is_good() ? patched_spec(base, patches[i]) : empty_spec(base.spec, 0);
    if (tile_footprint_bytes(spec) > tile_limit) {
      if (threadIdx.x == 0) atomicAdd(&totals->too_wide, 1);
      continue;
    }
    const device::acquired_map map = device::acquire(&maps[i]);
    corner_user<Rank> user(spec, tile, barrier);
    user.load_all(map, parity, counts_canaries, totals);
    if (threadIdx.x == 0) user.store_all(map), atomicAdd(&totals->maps, 1);
    __syncwarp();
  }
}

}  // namespace tmap::testing
