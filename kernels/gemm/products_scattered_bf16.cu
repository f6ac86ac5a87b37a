// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/product_launch.cuh"

namespace tmap::kernels {

cudaError_t launch_scattered_bf16(const product_arguments& arguments, const gemm_call& call) {
  return launch_plan<product_traits{.type = gemm::operand_type::bf16, .scatters = true}>(arguments, call);
}

}  // namespace tmap::kernels
