// SPDX-License-Identifier: Apache-2.0
#include "lib/torch/on_device.hpp"
#include "lib/torch/operators.hpp"
#include "lib/torch/product.hpp"

#include <algorithm>

namespace tmap::pytorch {
namespace {

constexpr std::int64_t block = 128;  // elements that share a scale

std::int64_t blocks_of(std::int64_t elements) {
  return (elements + block - 1) / block;
}

void check_type(const char* name, std::int32_t type, std::initializer_list<std::int32_t> allowed) {
  std::string names;
  for (const std::int32_t each : allowed) {
    if (each == type) return;
    names += (names.empty() ? "" : " or ") + type_name(each);
  }
  refuse(std::string(name) + " is of " + names + ", not " + type_name(type));
}

struct scaled_operands {
  tensor_view a, b, a_scales, b_scales, offs;
  std::optional<tensor_view> bias;

  bool have_blocks() const { return a_scales.rank != 1; }
};

void check_products(const scaled_operands& of, std::int32_t out_type) {
  const tensor_view &a = of.a, &b = of.b;
  check_type("a", a.type, {types().e4m3, types().e5m2});
  check_type("b", b.type, {types().e4m3});
  if (a.rank != 2 || b.rank != 3 || a.sizes[1] != b.sizes[1]) {
    refuse("a is [rows, k] and b [groups, k, n], not " + shape_text(a) + " and " + shape_text(b));
  }
  check_offsets(a, b, of.offs);
  if (b.sizes[0] != of.offs.sizes[0]) {
    refuse("offs cuts " + number_text(of.offs.sizes[0]) + " groups, b has " + number_text(b.sizes[0]));
  }
  if (of.bias) check_bias(b, *of.bias, types().bf16);
  check_type("the product", out_type, {types().bf16, types().f32});
}

void check_scales(const char* name, const tensor_view& scales, std::initializer_list<std::int64_t> shape,
                  const tensor_view& a) {
  if (scales.type == types().f32 && scales.has_shape(shape) && scales.is_on_device_of(a)) return;
  refuse(std::string(name) + " is " + shape_text(scales) + " of " + type_name(scales.type) + " on " +
         device_name(scales) + ": it must be " + shape_text(shape) + " of torch.float32 on " + device_name(a));
}

void check_all(const scaled_operands& of, std::int32_t out_type, bool fast_accumulation) {
  check_products(of, out_type);
  const std::int64_t rows = of.a.sizes[0], k = of.a.sizes[1], groups = of.b.sizes[0], n = of.b.sizes[2];
  if (of.have_blocks()) {
    check_scales("a_scales", of.a_scales, {rows, blocks_of(k)}, of.a);
    check_scales("b_scales", of.b_scales, {groups, blocks_of(k), blocks_of(n)}, of.a);
  } else {
    check_scales("a_scales", of.a_scales, {rows}, of.a);
    check_scales("b_scales", of.b_scales, {groups, n}, of.a);
  }
  if (fast_accumulation && (of.have_blocks() || of.a.type != types().e4m3)) {
    refuse("fast_accumulation is for a of float8_e4m3fn with scales of rows");
  }
}

/// Tensors without gaps, which live until the work is enqueued.
struct packed_terms {
  std::optional<Tensor> a_scales, b_scales, bias;
};

const void* pointer_to(const Tensor& tensor) {
  return view_of(tensor).pointer();
}

void set_block_scales(tmap_row_problem& problem, const tensor_view& of_a, const tensor_view& of_b) {
  problem.a_scales.values = static_cast<const float*>(of_a.pointer());
  problem.a_scales.line_stride = unsigned_of(of_a.strides[0]);
  problem.a_scales.k_stride = unsigned_of(of_a.strides[1]);
  problem.a_scales.lines = 1;
  problem.b_scales.values = static_cast<const float*>(of_b.pointer());
  problem.b_scales.line_stride = unsigned_of(of_b.strides[2]);
  problem.b_scales.k_stride = unsigned_of(of_b.strides[1]);
  problem.b_scales.group_stride = unsigned_of(of_b.strides[0]);
  problem.b_scales.lines = block;
}

}  // namespace

Tensor grouped_scaled_mm(const Tensor& a, const Tensor& b, const Tensor& a_scales, const Tensor& b_scales,
                         const Tensor& offs, const std::optional<Tensor>& bias, std::optional<ScalarType> out_dtype,
                         bool fast_accumulation, bool zero_rest) {
  const scaled_operands of{view_of(a), view_of(b), view_of(a_scales), view_of(b_scales), view_of(offs), view_of(bias)};
  const std::int32_t out_type = out_dtype ? type_number(*out_dtype) : types().bf16;
  check_all(of, out_type, fast_accumulation);
  const std::uint32_t operand = of.a.type == types().e4m3 ? TMAP_OPERAND_F8_E4M3 : TMAP_OPERAND_F8_E5M2;
  const std::int64_t rows = of.a.sizes[0], n = of.b.sizes[2];
  const bool has_sums = of.a.elements() > 0 && of.b.elements() > 0;
  product ready = has_sums ? prepare(of.a, of.b, of.offs, operand, out_type == types().f32 ? 4 : 2)
                           : product{{}, 2, {rows, n, 0}, {std::max<std::int64_t>(n, 1), 1, 0}, false};
  const on_device here{of.a};
  Tensor out = make_output(ready, out_type, of.a, zero_rest);
  if (!ready.has_sums) return out;
  auto& problem = std::get<tmap_row_problem>(ready.problem);
  problem.fast_accumulation = fast_accumulation ? 1 : 0;
  packed_terms terms;
  if (of.have_blocks()) {
    set_block_scales(problem, of.a_scales, of.b_scales);
  } else {
    terms.a_scales = packed(a_scales);
    terms.b_scales = packed(b_scales);
    problem.row_scales = static_cast<const float*>(pointer_to(*terms.a_scales));
    problem.column_scales = static_cast<const float*>(pointer_to(*terms.b_scales));
  }
  if (bias) {
    terms.bias = packed(*bias);
    problem.bias = pointer_to(*terms.bias);
  }
  enqueue(ready, of.a, of.b, view_of(out));
  return out;
}

}  // namespace tmap::pytorch
