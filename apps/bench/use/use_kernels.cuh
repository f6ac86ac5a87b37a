// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels of use_bench. Each records how long a thread or warp waits when it uses tensor maps.
// Every load moves one tile of 1 KiB. The thread that issues it measures the time from the
// instruction to the end of the wait on its barrier. The data is warm: the same thread has just
// loaded the same bytes through another map.
#include <tmap/device/encode_warp.cuh>
#include <tmap/device/patch_source.cuh>
#include <tmap/device/tile_copy.cuh>

#include <cuda/atomic>
#include <cuda/ptx>

#include "apps/bench/use/cycles.hpp"

namespace tmap::apps::bench {
namespace {

constexpr std::uint32_t tile_columns = 32;
constexpr std::uint32_t tile_rows = 8;
constexpr std::uint32_t tile_words = tile_columns * tile_rows;
constexpr std::uint32_t tile_bytes = tile_words * sizeof(std::uint32_t);
constexpr std::uint32_t tiles = 512;           // each block has as many slots, and its slot s holds a map of tile s
constexpr std::uint32_t prefetch_lead = 3000;  // cycles between an early prefetch and the load
constexpr std::uint32_t located_maps = 16;

struct map_set {
  tensor_map maps[located_maps];
};
__constant__ map_set constant_maps;
__device__ device::guard_page page;

/// The parameters of every kernel.
struct inputs {
  tensor_map all_tiles;     // every tile, by its row
  const tensor_map* slots;  // slots of block 0, then of block 1, ...
  std::uint32_t first;      // the first tile of this launch: launches never share slots
  cycle_log log;

  __device__ std::uint32_t tile(std::uint32_t i) const { return first + i; }
  __device__ const tensor_map* slot(std::uint32_t i) const { return slots + blockIdx.x * tiles + tile(i); }
};

struct workspace {
  alignas(128) std::uint32_t tile[tile_words];
  device::tile_barrier barrier;
};

struct nothing {
  __device__ void operator()() const {}
};

/// Computes the difference in 64 bits. For the low half alone, ptxas may read the clock with S2UR,
/// which itself takes tens of cycles.
template <class Work>
__device__ std::uint32_t timed(const Work& work) {
  const long long start = clock64();
  work();
  const long long cycles = clock64() - start;
  return cycles < cycle_log::unwritten ? static_cast<std::uint32_t>(cycles) : cycle_log::unwritten - 1;
}

__device__ void pause(std::uint32_t cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
}

/// Runs the loads of one thread, one at a time.
class timed_loads {
 public:
  __device__ timed_loads(const tensor_map& all_tiles, workspace& shared) : all_tiles_(all_tiles), shared_(shared) {
    shared_.barrier.init(1);
    device::fence_barrier_init();
  }

  /// Loads a tile through its own map after `before`, and returns the cycles of both. It issues the
  /// instruction of `load_tile` directly, because some figures need maps that this block has not
  /// acquired.
  template <class Before = nothing>
  __device__ std::uint32_t load(const tensor_map* map, std::uint32_t tile, const Before& before = {}) {
    return load_rows(map, 0, tile, before);
  }

  /// Makes the tile's data warm without using its own map.
  __device__ void warm(std::uint32_t tile) {
    load_rows(device::parameter_map(all_tiles_).get(), static_cast<std::int32_t>(tile * tile_rows), tile, nothing{});
  }

 private:
  template <class Before>
  __device__ std::uint32_t load_rows(const tensor_map* map, std::int32_t row, std::uint32_t tile,
                                     const Before& before) {
    namespace ptx = cuda::ptx;
    const std::int32_t at[] = {0, row};
    shared_.barrier.arrive_expect(tile_bytes);
    const std::uint32_t cycles = timed([&] {
      before();
      ptx::cp_async_bulk_tensor(ptx::space_shared, ptx::space_global, shared_.tile, map, at, shared_.barrier.word());
      shared_.barrier.wait(parity_);
    });
    parity_ ^= 1;
    if (*static_cast<volatile std::uint32_t*>(shared_.tile) != tile) __trap();
    return cycles;
  }

  const tensor_map& all_tiles_;
  workspace& shared_;
  std::uint32_t parity_{0};
};

/// Measures the first copies of a block, when only the level-2 cache is warm. Figures: the acquire,
/// the load, the load of another new map and tile, and the load of a third one whose data this
/// block has just loaded.
__global__ void cold_start(const __grid_constant__ inputs in) {
  __shared__ workspace shared;
  timed_loads loads(in.all_tiles, shared);
  in.log.put(0, 0, timed([&] { device::acquire(in.slot(0)); }));
  in.log.put(1, 0, loads.load(in.slot(0), in.tile(0)));
  device::acquire(in.slot(1));
  in.log.put(2, 0, loads.load(in.slot(1), in.tile(1)));
  loads.warm(in.tile(2));
  device::acquire(in.slot(2));
  in.log.put(3, 0, loads.load(in.slot(2), in.tile(2)));
}

/// Uses maps that are new to this multiprocessor, four per sample.
__global__ void first_touches(const __grid_constant__ inputs in) {
  __shared__ workspace shared;
  timed_loads loads(in.all_tiles, shared);
  for (std::uint32_t i = 0; i < in.log.samples; ++i) {
    const auto fresh = [&](std::uint32_t which) {
      loads.warm(in.tile(4 * i + which));
      return in.slot(4 * i + which);
    };
    const std::uint32_t tile = in.tile(4 * i);
    in.log.put(0, i, loads.load(fresh(0), tile));
    const tensor_map* slot = fresh(1);
    in.log.put(1, i, timed([&] { device::acquire(slot); }));
    in.log.put(2, i, loads.load(slot, tile + 1));
    const device::acquired_map early = device::acquire(fresh(2));
    device::prefetch(early);
    pause(prefetch_lead);
    in.log.put(3, i, loads.load(early.get(), tile + 2));
    const device::acquired_map late = device::acquire(fresh(3));
    in.log.put(4, i, loads.load(late.get(), tile + 3, [&] { device::prefetch(late); }));
  }
}

/// Uses a map that this thread has used before.
__global__ void touches_again(const __grid_constant__ inputs in) {
  __shared__ workspace shared;
  timed_loads loads(in.all_tiles, shared);
  for (std::uint32_t i = 0; i < in.log.samples; ++i) {
    const tensor_map* const slot = in.slot(i);
    const std::uint32_t tile = in.tile(i);
    const device::acquired_map map = device::acquire(slot);
    const auto prefetch_early = [&] { device::prefetch(map), pause(prefetch_lead); };
    const auto prefetch_late = [&] { device::prefetch(map); };
    loads.load(slot, tile);
    in.log.put(0, i, loads.load(slot, tile));
    prefetch_early();
    in.log.put(1, i, loads.load(slot, tile));
    in.log.put(2, i, loads.load(slot, tile, prefetch_late));
    in.log.put(3, i, timed([&] { device::acquire(slot); }));
    in.log.put(4, i, loads.load(slot, tile));
    device::acquire(slot);
    prefetch_early();
    in.log.put(5, i, loads.load(slot, tile));
    device::acquire(slot);
    in.log.put(6, i, loads.load(slot, tile, prefetch_late));
    device::acquire(slot + 1);
    in.log.put(7, i, loads.load(slot, tile));
    in.log.put(8, i, timed([&] { device::acquire(slot, device::map_scope::sys); }));
    in.log.put(9, i, loads.load(slot, tile));
    in.log.put(10, i, timed(prefetch_late));
  }
}

enum class map_place { parameter, constant, slot };

/// Uses the same maps in another kind of memory. Figures: first touch, touched again, first touch
/// after an early prefetch.
__global__ void touches_by_place(const __grid_constant__ inputs in, const __grid_constant__ map_set parameters,
                                 map_place place) {
  __shared__ workspace shared;
  timed_loads loads(in.all_tiles, shared);
  const auto map = [&](std::uint32_t i) {
    if (place == map_place::parameter) return device::parameter_map(parameters.maps[i]);
    if (place == map_place::constant) return device::constant_map(constant_maps.maps[i]);
    return device::acquire(in.slots + i);
  };
  for (std::uint32_t i = 0; i < in.log.samples; ++i) {
    loads.warm(i);
    const device::acquired_map plain = map(i);
    in.log.put(0, i, loads.load(plain.get(), i));
    in.log.put(1, i, loads.load(plain.get(), i));
    const std::uint32_t other = in.log.samples + i;
    loads.warm(other);
    const device::acquired_map prefetched = map(other);
    device::prefetch(prefetched);
    pause(prefetch_lead);
    in.log.put(2, i, loads.load(prefetched.get(), other));
  }
}

enum class map_share { all_the_same, own_spread, own_packed, alone };

/// Uses `count` maps in turn; each was acquired and used for one load before. A block's maps are 64
/// KiB from the next block's, or adjacent to them. With `alone`, only block 0 works.
__global__ void round_robin(const __grid_constant__ inputs in, std::uint32_t count, map_share share) {
  __shared__ workspace shared;
  if (share == map_share::alone && blockIdx.x != 0) return;
  timed_loads loads(in.all_tiles, shared);
  const std::uint32_t first = share == map_share::own_spread   ? blockIdx.x * tiles
                              : share == map_share::own_packed ? blockIdx.x * count
                                                               : 0;
  for (std::uint32_t i = 0; i < count; ++i) device::acquire(in.slots + first + i);
  for (std::uint32_t i = 0; i < count; ++i) loads.load(in.slots + first + i, (first + i) % tiles);
  for (std::uint32_t i = 0; i < in.log.samples; ++i) {
    const std::uint32_t slot = first + i % count;
    in.log.put(0, i, loads.load(in.slots + slot, slot % tiles));
  }
}

/// Lets the two blocks of a multiprocessor act in turn.
class turns {
 public:
  __device__ explicit turns(std::uint32_t& turn) : turn_(turn) {}

  __device__ void await(std::uint32_t turn) {
    const long long start = clock64();
    while (turn_.load(cuda::memory_order_acquire) != turn) {
      if (clock64() - start > 1'000'000'000) __trap();
      __nanosleep(100);
    }
  }
  __device__ void pass() { turn_.fetch_add(1, cuda::memory_order_release); }

 private:
  cuda::atomic_ref<std::uint32_t, cuda::thread_scope_device> turn_;
};

constexpr std::uint32_t pair_steps = 8;

/// Does the work of one step with the map. Even steps belong to the first block, odd steps to the
/// second.
__device__ void act(std::uint32_t step, timed_loads& loads, const tensor_map* slot, std::uint32_t tile,
                    const cycle_log& log, std::uint32_t sample) {
  const auto log_load = [&](std::uint32_t figure) {
    log.put_at(cuda::ptx::get_sreg_smid(), figure, sample, loads.load(slot, tile));
  };
  switch (step) {
    case 0: loads.warm(tile), device::acquire(slot), log_load(0); break;
    case 1: loads.warm(tile), log_load(1); break;
    case 2: log_load(2); break;
    case 3: device::acquire(slot); break;
    case 4: log_load(3); break;
    case 5: device::acquire(slot), log_load(4); break;
    case 6: log_load(5); break;
    default: break;
  }
}

/// Runs two blocks on each multiprocessor. `counters` holds two words per multiprocessor, the
/// number of its blocks so far and the turn. Both are zero before and after.
__global__ void pair_of_blocks(const __grid_constant__ inputs in, uint2* counters) {
  __shared__ workspace shared;
  timed_loads loads(in.all_tiles, shared);
  const std::uint32_t here = cuda::ptx::get_sreg_smid();
  const std::uint32_t role = atomicAdd(&counters[here].x, 1);
  if (role > 1) __trap();
  turns turn(counters[here].y);
  for (std::uint32_t i = 0; i < in.log.samples; ++i) {
    const tensor_map* const slot = in.slots + here * tiles + in.tile(i);
    for (std::uint32_t step = role; step < pair_steps; step += 2) {
      turn.await(i * pair_steps + step);
      act(step, loads, slot, in.tile(i), in.log, i);
      turn.pass();
    }
  }
  if (role == 1) counters[here] = {};
}

/// Uses one warp and 32 maps. Figures: one lane acquires one map; one lane acquires all; each lane
/// acquires one.
__global__ void acquires_of_a_warp(const __grid_constant__ inputs in) {
  const tensor_map* const slots = in.slot(0);
  const bool leads = threadIdx.x == 0;
  for (std::uint32_t i = 0; i < in.log.samples; ++i) {
    if (leads) {
      in.log.put(0, i, timed([&] { device::acquire(slots); }));
      in.log.put(1, i, timed([&] {
                   for (std::uint32_t m = 0; m < device::warp_lanes; ++m) device::acquire(slots + m);
                 }));
    }
    __syncwarp();
    const std::uint32_t cycles = timed([&] {
      device::acquire(slots + threadIdx.x);
      __syncwarp();
    });
    if (leads) in.log.put(2, i, cycles);
  }
}

/// Keeps 32 loads in flight through `distinct` maps in turn. Figures: touched again; after an
/// acquire of each.
__global__ void loads_at_once(const __grid_constant__ inputs in, std::uint32_t distinct) {
  namespace ptx = cuda::ptx;
  constexpr std::uint32_t count = 32;
  __shared__ alignas(128) std::uint32_t landed[count][tile_words];
  __shared__ device::tile_barrier barrier;
  const tensor_map* const slots = in.slot(0);
  std::uint32_t parity = 0;
  const auto load_all = [&] {
    const std::int32_t at[] = {0, 0};
    barrier.arrive_expect(sizeof(landed));
    const std::uint32_t cycles = timed([&] {
      for (std::uint32_t m = 0; m < count; ++m) {
        const tensor_map* const map = slots + m % distinct;
        ptx::cp_async_bulk_tensor(ptx::space_shared, ptx::space_global, landed[m], map, at, barrier.word());
      }
      barrier.wait(parity);
    });
    parity ^= 1;
    return cycles;
  };
  barrier.init(1);
  device::fence_barrier_init();
  for (std::uint32_t i = 0; i < in.log.samples; ++i) {
    load_all();
    in.log.put(0, i, load_all());
    for (std::uint32_t m = 0; m < distinct; ++m) device::acquire(slots + m);
    in.log.put(1, i, load_all());
  }
}

/// Lane 0 of a warp loads through a map that it has used before. Figures: the other lanes wait for
/// lane 0; all lanes wait for the barrier.
__global__ void waits_of_a_warp(const __grid_constant__ inputs in) {
  namespace ptx = cuda::ptx;
  __shared__ workspace shared;
  const tensor_map* const slot = in.slot(0);
  const bool leads = threadIdx.x == 0;
  const std::int32_t at[] = {0, 0};
  const auto issue = [&] {
    ptx::cp_async_bulk_tensor(ptx::space_shared, ptx::space_global, shared.tile, slot, at, shared.barrier.word());
  };
  if (leads) shared.barrier.init(1), device::fence_barrier_init(), device::acquire(slot);
  __syncwarp();
  for (std::uint32_t i = 0; i < in.log.samples; ++i) {
    if (leads) {
      shared.barrier.arrive_expect(tile_bytes);
      in.log.put(0, i, timed([&] { issue(), shared.barrier.wait(0); }));
      shared.barrier.arrive_expect(tile_bytes);
    }
    __syncwarp();
    const std::uint32_t cycles = timed([&] {
      if (leads) issue();
      __syncwarp();
      shared.barrier.wait(1);
    });
    if (leads) in.log.put(1, i, cycles);
    __syncwarp();
  }
}

/// Measures the cost of a map for each warp. Figures: encoding it, acquiring it, loading through
/// it, all three, and loading again. If `encodes` is false, an earlier launch has encoded the map.
/// Patches are trusted.
template <class Shape>
__global__ void own_map(const __grid_constant__ inputs in, const __grid_constant__ map_template base,
                        const __grid_constant__ device::patch_array_reader source, tensor_map* slots, bool encodes) {
  __shared__ workspace shared;
  __shared__ device::warp_stage stage;
  const device::map_guard trusted{.page = &page, .trusted = true};
  const auto read = [&](std::uint64_t i) { return source.read(i, Shape::fields(base)); };
  timed_loads loads(in.all_tiles, shared);
  const bool leads = threadIdx.x == 0;
  for (std::uint32_t i = 0; i < in.log.samples; ++i) {
    const std::uint32_t slot = blockIdx.x * tiles + in.tile(i);
    if (leads) loads.warm(in.tile(i));
    __syncwarp();
    const std::uint32_t encoding = timed([&] {
      if (encodes) device::encode_warp(base, read, slots, slot, 1, stage, trusted, Shape{});
      __syncwarp();
    });
    if (leads) {
      const std::uint32_t acquiring = timed([&] { device::acquire(slots + slot); });
      const std::uint32_t loading = loads.load(slots + slot, in.tile(i));
      in.log.put(0, i, encoding), in.log.put(1, i, acquiring), in.log.put(2, i, loading);
      in.log.put(3, i, encoding + acquiring + loading);
      in.log.put(4, i, loads.load(slots + slot, in.tile(i)));
    }
  }
}

}  // namespace
}  // namespace tmap::apps::bench
