// SPDX-License-Identifier: Apache-2.0
// Stands in for the kernels of grouped products in builds for GPUs that have none.
#include "kernels/gemm_launch.hpp"

namespace tmap::kernels {

bool has_gemm_kernels() {
  return false;
}

cudaError_t launch_gemm(const gemm::row_problem&, const gemm_call&) {
  return cudaErrorNoKernelImageForDevice;
}

cudaError_t launch_gemm(const gemm::weight_problem&, const gemm_call&) {
  return cudaErrorNoKernelImageForDevice;
}

cudaError_t launch_gemm(const gemm::pointer_problem&, const gemm_call&) {
  return cudaErrorNoKernelImageForDevice;
}

}  // namespace tmap::kernels
