// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/set_up_block.cuh"
#include "kernels/launch_behind.hpp"

#include <algorithm>
#include <cstdint>

namespace tmap::kernels {
namespace {

// Each keeps a block of the products from its multiprocessor until it ends.
constexpr std::uint32_t most_set_up_blocks = 16;

__device__ device::guard_page set_up_page;

__global__ void __launch_bounds__(set_up_threads)
    set_up_kernel(const __grid_constant__ set_up_request request, const __grid_constant__ gemm_maps maps) {
  __shared__ set_up_shared shared;
  // The products may start, and wait for this kernel's end before they read what it wrote.
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
  set_up_groups(request, maps, shared, set_up_page, {blockIdx.x, gridDim.x});
}

}  // namespace

bool has_gemm_kernels() {
  return true;
}

cudaError_t launch_set_up(const set_up_request& request, const gemm_maps& maps, cudaStream_t stream) {
  const std::uint32_t parts = set_up_rounds(request.groups) * set_up_operands(request.kind);
  return launch_behind(set_up_kernel, {std::min(parts, most_set_up_blocks), set_up_threads}, stream, request, maps);
}

}  // namespace tmap::kernels
