// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/product_launch.cuh"

namespace tmap::kernels {

cudaError_t launch_e4m3_scaled(const product_arguments& arguments, const gemm_call& call) {
  return launch_plan<product_traits{.type = gemm::operand_type::f8_e4m3, .sums = promotion::scaled}>(arguments, call);
}

}  // namespace tmap::kernels
