// SPDX-License-Identifier: Apache-2.0
// Products of groups of rows with a matrix for each group. Each group has a map of A that ends with
// its last row, so the rest of its last tile reads as zeros. Zeros cost no bytes, and less power
// than the next group's rows would. All groups share one map of B.
#include "kernels/gemm/product_launch.cuh"

namespace tmap::kernels {
namespace {

template <gemm::operand_type Type>
cudaError_t launch_layout(const gemm::row_problem& problem, const product_arguments& arguments, const gemm_call& call) {
  return problem.layout == gemm::b_layout::n_by_k
             ? launch_product<product_traits{.type = Type}>(arguments, call)
             : launch_product<product_traits{.type = Type, .b_is_across = true}>(arguments, call);
}

cudaError_t launch_f8(const gemm::row_problem& problem, const product_arguments& arguments, const gemm_call& call) {
  constexpr auto f8 = gemm::operand_type::f8_e4m3;
  return problem.fast_accumulation ? launch_product<product_traits{.type = f8}>(arguments, call)
                                   : launch_product<product_traits{.type = f8, .promotes = true}>(arguments, call);
}

cudaError_t launch_products(const gemm::row_problem& problem, const gemm_call& call) {
  product_arguments arguments = arguments_of(call, problem.groups, problem.layout == gemm::b_layout::n_by_k ? 1 : 0);
  arguments.shape.with = problem.epilogue;
  arguments.shape.values = has_gates(problem) ? static_cast<std::uint32_t>(problem.n / 2) : 0;
  switch (problem.type) {
    case gemm::operand_type::bf16: return launch_layout<gemm::operand_type::bf16>(problem, arguments, call);
    case gemm::operand_type::f16: return launch_layout<gemm::operand_type::f16>(problem, arguments, call);
    default: return launch_f8(problem, arguments, call);
  }
}

}  // namespace

cudaError_t launch_gemm(const gemm::row_problem& problem, const gemm_call& call) {
  const cudaError_t code = launch_set_up(problem, call);
  return code == cudaSuccess ? launch_products(problem, call) : code;
}

}  // namespace tmap::kernels
