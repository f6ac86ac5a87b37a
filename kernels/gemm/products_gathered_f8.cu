// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/product_launch.cuh"

namespace tmap::kernels {

cudaError_t launch_gathered_f8(bool promotes, const product_arguments& arguments, const gemm_call& call) {
  constexpr auto type = gemm::operand_type::f8_e4m3;
  return promotes
             ? launch_plan<product_traits{.type = type, .sums = promotion::plain, .gathers = true}>(arguments, call)
             : launch_plan<product_traits{.type = type, .gathers = true}>(arguments, call);
}

}  // namespace tmap::kernels
