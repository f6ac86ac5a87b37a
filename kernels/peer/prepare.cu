// SPDX-License-Identifier: Apache-2.0
#include <tmap/device/warp.cuh>
#include <tmap/moe.hpp>

#include <algorithm>
#include <cstdint>

#include "kernels/load_kernel.hpp"
#include "kernels/moe/route_place.cuh"
#include "kernels/peer/plain_launch.hpp"
#include "kernels/peer/protocol_prepare.hpp"
#include "kernels/peer/row_crew.cuh"
#include "kernels/peer_launch.hpp"

namespace tmap::kernels {
namespace {

using device::tile_barrier;

/// Holds what the kernel works on.
struct prepare_work {
  peer::preparation all;
  sort_work sorts[2];  ///< by rank, and by expert
};

// One copy of the code for both sorts.
__device__ __noinline__ void route_one_tile(const sort_work& work, unsigned char* shared) {
  __shared__ block_header header;
  route_in_block(work, sort_memory(shared, work.experts), header);
}

struct block_sorts {
  const sort_work (&works)[2];
  unsigned char* memory;

  __device__ void by_rank() const { route_one_tile(works[0], memory); }
  __device__ void by_expert() const { route_one_tile(works[1], memory); }
};

// A function that is not inlined reads parameters of the kernel much more slowly than these.
__device__ void copy_words(void* to, const void* from, std::uint32_t bytes) {
  const std::uint32_t words = bytes / static_cast<std::uint32_t>(sizeof(std::uint32_t));
  for (std::uint32_t i = threadIdx.x; i < words; i += blockDim.x) {
    static_cast<std::uint32_t*>(to)[i] = static_cast<const std::uint32_t*>(from)[i];
  }
}

/// Runs in a single block. Shared memory has the stages of records, then that of sorts.
__global__ void __launch_bounds__(sort_threads, 1)
    prepare_kernel(const __grid_constant__ peer_memory_ref window, const __grid_constant__ prepare_work work,
                   std::uint64_t patience) {
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ tile_barrier gets[peer::pull_sets];
  __shared__ alignas(sort_work) unsigned char sorts[sizeof(work.sorts)];
  copy_words(sorts, work.sorts, sizeof(work.sorts));
  if (threadIdx.x == 0) {
    for (tile_barrier& each : gets) each.init(1);
    device::fence_barrier_init();
  }
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
  peer::lone_link link(window, shared, gets);
  block_sorts sorted{*reinterpret_cast<const sort_work(*)[2]>(sorts),
                     shared + work.all.records.stages * work.all.records.staging_bytes};
  const std::uint32_t warp = threadIdx.x / device::warp_lanes, lane = threadIdx.x % device::warp_lanes;
  const peer::preparing_thread mine{{threadIdx.x, sort_threads}, {warp, sort_warps}, {lane, device::warp_lanes}};
  peer::prepare(link, work.all, mine, sorted, link.now() + patience);
}

}  // namespace

cudaError_t load_prepare_kernel() {
  return load(prepare_kernel);
}

cudaError_t launch_prepare(const prepare_call& call) {
  const peer::exchange_request& records = call.work.records;
  const std::uint32_t staging = records.stages * records.staging_bytes;
  const std::uint32_t experts = std::max(call.by_rank.problem.experts, call.by_expert.problem.experts);
  const prepare_work work{call.work, {sort_of(call.by_rank), sort_of(call.by_expert)}};
  launch_size size{1, sort_threads, staging + sort_memory::bytes(experts)};
  size.most_shared_bytes = staging + sort_memory::bytes(moe::max_experts);
  return launch_behind(prepare_kernel, size, call.by_rank.stream, call.window, work, call.patience);
}

}  // namespace tmap::kernels
