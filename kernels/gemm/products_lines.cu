// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/product_launch.cuh"

namespace tmap::kernels {

cudaError_t launch_lines(gemm::operand_type type, const product_arguments& arguments, const gemm_call& call) {
  constexpr auto e4m3 = gemm::operand_type::f8_e4m3;
  constexpr auto e5m2 = gemm::operand_type::f8_e5m2;
  constexpr auto sums = promotion::lines;
  return type == e4m3 ? launch_plan<product_traits{.type = e4m3, .sums = sums}>(arguments, call)
                      : launch_plan<product_traits{.type = e5m2, .sums = sums}>(arguments, call);
}

}  // namespace tmap::kernels
