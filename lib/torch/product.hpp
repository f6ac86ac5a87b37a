// SPDX-License-Identifier: Apache-2.0
#pragma once

// The problems that grouped products hand to the library: all of them that follows from shapes and
// strides. python/tmap/_gemm_problem.py has the same rules and words.

#include <tmap/c/gemm.h>

#include "lib/torch/tensor_view.hpp"

#include <array>
#include <cstdint>
#include <variant>

namespace tmap::pytorch {

struct product {
  std::variant<tmap_row_problem, tmap_column_problem, tmap_weight_problem> problem;
  std::int64_t rank;
  std::array<std::int64_t, 3> sizes;    ///< of an output without gaps
  std::array<std::int64_t, 3> strides;  ///< of it, in elements
  bool has_sums;                        ///< false: nothing to sum over, or no column
};

/// Prepares a product with results of `result_bytes`. Operands have been checked apart from their
/// shapes and strides. Refuses what no grouped product does.
product prepare(const tensor_view& a, const tensor_view& b, const tensor_view& offs, std::uint32_t operand,
                std::int64_t result_bytes);

/// Enqueues a product on the current stream. The workspace comes from PyTorch and goes to others in
/// the stream's order.
void enqueue(product& ready, const tensor_view& a, const tensor_view& b, const tensor_view& out);

/// Makes the output of a product. With `zero_rest` it becomes zero where no good group writes, now
/// or by the product. Without sums it is zero.
Tensor make_output(product& ready, std::int32_t type, const tensor_view& like, bool zero_rest);

/// The checks that all products share.
void check_offsets(const tensor_view& a, const tensor_view& b, const tensor_view& offs);
void check_bias(const tensor_view& b, const tensor_view& bias, std::int32_t type);

}  // namespace tmap::pytorch
