// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/product_launch.cuh"

namespace tmap::kernels {

// Without scales, all factors are 1. That costs less than kernels of their own, which would have to
// be compiled.
cudaError_t launch_e5m2(const product_arguments& arguments, const gemm_call& call) {
  return launch_plan<product_traits{.type = gemm::operand_type::f8_e5m2, .sums = promotion::scaled}>(arguments, call);
}

}  // namespace tmap::kernels
