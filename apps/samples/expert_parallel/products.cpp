// SPDX-License-Identifier: Apache-2.0
#include <tmap/grouped_gemm.hpp>
#include <tmap/ragged.hpp>

#include "apps/samples/expert_parallel/ranks.hpp"

namespace experts {

using tmap::apps::require;

/// Rounds tokens to 8 bits, each 128 values with a scale of their own.
void rank_layer::quantize() const {
  const auto rows_of = [&](tmap::device_address at, std::uint64_t columns, std::uint32_t bytes) {
    const tmap::row_offsets end{token_count_.get(), tmap::offset_format::ends, sizeof(std::int64_t)};
    return tmap::tensor_batch{.tensors = tmap::ragged_rows{at, columns * bytes, end},
                              .count = 1,
                              .element_bytes = bytes,
                              .rank = 2,
                              .inner = {.dim = {columns}}};
  };
  const tmap::ragged::quantize_values values{.from = tmap::ragged::value_type::bf16,
                                             .to = tmap::ragged::value_type::f8_e4m3,
                                             .block = tmap::ragged::scale_block::block_1x128};
  const tmap::on_stream where{cuda::stream_ref{stream_}, {quantize_scratch_.get(), quantize_scratch_.bytes()}};
  require(tmap::ragged::quantize(rows_of(tokens_.get(), sizes_.width, 2), rows_of(window_.data(), sizes_.width, 1),
                                 rows_of(x_scales_.get(), sizes_.scales(sizes_.width), 4), values, {.where = where}));
}

/// Returns a product of the rows of this rank's experts. The host does not know how many there are.
tmap::gemm::row_problem rank_layer::product(std::uint64_t n, std::uint64_t k, const own_weights& weights) const {
  tmap::gemm::row_problem made;
  made.type = sizes_.has_8_bits ? tmap::gemm::operand_type::f8_e4m3 : tmap::gemm::operand_type::bf16;
  made.groups = sizes_.local_experts();
  made.rows = rows();
  made.n = n;
  made.k = k;
  made.offsets = {begins_.get(), tmap::offset_format::prefix, sizeof(std::int32_t)};
  made.b = {weights.values.get(), k * sizes_.item_bytes()};
  made.b_group_pitch_bytes = n * k * sizes_.item_bytes();
  if (!sizes_.has_8_bits) return made;
  made.b_scales = {.values = weights.scales.get(),
                   .line_stride = sizes_.scales(k),
                   .k_stride = 1,
                   .group_stride = sizes_.scales(n) * sizes_.scales(k),
                   .lines = tmap::gemm::scaled_columns};
  return made;
}

void rank_layer::multiply() const {
  const tmap::gemm::run with{.where = {cuda::stream_ref{stream_}, {product_scratch_.get(), product_scratch_.bytes()}}};
  tmap::gemm::row_problem gate_up = product(std::uint64_t{2} * sizes_.hidden, sizes_.width, gate_up_);
  gate_up.a = rows_in_window(at_.rows, sizes_.row_bytes());
  gate_up.c = {activated_.get(), sizes_.hidden * sizes_.item_bytes()};
  gate_up.epilogue.gate.function = tmap::gemm::gate_function::silu;
  tmap::gemm::row_problem down = product(sizes_.width, sizes_.hidden, down_);
  down.a = gate_up.c;
  down.c = rows_in_window(at_.outputs, sizes_.result_bytes());
  if (sizes_.has_8_bits) {
    const std::uint64_t across = sizes_.scales(sizes_.hidden);
    gate_up.a_scales = {.values = row_scales_.get(), .line_stride = sizes_.scales(sizes_.width), .k_stride = 1};
    gate_up.c_type = tmap::gemm::result_type::f8_e4m3;
    gate_up.c_scales = {.values = activated_scales_.get(), .row_stride = across, .column_stride = 1};
    down.a_scales = {.values = activated_scales_.get(), .line_stride = across, .k_stride = 1};
  }
  require(tmap::gemm::multiply(gate_up, with));
  require(tmap::gemm::multiply(down, with));
}

}  // namespace experts
