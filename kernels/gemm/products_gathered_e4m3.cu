// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/product_launch.cuh"

namespace tmap::kernels {

cudaError_t launch_gathered_e4m3(promotion sums, const product_arguments& arguments, const gemm_call& call) {
  constexpr auto type = gemm::operand_type::f8_e4m3;
  switch (sums) {
    case promotion::none: return launch_plan<product_traits{.type = type, .gathers = true}>(arguments, call);
    case promotion::plain:
      return launch_plan<product_traits{.type = type, .sums = promotion::plain, .gathers = true}>(arguments, call);
    default: return launch_gathered_e4m3_scaled(arguments, call);
  }
}

}  // namespace tmap::kernels
