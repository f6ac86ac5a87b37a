// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/set_up_block.cuh"
#include "kernels/launch_behind.hpp"

namespace tmap::kernels {
namespace {

__device__ device::guard_page set_up_page;

__global__ void __launch_bounds__(set_up_threads)
    set_up_kernel(const __grid_constant__ set_up_request request, const __grid_constant__ gemm_maps maps) {
  __shared__ set_up_shared shared;
  // The products may start, and wait for this kernel's end before they read what it wrote.
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
  set_up_groups(request, maps, shared, set_up_page);
}

}  // namespace

cudaError_t launch_set_up(const set_up_request& request, const gemm_maps& maps, cudaStream_t stream) {
  return launch_behind(set_up_kernel, {1, set_up_threads}, stream, request, maps);
}

}  // namespace tmap::kernels
