// SPDX-License-Identifier: Apache-2.0
#include "lib/torch/on_device.hpp"
#include "lib/torch/operators.hpp"
#include "lib/torch/product.hpp"

#include <torch/csrc/stable/ops.h>

namespace tmap::pytorch {
namespace {

struct operands {
  tensor_view a, b;
  std::optional<tensor_view> offs, bias;
};

void check_output(const operands& of, std::int32_t out_type) {
  if (out_type == of.a.type) return;
  const bool may_be_wide = of.offs && of.a.rank == 2;
  if (out_type == types().f32 && may_be_wide) return;
  refuse("the product has the operands' type " + type_name(of.a.type) + (may_be_wide ? " or float32" : "") + ", not " +
         type_name(out_type));
}

void check_operands(const operands& of, std::int32_t out_type) {
  const tensor_view &a = of.a, &b = of.b;
  if (of.offs.has_value() == (a.rank == 3 && b.rank == 3)) {
    refuse("operands of " + std::to_string(a.rank) + " and " + std::to_string(b.rank) +
           " dims: two of 3 have no ragged dim and no offs, others have");
  }
  if (a.type != b.type || (a.type != types().bf16 && a.type != types().f16)) {
    refuse("a and b are both bfloat16 or both float16, not " + type_name(a.type) + " and " + type_name(b.type));
  }
  check_output(of, out_type);
  if (of.bias) {
    if (a.rank != 2 || b.rank != 3) {
      refuse("grouped_mm takes a bias where rows are ragged, a [rows, k] and b [groups, k, n]");
    }
    check_bias(b, *of.bias, a.type);
  }
  if (of.offs) check_offsets(a, b, *of.offs);
}

}  // namespace

Tensor grouped_mm(const Tensor& a, const Tensor& b, const std::optional<Tensor>& offs,
                  const std::optional<Tensor>& bias, std::optional<ScalarType> out_dtype, bool zero_rest) {
  const operands of{view_of(a), view_of(b), view_of(offs), view_of(bias)};
  const std::int32_t out_type = out_dtype ? type_number(*out_dtype) : of.a.type;
  check_operands(of, out_type);
  if (!of.offs) return batched_product(a, b);
  product ready = prepare(of.a, of.b, *of.offs, of.a.type == types().bf16 ? TMAP_OPERAND_BF16 : TMAP_OPERAND_F16,
                          out_type == types().f32 ? 4 : 2);
  const on_device here{of.a};
  Tensor out = make_output(ready, out_type, of.a, zero_rest);
  if (!ready.has_sums) return out;
  std::optional<Tensor> packed_bias;
  if (of.bias) {
    packed_bias = packed(*bias);
    std::get<tmap_row_problem>(ready.problem).bias = view_of(*packed_bias).pointer();
  }
  enqueue(ready, of.a, of.b, view_of(out));
  return out;
}

}  // namespace tmap::pytorch
