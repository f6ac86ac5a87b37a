// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/await_rows.cuh"
#include "kernels/gemm/set_up_block.cuh"
#include "kernels/launch_behind.hpp"

#include <algorithm>
#include <cstdint>

namespace tmap::kernels {
namespace {

// Each of these blocks keeps a block of the products from its multiprocessor until it ends.
constexpr std::uint32_t most_set_up_blocks = 16;
// As many as write at the speed of the memory.
constexpr std::uint32_t zeroing_blocks = 64;

__device__ device::guard_page set_up_page;

/// Waits until the kernel that brings rows has its multiprocessors. Otherwise products would take
/// all of them, and wait for ever. They start when all blocks let them, so one block waits for all:
/// more would take multiprocessors, too.
template <class Problem>
__device__ void await_start_of_rows(const Problem& problem) {
  const std::uint32_t* const word = start_word(problem);
  if (word == nullptr || blockIdx.x != 0) return;
  cudaGridDependencySynchronize();
  if (threadIdx.x == 0) await_zero(word);
  __syncthreads();
}

template <class Problem>
__global__ void __launch_bounds__(set_up_threads)
    set_up_kernel(const __grid_constant__ set_up_request<Problem> request, const __grid_constant__ gemm_maps maps) {
  __shared__ set_up_shared shared;
  await_start_of_rows(request.problem);
  // The products may start, and wait for this kernel's end before they read what it wrote.
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
  set_up_groups(request, maps, shared, set_up_page, {blockIdx.x, gridDim.x});
}

struct two_set_ups {
  set_up_request<gemm::row_problem> requests[2];
  gemm_maps maps[2];
};

/// Sets up two problems side by side.
__global__ void __launch_bounds__(set_up_threads) set_up_two_kernel(const __grid_constant__ two_set_ups both) {
  __shared__ set_up_shared shared;
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
  set_up_groups(both.requests[blockIdx.y], both.maps[blockIdx.y], shared, set_up_page, {blockIdx.x, gridDim.x});
}

template <class Problem>
set_up_request<Problem> request_of(const Problem& problem, const gemm_call& call) {
  const tile_sizes tile{call.plan.tile_m, call.plan.tile_n / (has_gates(problem) ? 2 : 1), call.plan.is_paired};
  return {problem, tile, cut_scratch(call.scratch, problem.groups), call.statuses, call.header, call.faults};
}

template <class Problem>
std::uint32_t set_up_blocks(const Problem& problem) {
  if (zeroes_rest(problem)) return zeroing_blocks;
  return std::min(set_up_rounds(problem.groups) * set_up_operands(problem), most_set_up_blocks);
}

}  // namespace

bool has_gemm_kernels() {
  return true;
}

template <class Problem>
cudaError_t launch_set_up(const Problem& problem, const gemm_call& call) {
  const launch_size size{set_up_blocks(problem), set_up_threads};
  return launch_behind(set_up_kernel<Problem>, size, call.stream, request_of(problem, call), call.maps);
}

cudaError_t launch_gemm_set_ups(const gemm::row_problem& first, const gemm_call& of_first,
                                const gemm::row_problem& second, const gemm_call& of_second) {
  const two_set_ups both{{request_of(first, of_first), request_of(second, of_second)}, {of_first.maps, of_second.maps}};
  const launch_size size{{std::max(set_up_blocks(first), set_up_blocks(second)), 2}, set_up_threads};
  return launch_behind(set_up_two_kernel, size, of_first.stream, both);
}

template cudaError_t launch_set_up(const gemm::row_problem& problem, const gemm_call& call);
template cudaError_t launch_set_up(const gemm::column_problem& problem, const gemm_call& call);
template cudaError_t launch_set_up(const gemm::weight_problem& problem, const gemm_call& call);
template cudaError_t launch_set_up(const gemm::pointer_problem& problem, const gemm_call& call);

}  // namespace tmap::kernels
