// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/product_launch.cuh"

namespace tmap::kernels {

cudaError_t launch_gathered_f16(bool b_is_across, const product_arguments& arguments, const gemm_call& call) {
  return launch_gathered<gemm::operand_type::f16>(b_is_across, arguments, call);
}

}  // namespace tmap::kernels
