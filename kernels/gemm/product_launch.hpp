// SPDX-License-Identifier: Apache-2.0
#pragma once

// The way from a problem of any form to the product kernels. There is a file of kernels for
// each type of operands.

#include <tmap/tensor_map.hpp>

#include "kernels/gemm/gemm_group.hpp"
#include "kernels/gemm_launch.hpp"

namespace tmap::kernels {

struct product_arguments {
  tensor_map b;  ///< shared by all groups, unless each has its own
  gemm_shape shape;
};

/// Whether lines of an operand lie across K, instead of along it.
struct operand_orders {
  bool a_is_across;
  bool b_is_across;
};

cudaError_t launch_bf16(const operand_orders& orders, const product_arguments& arguments, const gemm_call& call);
cudaError_t launch_f16(const operand_orders& orders, const product_arguments& arguments, const gemm_call& call);

/// Names the fate of the sums that tensor cores make of one stage of K, of operands of 8 bits.
enum class promotion : std::uint32_t {
  none,    ///< the tensor cores go on with them
  plain,   ///< they are added up in f32
  scaled,  ///< they are multiplied by their block's scales and added up in f32
  lines,   ///< the same, with scales of each row of A and each column of B
};
/// Operands of 8 bits lie along K.
cudaError_t launch_e4m3(promotion sums, const product_arguments& arguments, const gemm_call& call);
cudaError_t launch_e4m3_scaled(const product_arguments& arguments, const gemm_call& call);
cudaError_t launch_e5m2(const product_arguments& arguments, const gemm_call& call);
/// Launches products with scales of lines. `type` has 8 bits.
cudaError_t launch_lines(gemm::operand_type type, const product_arguments& arguments, const gemm_call& call);

/// Launch products whose rows of A are named by an index. They run along K.
cudaError_t launch_gathered_bf16(bool b_is_across, const product_arguments& arguments, const gemm_call& call);
cudaError_t launch_gathered_f16(bool b_is_across, const product_arguments& arguments, const gemm_call& call);
cudaError_t launch_gathered_e4m3(promotion sums, const product_arguments& arguments, const gemm_call& call);
cudaError_t launch_gathered_e4m3_scaled(const product_arguments& arguments, const gemm_call& call);
cudaError_t launch_gathered_e5m2(const product_arguments& arguments, const gemm_call& call);

/// Launch products whose rows of C are named by an index. Operands lie along K.
cudaError_t launch_scattered_bf16(const product_arguments& arguments, const gemm_call& call);
cudaError_t launch_scattered_f16(const product_arguments& arguments, const gemm_call& call);
cudaError_t launch_scattered_e4m3(bool has_scales, const product_arguments& arguments, const gemm_call& call);

}  // namespace tmap::kernels
