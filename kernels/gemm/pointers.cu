// SPDX-License-Identifier: Apache-2.0
// Products that each have matrices of their own: three maps a group.
#include "kernels/gemm/product_launch.cuh"

namespace tmap::kernels {
namespace {

template <gemm::operand_type Type>
cudaError_t launch_layout(const gemm::pointer_problem& problem, const product_arguments& arguments,
                          const gemm_call& call) {
  constexpr product_traits n_by_k{.type = Type, .has_own_b = true};
  constexpr product_traits k_by_n{.type = Type, .b_is_across = true, .has_own_b = true};
  return problem.layout == gemm::b_layout::n_by_k ? launch_product<n_by_k>(arguments, call)
                                                  : launch_product<k_by_n>(arguments, call);
}

}  // namespace

cudaError_t launch_gemm(const gemm::pointer_problem& problem, const gemm_call& call) {
  const cudaError_t code = launch_set_up(problem, call);
  if (code != cudaSuccess) return code;
  product_arguments arguments = arguments_of(call, problem.groups, problem.layout == gemm::b_layout::n_by_k ? 1 : 0);
  arguments.shape.with.kind = problem.kind;
  return problem.type == gemm::operand_type::bf16 ? launch_layout<gemm::operand_type::bf16>(problem, arguments, call)
                                                  : launch_layout<gemm::operand_type::f16>(problem, arguments, call);
}

}  // namespace tmap::kernels
