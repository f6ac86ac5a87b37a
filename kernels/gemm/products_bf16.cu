// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/product_launch.cuh"

namespace tmap::kernels {

cudaError_t launch_bf16(const operand_orders& orders, const product_arguments& arguments, const gemm_call& call) {
  return launch_orders<gemm::operand_type::bf16>(orders, arguments, call);
}

}  // namespace tmap::kernels
