// SPDX-License-Identifier: Apache-2.0
#include <cooperative_groups.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/launch.hpp"
#include "kernels/launch_behind.hpp"
#include "kernels/load_kernel.hpp"
#include "kernels/moe/route_place.cuh"
#include "kernels/moe/route_scores.cuh"
#include "kernels/moe_launch.hpp"

namespace tmap::kernels {
namespace {

// Few choices take one launch of a cluster, whose blocks exchange their totals in shared memory.
// Others take two: the first one chooses experts and counts them, the second one sorts.

struct route_work {
  score_work scores;
  sort_work sort;
  std::int32_t* ids;  ///< to write those that logits choose; null: not wanted
  float* weights;     ///< like `ids`
};

// Each kernel lets the next one start at once. The next one waits for its end before it touches
// memory.
__device__ void begin_kernel() {
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
}

__device__ void reset_header(const choice_reports& reports) {
  if (blockIdx.x == 0 && threadIdx.x == 0 && reports.header != nullptr) *reports.header = batch_header{};
}

__device__ void end_header(const choice_reports& reports, const block_header& header) {
  if (reports.header == nullptr) return;
  __syncthreads();
  if (threadIdx.x == 0) device::add_to_header(*reports.header, header.value());
}

/// Returns the choices of this block, which may be more than a tile.
__device__ choice_tile share_of_block(const sort_work& work) {
  const std::uint32_t begin = min(blockIdx.x * work.block_choices, work.choices);
  const auto* const ids = static_cast<const unsigned char*>(work.ids.values) + std::uint64_t{begin} * work.ids.bytes;
  const float* const weights = work.weights == nullptr ? nullptr : work.weights + begin;
  return {begin, min(work.block_choices, work.choices - begin), {ids, work.ids.bytes}, weights};
}

/// Chooses the experts of the tokens of a block, whose choices begin with a token. `use(i, choice)`
/// gets choice i of the block.
template <std::uint32_t PerLane, class Use>
__device__ void choose_share(const route_work& work, const choice_tile& share, const Use& use) {
  const std::uint32_t k = work.scores.k;
  const std::uint32_t lane = threadIdx.x % device::warp_lanes;
  const std::uint32_t first = share.begin / k;
  const std::uint32_t tokens = share.count / k;
  for (std::uint32_t token = threadIdx.x / device::warp_lanes; token < tokens; token += sort_warps) {
    const scored_choice choice = choose_experts<PerLane>(work.scores, first + token);
    if (lane >= k) continue;
    const std::uint32_t i = token * k + lane;
    if (work.ids != nullptr) work.ids[share.begin + i] = choice.expert;
    if (work.weights != nullptr) work.weights[share.begin + i] = choice.weight;
    use(i, choice);
  }
}

/// Chooses the experts of a tile, and keeps them in shared memory.
template <std::uint32_t PerLane>
__device__ void choose_tile(const route_work& work, const sort_memory& memory, choice_tile& tile) {
  choose_share<PerLane>(work, tile, [&](std::uint32_t i, const scored_choice& choice) {
    memory.ids()[i] = choice.expert;
    memory.weights()[i] = choice.weight;
  });
  tile.ids = {memory.ids(), sizeof(std::int32_t)};
  tile.weights = memory.weights();
}

__device__ expert_total total_of_cluster(const sort_work& work, const sort_memory& memory) {
  expert_total total{};
  if (threadIdx.x >= work.experts) return total;
#pragma unroll
  for (std::uint32_t block = 0; block < sort_cluster_blocks; ++block) {
    if (block >= gridDim.x) continue;
    const std::uint32_t more = memory.total(block, threadIdx.x);
    if (block < blockIdx.x) total.before += more;
    if (block == blockIdx.x) total.tile = more;
    total.all += more;
  }
  return total;
}

/// Sorts all choices in one cluster, each block one tile. `PerLane` is 0 if choices are given.
template <std::uint32_t PerLane>
__global__ void __launch_bounds__(sort_threads, 1) route_in_cluster(const __grid_constant__ route_work work) {
  extern __shared__ __align__(16) unsigned char dynamic[];
  __shared__ block_header header;
  const auto cluster = cooperative_groups::this_cluster();
  const sort_memory memory(dynamic, work.sort.experts);
  cuda::ptx::barrier_cluster_arrive();  // blocks write to each other's memory after all have begun
  memory.clear_counts();
  if (threadIdx.x == 0) header.reset();
  begin_kernel();
  reset_header(work.sort.reports);
  choice_tile tile = share_of_block(work.sort);
  if constexpr (PerLane != 0) choose_tile<PerLane>(work, memory, tile);
  __syncthreads();
  cuda::ptx::barrier_cluster_wait();
  thread_choices mine;
  rank_tile(
      work.sort, tile, memory, gridDim.x,
      [&](std::uint32_t block) { return cluster.map_shared_rank(memory.totals_of(blockIdx.x), block); }, mine);
  __threadfence();  // the header, before other blocks add to it
  cuda::ptx::barrier_cluster_arrive();
  cuda::ptx::barrier_cluster_wait();
  const std::uint32_t count =
      place_experts(work.sort, memory, {blockIdx.x, gridDim.x}, total_of_cluster(work.sort, memory));
  place_tile(work.sort, tile, memory, count, mine, header);
  end_header(work.sort.reports, header);
}

/// Chooses experts, unless `PerLane` is 0, and counts the choices of each expert in the share of
/// each block.
template <std::uint32_t PerLane>
__global__ void __launch_bounds__(sort_threads, 1) count_choices(const __grid_constant__ route_work work) {
  __shared__ std::uint32_t totals[moe::max_experts];
  totals[threadIdx.x] = 0;
  __syncthreads();
  begin_kernel();
  reset_header(work.sort.reports);
  const choice_tile share = share_of_block(work.sort);
  if constexpr (PerLane != 0) {
    choose_share<PerLane>(work, share,
                          [&](std::uint32_t, const scored_choice& choice) { atomicAdd(&totals[choice.expert], 1u); });
  } else {
    count_share(work.sort, share, totals);
  }
  __syncthreads();
  const std::uint32_t experts = work.sort.experts;
  if (threadIdx.x < experts) work.sort.totals[blockIdx.x * experts + threadIdx.x] = totals[threadIdx.x];
}

/// Sums up the totals of all blocks. Threads share the blocks of an expert.
__device__ expert_total total_of_grid(const sort_work& work, const sort_memory& memory) {
  struct part {
    std::uint32_t all;
    std::uint32_t before;
  };
  auto* const parts = reinterpret_cast<part*>(memory.sorted);  // nothing is sorted yet
  static_assert(sort_threads * sizeof(part) <= sort_tile * sizeof(std::uint32_t));
  std::uint32_t columns = device::warp_lanes;
  while (columns < work.experts) columns *= 2;
  const std::uint32_t expert = threadIdx.x % columns;
  const std::uint32_t step = sort_threads / columns;
  part mine{};
  if (expert < work.experts) {
#pragma unroll 16
    for (std::uint32_t block = threadIdx.x / columns; block < gridDim.x; block += step) {
      const std::uint32_t more = work.totals[block * work.experts + expert];
      if (block < blockIdx.x) mine.before += more;
      mine.all += more;
    }
  }
  parts[threadIdx.x] = mine;
  __syncthreads();
  expert_total total{};
  if (threadIdx.x >= work.experts) return total;
  for (std::uint32_t i = threadIdx.x; i < sort_threads; i += columns) {
    total.all += parts[i].all;
    total.before += parts[i].before;
  }
  total.tile = memory.total(0, threadIdx.x);
  return total;
}

/// Sorts the choices that `count_choices` counted.
__global__ void __launch_bounds__(sort_threads, 1) sort_choices(const __grid_constant__ route_work work) {
  extern __shared__ __align__(16) unsigned char dynamic[];
  __shared__ block_header header;
  const sort_memory memory(dynamic, work.sort.experts);
  memory.clear_counts();
  if (threadIdx.x == 0) header.reset();
  __syncthreads();
  begin_kernel();
  sort_share(work.sort, share_of_block(work.sort), memory, {blockIdx.x, gridDim.x}, header,
             [&] { return total_of_grid(work.sort, memory); });
  end_header(work.sort.reports, header);
}

/// Calls `use` with the experts that each lane holds: as few as are enough, or 0 for given choices.
template <class Use>
cudaError_t with_per_lane(const moe::route_problem& problem, const Use& use) {
  if (!has_logits(problem)) return use(std::integral_constant<std::uint32_t, 0>{});
  if (problem.experts <= 32) return use(std::integral_constant<std::uint32_t, 1>{});
  if (problem.experts <= 64) return use(std::integral_constant<std::uint32_t, 2>{});
  if (problem.experts <= 128) return use(std::integral_constant<std::uint32_t, 4>{});
  if (problem.experts <= 256) return use(std::integral_constant<std::uint32_t, 8>{});
  if (problem.experts <= 512) return use(std::integral_constant<std::uint32_t, 16>{});
  return use(std::integral_constant<std::uint32_t, 32>{});
}

/// Finds the most blocks of a cluster. A part of a GPU may have no room for the most.
cudaError_t find_cluster_blocks(std::uint32_t& blocks) {
  static std::array<std::atomic<std::uint32_t>, 64> kept;  // it never changes
  int device = 0;
  if (const cudaError_t got = cudaGetDevice(&device); got != cudaSuccess) return got;
  const auto place = static_cast<std::size_t>(device);
  blocks = place < kept.size() ? kept[place].load(std::memory_order_relaxed) : 0;
  if (blocks != 0) return cudaSuccess;
  const launch_size size{sort_cluster_blocks, sort_threads, sort_memory::bytes(moe::max_experts), sort_cluster_blocks};
  int clusters = 0;
  const cudaError_t counted = count_clusters(route_in_cluster<0>, size, clusters);
  if (counted != cudaSuccess) return counted;
  blocks = clusters > 0 ? sort_cluster_blocks : sure_cluster_blocks;
  if (place < kept.size()) kept[place].store(blocks, std::memory_order_relaxed);
  return cudaSuccess;
}

constexpr std::uint32_t parts(std::uint64_t whole, std::uint64_t part) {
  return static_cast<std::uint32_t>((whole + part - 1) / part);
}

/// Returns the choices of each of so many blocks. Those of logits begin with a token.
std::uint32_t choices_of_block(const moe::route_problem& problem, std::uint32_t blocks) {
  if (has_logits(problem)) return parts(problem.tokens, blocks) * problem.k;
  return parts(parts(problem.tokens * problem.k, blocks), device::warp_lanes) * device::warp_lanes;
}

launch_size sort_size(const moe::route_problem& problem, std::uint32_t blocks, std::uint32_t cluster_blocks) {
  return {blocks, sort_threads, sort_memory::bytes(problem.experts), cluster_blocks,
          sort_memory::bytes(moe::max_experts)};
}

/// Returns the blocks of a cluster for given choices (docs/measurements/experts.md). Sixteen are
/// slow to begin.
std::uint32_t blocks_of_given(std::uint64_t choices) {
  constexpr std::uint64_t block_choices = 512;
  constexpr std::uint64_t few_choices = 16384;
  const std::uint32_t most = choices <= few_choices ? sure_cluster_blocks : sort_cluster_blocks;
  return std::min(parts(choices, block_choices), most);
}

/// Gives each warp a token, or each thread a few choices, as long as a cluster can have so many.
cudaError_t launch_once(const moe::route_problem& problem, route_work work, std::uint32_t most_blocks,
                        cudaStream_t stream) {
  const std::uint32_t wanted =
      has_logits(problem) ? parts(problem.tokens, sort_warps) : blocks_of_given(problem.tokens * problem.k);
  const std::uint32_t blocks = std::bit_ceil(std::clamp(wanted, 1u, most_blocks));
  work.sort.block_choices = choices_of_block(problem, blocks);
  const launch_size size = sort_size(problem, blocks, blocks);
  return with_per_lane(problem,
                       [&](auto per_lane) { return launch_behind(route_in_cluster<per_lane()>, size, stream, work); });
}

cudaError_t launch_twice(const moe::route_problem& problem, route_work work, const route_scratch& scratch,
                         cudaStream_t stream) {
  const std::uint32_t blocks = sort_blocks(problem);
  work.sort.block_choices = choices_of_block(problem, blocks);
  work.sort.totals = scratch.totals;
  if (has_logits(problem)) {
    if (work.ids == nullptr) work.ids = scratch.ids;
    if (work.weights == nullptr && work.scores.wants_weights) work.weights = scratch.weights;
    work.sort.ids = {work.ids, sizeof(*work.ids)};
    work.sort.weights = work.weights;
  }
  const cudaError_t counted = with_per_lane(problem, [&](auto per_lane) {
    return launch_behind(count_choices<per_lane()>, {blocks, sort_threads}, stream, work);
  });
  if (counted != cudaSuccess) return counted;
  return launch_behind(sort_choices, sort_size(problem, blocks, 1), stream, work);
}

route_work work_of(const route_call& call) {
  const moe::route_problem& problem = call.problem;
  route_work work{};
  work.sort = sort_of(call);
  if (const auto* from = std::get_if<moe::logits>(&problem.choices)) {
    const bool wants_weights = call.results.weights != nullptr || call.results.weight_of_row != nullptr;
    work.scores = {problem.experts, problem.k, *from, wants_weights};
    work.ids = call.results.ids;
    work.weights = call.results.weights;
  }
  return work;
}

}  // namespace

cudaError_t load_given_route() {
  cudaError_t code = load(route_in_cluster<0>);
  if (code == cudaSuccess) code = load(count_choices<0>);
  if (code == cudaSuccess) code = load(sort_choices);
  std::uint32_t cluster_blocks = 0;
  return code == cudaSuccess ? find_cluster_blocks(cluster_blocks) : code;
}

cudaError_t launch_route(const route_call& call) {
  std::uint32_t cluster_blocks = sure_cluster_blocks;
  if (const cudaError_t found = find_cluster_blocks(cluster_blocks); found != cudaSuccess) return found;
  const route_work work = work_of(call);
  return takes_one_launch(call.problem, cluster_blocks) ? launch_once(call.problem, work, cluster_blocks, call.stream)
                                                        : launch_twice(call.problem, work, call.scratch, call.stream);
}

}  // namespace tmap::kernels
