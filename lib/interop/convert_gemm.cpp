// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/convert.hpp"

namespace tmap::interop {
namespace {

static_assert(mirrors(TMAP_OPERAND_BF16, gemm::operand_type::bf16) &&
              mirrors(TMAP_OPERAND_F16, gemm::operand_type::f16));
static_assert(mirrors(TMAP_OPERAND_F8_E4M3, gemm::operand_type::f8_e4m3) &&
              mirrors(TMAP_OPERAND_F8_E5M2, gemm::operand_type::f8_e5m2));
static_assert(mirrors(TMAP_A_M_BY_K, gemm::a_layout::m_by_k) && mirrors(TMAP_A_K_BY_M, gemm::a_layout::k_by_m));
static_assert(mirrors(TMAP_B_N_BY_K, gemm::b_layout::n_by_k) && mirrors(TMAP_B_K_BY_N, gemm::b_layout::k_by_n));
static_assert(mirrors(TMAP_RESULT_LIKE_OPERANDS, gemm::result_type::like_operands) &&
              mirrors(TMAP_RESULT_F32, gemm::result_type::f32) &&
              mirrors(TMAP_RESULT_F8_E4M3, gemm::result_type::f8_e4m3));
static_assert(mirrors(TMAP_GATE_NONE, gemm::gate_function::none) && mirrors(TMAP_GATE_SILU, gemm::gate_function::silu));
static_assert(mirrors(TMAP_GATE_GELU, gemm::gate_function::gelu));
static_assert(mirrors(TMAP_GATE_GELU_TANH, gemm::gate_function::gelu_tanh));
static_assert(mirrors(TMAP_GATE_HALVES, gemm::gate_columns::halves) &&
              mirrors(TMAP_GATE_INTERLEAVED, gemm::gate_columns::interleaved));

gemm::result_scales scales_of(const tmap_result_scales& from) {
  return {from.values, from.row_stride, from.column_stride, from.are_powers_of_two != 0, from.are_given != 0};
}

}  // namespace

gemm::matrix library_of(const tmap_matrix& from) {
  return {from.address, from.pitch_bytes};
}

gemm::block_scales library_of(const tmap_block_scales& from) {
  return {from.values, from.line_stride, from.k_stride, from.group_stride, from.lines == 0 ? 1 : from.lines};
}

gemm::gate library_of(const tmap_gate& from) {
  constexpr gemm::gate plain;
  return {.function = static_cast<gemm::gate_function>(from.function),
          .columns = static_cast<gemm::gate_columns>(from.columns),
          .alpha = from.alpha == 0 ? plain.alpha : from.alpha,
          .limit = from.limit == 0 ? plain.limit : from.limit,
          .value_shift = from.value_shift,
          .kept = library_of(from.kept),
          .backward = from.backward != 0};
}

void check_members(arguments& all, const tmap_row_problem& problem, const support::argument& name) {
  all.enumerator(problem.fast_accumulation, 1, name.member("fast_accumulation"));
  all.enumerator(problem.zero_rest, 1, name.member("zero_rest"));
  all.equal(problem.reserved, 0, name.member("reserved"), "is {found}; it must be {allowed}");
  all.enumerator(problem.accumulate, 1, name.member("accumulate"));
  all.enumerator(problem.c_scales.are_powers_of_two, 1, name.member("c_scales").member("are_powers_of_two"));
  all.enumerator(problem.c_scales.are_given, 1, name.member("c_scales").member("are_given"));
  all.enumerator(problem.gate.backward, 1, name.member("gate").member("backward"));
}

void check_members(arguments& all, const tmap_column_problem& problem, const support::argument& name) {
  all.equal(problem.reserved, 0, name.member("reserved"), "is {found}; it must be {allowed}");
}

void check_members(arguments& all, const tmap_weight_problem& problem, const support::argument& name) {
  all.enumerator(problem.accumulate, 1, name.member("accumulate"));
  all.enumerator(problem.zero_rest, 1, name.member("zero_rest"));
}

void check_members(arguments& all, const tmap_pointer_problem& problem, const support::argument& name) {
  all.enumerator(problem.accumulate, 1, name.member("accumulate"));
  all.equal(problem.reserved, 0, name.member("reserved"), "is {found}; it must be {allowed}");
}

gemm::row_problem library_of(const tmap_row_problem& from) {
  return {.type = static_cast<gemm::operand_type>(from.operand),
          .groups = from.groups,
          .rows = from.rows,
          .n = from.n,
          .k = from.k,
          .offsets = library_of(from.offsets),
          .a = library_of(from.a),
          .a_layout = static_cast<gemm::a_layout>(from.a_layout),
          .pending = from.pending,
          .a_rows = from.a_rows,
          .a_row_count = from.a_row_count,
          .b = library_of(from.b),
          .b_group_pitch_bytes = from.b_group_pitch_bytes,
          .b_addresses = from.b_addresses,
          .b_layout = static_cast<gemm::b_layout>(from.b_layout),
          .c = library_of(from.c),
          .c_addresses = from.c_addresses,
          .c_rows = from.c_rows,
          .c_row_count = from.c_row_count,
          .c_type = static_cast<gemm::result_type>(from.c_type),
          .accumulate = from.accumulate != 0,
          .c_scales = scales_of(from.c_scales),
          .epilogue = {.row_scales = from.row_scales,
                       .row_scale_stride = from.row_scale_stride == 0 ? 1 : from.row_scale_stride,
                       .column_scales = from.column_scales,
                       .bias = from.bias,
                       .gate = library_of(from.gate)},
          .a_scales = library_of(from.a_scales),
          .b_scales = library_of(from.b_scales),
          .fast_accumulation = from.fast_accumulation != 0,
          .zero_rest = from.zero_rest != 0};
}

gemm::column_problem library_of(const tmap_column_problem& from) {
  return {.type = static_cast<gemm::operand_type>(from.operand),
          .groups = from.groups,
          .columns = from.columns,
          .m = from.m,
          .k = from.k,
          .offsets = library_of(from.offsets),
          .a = library_of(from.a),
          .a_group_pitch_bytes = from.a_group_pitch_bytes,
          .a_layout = static_cast<gemm::a_layout>(from.a_layout),
          .b = library_of(from.b),
          .b_layout = static_cast<gemm::b_layout>(from.b_layout),
          .c = library_of(from.c)};
}

gemm::weight_problem library_of(const tmap_weight_problem& from) {
  return {.type = static_cast<gemm::operand_type>(from.operand),
          .groups = from.groups,
          .rows = from.rows,
          .m = from.m,
          .n = from.n,
          .offsets = library_of(from.offsets),
          .a = library_of(from.a),
          .a_layout = static_cast<gemm::a_layout>(from.a_layout),
          .b = library_of(from.b),
          .b_layout = static_cast<gemm::b_layout>(from.b_layout),
          .c = library_of(from.c),
          .c_group_pitch_bytes = from.c_group_pitch_bytes,
          .c_addresses = from.c_addresses,
          .c_type = static_cast<gemm::result_type>(from.c_type),
          .accumulate = from.accumulate != 0,
          .zero_rest = from.zero_rest != 0,
          .a_scales = library_of(from.a_scales),
          .b_scales = library_of(from.b_scales)};
}

gemm::pointer_problem library_of(const tmap_pointer_problem& from) {
  return {.type = static_cast<gemm::operand_type>(from.operand),
          .groups = from.groups,
          .a = from.a,
          .b = from.b,
          .c = from.c,
          .a_pitch_bytes = from.a_pitch_bytes,
          .b_pitch_bytes = from.b_pitch_bytes,
          .c_pitch_bytes = from.c_pitch_bytes,
          .m = from.m,
          .n = from.n,
          .k = from.k,
          .a_layout = static_cast<gemm::a_layout>(from.a_layout),
          .b_layout = static_cast<gemm::b_layout>(from.b_layout),
          .c_type = static_cast<gemm::result_type>(from.c_type),
          .accumulate = from.accumulate != 0};
}

}  // namespace tmap::interop
