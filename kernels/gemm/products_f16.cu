// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/product_launch.cuh"

namespace tmap::kernels {

cudaError_t launch_f16(const operand_orders& orders, const product_arguments& arguments, const gemm_call& call) {
  return launch_orders<gemm::operand_type::f16>(orders, arguments, call);
}

}  // namespace tmap::kernels
