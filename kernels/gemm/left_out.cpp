// SPDX-License-Identifier: Apache-2.0
// Stands in for the kernels of grouped products in builds without them: for other GPUs, or with
// TMAP_BUILD_PRODUCTS=OFF or TMAP_BUILD_KERNELS=OFF.
#include "kernels/gemm_launch.hpp"

namespace tmap::kernels {

bool has_gemm_kernels() {
  return false;
}

template <class Problem>
cudaError_t launch_gemm_set_up(const Problem&, const gemm_call&) {
  return cudaErrorNoKernelImageForDevice;
}

cudaError_t launch_gemm_set_ups(const gemm::row_problem&, const gemm_call&, const gemm::row_problem&,
                                const gemm_call&) {
  return cudaErrorNoKernelImageForDevice;
}

template <class Problem>
cudaError_t launch_gemm_tiles(const Problem&, const gemm_call&) {
  return cudaErrorNoKernelImageForDevice;
}

template cudaError_t launch_gemm_set_up(const gemm::row_problem&, const gemm_call&);
template cudaError_t launch_gemm_set_up(const gemm::column_problem&, const gemm_call&);
template cudaError_t launch_gemm_set_up(const gemm::weight_problem&, const gemm_call&);
template cudaError_t launch_gemm_set_up(const gemm::pointer_problem&, const gemm_call&);

template cudaError_t launch_gemm_tiles(const gemm::row_problem&, const gemm_call&);
template cudaError_t launch_gemm_tiles(const gemm::column_problem&, const gemm_call&);
template cudaError_t launch_gemm_tiles(const gemm::weight_problem&, const gemm_call&);
template cudaError_t launch_gemm_tiles(const gemm::pointer_problem&, const gemm_call&);

}  // namespace tmap::kernels
