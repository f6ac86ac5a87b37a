// SPDX-License-Identifier: Apache-2.0
// Products that sum over groups of rows: each group has maps of A and B that end with its last row,
// so that the rest of the last step of the sum reads as zeros.
#include "kernels/gemm/product_launch.cuh"

namespace tmap::kernels {

cudaError_t launch_gemm(const gemm::weight_problem& problem, const gemm_call& call) {
  const cudaError_t code = launch_set_up(problem, call);
  if (code != cudaSuccess) return code;
  product_arguments arguments = arguments_of(call, problem.groups, 0);
  arguments.shape.with.kind = problem.kind;
  constexpr product_traits bf16{
      .type = gemm::operand_type::bf16, .a_is_across = true, .b_is_across = true, .has_own_b = true};
  constexpr product_traits f16{
      .type = gemm::operand_type::f16, .a_is_across = true, .b_is_across = true, .has_own_b = true};
  return problem.type == bf16.type ? launch_product<bf16>(arguments, call) : launch_product<f16>(arguments, call);
}

}  // namespace tmap::kernels
