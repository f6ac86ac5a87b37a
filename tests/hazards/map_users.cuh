// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/device/acquire.cuh>
#include <tmap/device/batch_writer.cuh>
#include <tmap/device/patch_source.cuh>
#include <tmap/device/tile_copy.cuh>

#include <cuda/atomic>

#include "hazards/lent_slots.hpp"

// Provides kernels that use maps of a batch, and kernels that make others wait.

namespace tmap::testing {

// A wait ends after 20 seconds, so that a broken test fails instead of hanging.
__device__ inline void await_flag(std::uint32_t* flag, std::uint32_t value) {
  const cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system> shared(*flag);
  for (int i = 0; i < 20'000'000 && shared.load(cuda::memory_order_acquire) < value; ++i) __nanosleep(1000);
}

__device__ inline void set_flag(std::uint32_t* flag, std::uint32_t value) {
  cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system>(*flag).store(value, cuda::memory_order_release);
}

/// Delays the work that follows it on its stream.
static __global__ void hold_back(std::uint32_t* flag) {
  await_flag(flag, 1);
}

/// Holds one thread's room for a line.
struct line_stage {
  alignas(128) int line[lent_slots::line_elements];
  device::tile_barrier barrier;
};

__device__ inline void init(line_stage& stage) {
  stage.barrier.init(1);
  device::fence_barrier_init();
}

__device__ inline int load_line(device::acquired_map map, line_stage& stage, std::uint32_t parity) {
  const std::int32_t origin[] = {0};
  stage.barrier.arrive_expect(sizeof(stage.line));
  device::load_tile<1>(stage.line, map, origin, stage.barrier);
  stage.barrier.wait(parity);
  return *static_cast<volatile int*>(stage.line);
}

/// Block b uses map b: it loads through the map, or only acquires it. One thread of the block runs.
static __global__ void use_maps(map_batch_ref ref, bool loads, int* seen) {
  __shared__ line_stage stage;
  init(stage);
  const device::acquired_map map = device::acquire(ref, blockIdx.x);
  if (loads) seen[blockIdx.x] = load_line(map, stage, 0);
}

/// Encodes 32 maps per block with one warp. Map i comes from patch i.
static __global__ void write_maps(const __grid_constant__ map_template base, const map_patch* patches,
                                  map_batch_writer writer) {
  __shared__ device::warp_stage stage;
  const std::uint32_t first = blockIdx.x * device::warp_lanes;
  const std::uint32_t left = writer.count - first;
  device::encode_warp(base, device::patch_array_reader({patches}, base.fields), writer, first,
                      left < device::warp_lanes ? left : device::warp_lanes, stage,
                      device::map_guard{.page = nullptr, .trusted = true});
}

inline std::uint32_t warps_for(const map_batch_writer& writer) {
  return (writer.count + device::warp_lanes - 1) / device::warp_lanes;
}

}  // namespace tmap::testing
