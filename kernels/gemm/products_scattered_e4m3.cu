// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/product_launch.cuh"

namespace tmap::kernels {

cudaError_t launch_scattered_e4m3(bool has_scales, const product_arguments& arguments, const gemm_call& call) {
  constexpr product_traits plain{.type = gemm::operand_type::f8_e4m3, .sums = promotion::plain, .scatters = true};
  constexpr product_traits scaled{.type = gemm::operand_type::f8_e4m3, .sums = promotion::scaled, .scatters = true};
  return has_scales ? launch_plan<scaled>(arguments, call) : launch_plan<plain>(arguments, call);
}

}  // namespace tmap::kernels
