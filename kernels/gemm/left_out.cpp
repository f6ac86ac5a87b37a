// SPDX-License-Identifier: Apache-2.0
// Stands in for the kernels of grouped products in builds without them: for other GPUs, or with
// TMAP_BUILD_PRODUCTS=OFF or TMAP_BUILD_KERNELS=OFF.
#include "kernels/gemm_launch.hpp"

namespace tmap::kernels {

bool has_gemm_kernels() {
  return false;
}

template <class Problem>
cudaError_t launch_gemm(const Problem&, const gemm_call&) {
  return cudaErrorNoKernelImageForDevice;
}

template cudaError_t launch_gemm(const gemm::row_problem&, const gemm_call&);
template cudaError_t launch_gemm(const gemm::column_problem&, const gemm_call&);
template cudaError_t launch_gemm(const gemm::weight_problem&, const gemm_call&);
template cudaError_t launch_gemm(const gemm::pointer_problem&, const gemm_call&);

}  // namespace tmap::kernels
