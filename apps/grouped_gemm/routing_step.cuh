// SPDX-License-Identifier: Apache-2.0
#pragma once

// The last kernel of a routing step: it counts the choices of each expert and adds the counts up. Alone, or with the
// set-up of products behind it in the block that comes last.

#include <tmap/device/map_guard.cuh>

#include <cub/block/block_scan.cuh>

#include <cstdint>

#include "kernels/gemm/set_up_block.cuh"

namespace tmap::bench {

inline constexpr std::uint32_t routing_threads = kernels::set_up_threads;
inline constexpr std::uint32_t most_routed_groups = 1024;
inline constexpr std::uint32_t most_set_ups = 2;

/// Arrays in device memory.
struct routing_step {
  const std::int32_t* experts;  ///< of each choice
  std::uint32_t choices;
  std::uint32_t groups;
  std::uint32_t* counts;  ///< [groups], 0 before a run and behind it
  std::int32_t* ends;     ///< [groups]: written
  std::uint32_t* done;    ///< blocks, 0 before a run and behind it
};

struct set_up_calls {
  struct call {
    kernels::set_up_request request;
    kernels::gemm_maps maps;
  };
  std::uint32_t count;
  call of[most_set_ups];
};

__device__ inline void count_choices(const routing_step& step, std::uint32_t* counts_of_block) {
  for (std::uint32_t g = threadIdx.x; g < step.groups; g += routing_threads) counts_of_block[g] = 0;
  __syncthreads();
  const std::uint32_t stride = gridDim.x * routing_threads;
  for (std::uint32_t i = blockIdx.x * routing_threads + threadIdx.x; i < step.choices; i += stride) {
    atomicAdd(&counts_of_block[step.experts[i]], 1u);
  }
  __syncthreads();
  for (std::uint32_t g = threadIdx.x; g < step.groups; g += routing_threads) {
    if (counts_of_block[g] != 0) atomicAdd(&step.counts[g], counts_of_block[g]);
  }
}

/// Whether all other blocks have come here before; then this one sees what they wrote.
__device__ inline bool is_last_block(const routing_step& step) {
  __shared__ bool is_last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicInc(step.done, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  __threadfence();
  return is_last;
}

__device__ inline void add_up_counts(const routing_step& step) {
  using scan = cub::BlockScan<std::uint32_t, routing_threads>;
  __shared__ typename scan::TempStorage memory;
  std::uint32_t before = 0;
  for (std::uint32_t first = 0; first < step.groups; first += routing_threads) {
    const std::uint32_t g = first + threadIdx.x;
    const std::uint32_t count = g < step.groups ? atomicExch(&step.counts[g], 0u) : 0;
    std::uint32_t up_to = 0;
    std::uint32_t all = 0;
    scan(memory).InclusiveSum(count, up_to, all);
    if (g < step.groups) step.ends[g] = static_cast<std::int32_t>(before + up_to);
    before += all;
    __syncthreads();
  }
}

/// Whether this block is the one that has written `ends`.
__device__ inline bool run_routing_step(const routing_step& step) {
  __shared__ std::uint32_t counts_of_block[most_routed_groups];
  // What is behind it may start, and waits for this kernel's end.
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
  count_choices(step, counts_of_block);
  if (!is_last_block(step)) return false;
  add_up_counts(step);
  return true;
}

__global__ void __launch_bounds__(routing_threads) routing_kernel(const __grid_constant__ routing_step step) {
  run_routing_step(step);
}

__device__ device::guard_page routing_page;

__global__ void __launch_bounds__(routing_threads)
    routing_and_set_up_kernel(const __grid_constant__ routing_step step, const __grid_constant__ set_up_calls calls) {
  __shared__ kernels::set_up_shared shared;
  if (!run_routing_step(step)) return;
  for (std::uint32_t i = 0; i < calls.count; ++i) {
    __syncthreads();
    kernels::set_up_groups(calls.of[i].request, calls.of[i].maps, shared, routing_page);
  }
}

}  // namespace tmap::bench
