// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/product_launch.cuh"

namespace tmap::kernels {
namespace {

template <gemm::operand_type Type>
cudaError_t launch(const product_arguments& arguments, const gemm_call& call) {
  return launch_plan<product_traits{.type = Type, .sums = promotion::scaled, .gathers = true}>(arguments, call);
}

}  // namespace

cudaError_t launch_gathered_e4m3_scaled(const product_arguments& arguments, const gemm_call& call) {
  return launch<gemm::operand_type::f8_e4m3>(arguments, call);
}

// As in products_e5m2.cu, all factors are 1 without scales.
cudaError_t launch_gathered_e5m2(const product_arguments& arguments, const gemm_call& call) {
  return launch<gemm::operand_type::f8_e5m2>(arguments, call);
}

}  // namespace tmap::kernels
