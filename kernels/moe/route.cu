// SPDX-License-Identifier: Apache-2.0
#include <cooperative_groups.h>

#include <algorithm>
#include <cstdint>

#include "kernels/launch.hpp"
#include "kernels/launch_behind.hpp"
#include "kernels/moe/route_scores.cuh"
#include "kernels/moe/route_sort.cuh"
#include "kernels/moe_launch.hpp"

namespace tmap::kernels {
namespace {

constexpr std::uint32_t score_threads = 256;
constexpr std::uint32_t score_warps = score_threads / device::warp_lanes;

// Each kernel lets the next one start at once. The next one waits for its end before it touches
// memory.
__device__ void begin_kernel() {
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
}

template <std::uint32_t PerLane>
__global__ void __launch_bounds__(score_threads) score_kernel(const __grid_constant__ score_work work) {
  begin_kernel();
  const std::uint64_t token = std::uint64_t{blockIdx.x} * score_warps + threadIdx.x / device::warp_lanes;
  if (token < work.tokens) choose_experts<PerLane>(work, token);
}

__device__ choice_tile share_of_block(const sort_work& work) {
  // 64 bits: a product of 32 bits may pass the last choice of 2^30 by far.
  const std::uint64_t begin = std::uint64_t{blockIdx.x} * work.block_choices;
  const auto first = static_cast<std::uint32_t>(min(begin, std::uint64_t{work.choices}));
  return {first, first + min(work.block_choices, work.choices - first)};
}

__device__ choice_tile tile_at(const choice_tile& share, std::uint32_t begin) {
  return {begin, begin + min(sort_tile, share.end - begin)};
}

__device__ void begin_header(block_header& header) {
  if (threadIdx.x == 0) header.reset();
  __syncthreads();
}

__device__ void end_header(const choice_reports& reports, const block_header& header) {
  __syncthreads();
  if (threadIdx.x == 0 && reports.header != nullptr) device::add_to_header(*reports.header, header.value());
}

/// Sorts all choices in one cluster, each block one tile. The blocks read each other's totals.
__global__ void __launch_bounds__(sort_threads) sort_kernel(const __grid_constant__ sort_work work) {
  extern __shared__ __align__(16) unsigned char dynamic[];
  __shared__ block_header header;
  const sort_memory memory(dynamic, work.experts);
  const auto cluster = cooperative_groups::this_cluster();
  begin_kernel();
  begin_header(header);
  const choice_tile tile = share_of_block(work);
  thread_choices mine;
  count_tile(work, tile, memory, mine);
  cluster.sync();
  place_experts(work, memory, [&](std::uint32_t expert) {
    expert_total total{};
    for (std::uint32_t block = 0; block < gridDim.x; ++block) {
      const std::uint32_t more = cluster.map_shared_rank(memory.totals, block)[expert];
      if (block < blockIdx.x) total.before += more;
      total.all += more;
    }
    return total;
  });
  place_tile(work, tile, memory, mine, header);
  end_header(work.reports, header);
  cluster.sync();  // no block ends while another may read its totals
}

/// Counts the choices of each expert in the share of each block.
__global__ void __launch_bounds__(sort_threads) count_kernel(const __grid_constant__ sort_work work) {
  extern __shared__ __align__(16) unsigned char dynamic[];
  const sort_memory memory(dynamic, work.experts);
  begin_kernel();
  const choice_tile share = share_of_block(work);
  std::uint32_t total = 0;
  for (std::uint32_t begin = share.begin; begin < share.end; begin += sort_tile) {
    thread_choices mine;
    count_tile(work, tile_at(share, begin), memory, mine);
    if (threadIdx.x < work.experts) total += memory.totals[threadIdx.x];
  }
  if (threadIdx.x < work.experts) work.totals[blockIdx.x * work.experts + threadIdx.x] = total;
}

/// Places the choices that `count_kernel` counted.
__global__ void __launch_bounds__(sort_threads) place_kernel(const __grid_constant__ sort_work work) {
  extern __shared__ __align__(16) unsigned char dynamic[];
  __shared__ block_header header;
  const sort_memory memory(dynamic, work.experts);
  begin_kernel();
  begin_header(header);
  place_experts(work, memory, [&](std::uint32_t expert) {
    expert_total total{};
#pragma unroll 8
    for (std::uint32_t block = 0; block < gridDim.x; ++block) {
      const std::uint32_t more = work.totals[block * work.experts + expert];
      if (block < blockIdx.x) total.before += more;
      total.all += more;
    }
    return total;
  });
  const choice_tile share = share_of_block(work);
  for (std::uint32_t begin = share.begin; begin < share.end; begin += sort_tile) {
    const choice_tile tile = tile_at(share, begin);
    thread_choices mine;
    count_tile(work, tile, memory, mine);
    place_tile(work, tile, memory, mine, header);
    advance(work, memory);
  }
  end_header(work.reports, header);
}

using score_function = void (*)(score_work);

/// Returns the kernel whose lanes hold enough experts.
score_function score_kernel_for(std::uint32_t experts) {
  if (experts <= 32) return score_kernel<1>;
  if (experts <= 64) return score_kernel<2>;
  if (experts <= 128) return score_kernel<4>;
  if (experts <= 256) return score_kernel<8>;
  if (experts <= 512) return score_kernel<16>;
  return score_kernel<32>;
}

template <class T>
T* given_or(T* given, T* other) {
  return given != nullptr ? given : other;
}

cudaError_t launch_scores(const route_call& call, const moe::logits& from, sort_work& sort) {
  const moe::route_problem& problem = call.problem;
  std::int32_t* const ids = given_or(call.results.ids, call.scratch.ids);
  const bool wants_weights = call.results.weights != nullptr || call.results.weight_of_row != nullptr;
  float* const weights = wants_weights ? given_or(call.results.weights, call.scratch.weights) : nullptr;
  sort.ids = {ids, sizeof(*ids)};
  sort.weights = weights;
  if (problem.tokens == 0) return cudaSuccess;
  const auto blocks = static_cast<std::uint32_t>((problem.tokens + score_warps - 1) / score_warps);
  const score_work work{problem.tokens, problem.experts, problem.k, from, ids, weights};
  return launch_behind(score_kernel_for(problem.experts), {blocks, score_threads}, call.stream, work);
}

/// Chooses the fewest blocks that give each of their threads one choice, as long as a cluster can
/// have so many.
cudaError_t launch_cluster(sort_work work, const launch_size& of_block, cudaStream_t stream) {
  std::uint32_t blocks = 1;
  while (blocks < sort_cluster_blocks && work.choices > blocks * sort_threads) blocks *= 2;
  const std::uint32_t step = blocks * sort_threads;
  work.block_choices = (work.choices + step - 1) / step * sort_threads;
  launch_size size = of_block;
  size.blocks = blocks;
  size.cluster_blocks = blocks;
  return launch_behind(sort_kernel, size, stream, work);
}

cudaError_t launch_grid(sort_work work, const launch_size& of_block, cudaStream_t stream) {
  launch_size size = of_block;
  size.blocks = sort_blocks(work.choices);
  const std::uint32_t tiles = (work.choices + sort_tile - 1) / sort_tile;
  work.block_choices = (tiles + size.blocks.x - 1) / size.blocks.x * sort_tile;
  const cudaError_t counted = launch_behind(count_kernel, size, stream, work);
  return counted != cudaSuccess ? counted : launch_behind(place_kernel, size, stream, work);
}

}  // namespace

cudaError_t launch_route(const route_call& call) {
  const moe::route_problem& problem = call.problem;
  if (call.reports.header != nullptr) {
    const cudaError_t reset = launch_header_reset(call.reports.header, call.stream);
    if (reset != cudaSuccess) return reset;
  }
  sort_work work{};
  work.choices = static_cast<std::uint32_t>(problem.tokens * problem.k);
  work.experts = problem.experts;
  work.k = problem.k;
  work.alignment = problem.alignment;
  work.rows = static_cast<std::uint32_t>(problem.rows);
  work.results = call.results;
  work.totals = call.scratch.totals;
  work.reports = call.reports;
  if (const auto* from = std::get_if<moe::logits>(&problem.choices)) {
    const cudaError_t scored = launch_scores(call, *from, work);
    if (scored != cudaSuccess) return scored;
  } else {
    const auto& given = std::get<moe::given_choices>(problem.choices);
    work.ids = {given.ids, given.bytes};
    work.weights = given.weights;
  }
  const launch_size size{1, sort_threads, sort_memory_bytes(problem.experts)};
  return work.choices <= most_clustered_choices ? launch_cluster(work, size, call.stream)
                                                : launch_grid(work, size, call.stream);
}

}  // namespace tmap::kernels
