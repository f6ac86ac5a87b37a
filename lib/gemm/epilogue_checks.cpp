// SPDX-License-Identifier: Apache-2.0
#include "lib/gemm/epilogue_checks.hpp"

#include <cmath>
#include <cstdint>

#include "kernels/gemm/gemm_group.hpp"
#include "lib/gemm/matrix_checks.hpp"

namespace tmap::gemm {
namespace {

using support::argument;
using support::arguments;

const argument epilogue_name{problem_name.member("epilogue")};
const argument gate_name{epilogue_name.member("gate")};

void check_type(arguments& given, result_type type, bool accumulates, result_type last) {
  given.enumerator(type, last, problem_name.member("c_type"));
  if (accumulates && type == result_type::f8_e4m3) {
    given.refuse(problem_name.member("accumulate"), "is {found}; with C of f8_e4m3 it must be {allowed}", 1, 0);
  }
}

/// Checks what a gate that makes gradients excludes.
void check_backward(arguments& given, const row_problem& problem) {
  if (!problem.epilogue.gate.backward) return;
  const auto exclude = [&](bool is_set, const argument& name) {
    if (is_set) given.refuse(name, "is set; with a backward gate it must be {allowed}", 1, 0);
  };
  exclude(problem.accumulate, problem_name.member("accumulate"));
  exclude(problem.c_type != result_type::like_operands, problem_name.member("c_type"));
  exclude(problem.epilogue.bias != nullptr, epilogue_name.member("bias"));
}

void check_gate(arguments& given, const row_problem& problem) {
  const gate& with = problem.epilogue.gate;
  check_gate(given, with, gate_name);
  if (!given) return;
  if (with.function == gate_function::none) {
    const char* const needs_function = "is set; without a function there is no gate, and it must be {allowed}";
    if (with.backward) given.refuse(gate_name.member("backward"), needs_function, 1, 0);
    if (with.kept.address != 0) given.refuse(gate_name.member("kept"), needs_function, 1, 0);
    return;
  }
  if (!with.backward) given.multiple(problem.n, gated_columns, problem_name.member("n"));
  check_backward(given, problem);
}

}  // namespace

void check_gate(arguments& given, const gate& with, const argument& name) {
  given.enumerator(with.function, gate_function::gelu_tanh, name.member("function"));
  given.enumerator(with.columns, gate_columns::interleaved, name.member("columns"));
  if (!given || with.function == gate_function::none) return;
  const char* const infinite = "is not finite; it must be a finite number";
  if (!std::isfinite(with.alpha)) given.refuse(name.member("alpha"), infinite);
  if (!(with.limit > 0)) given.refuse(name.member("limit"), "is not above 0; it must be, and infinity sets no limit");
  if (!std::isfinite(with.value_shift)) given.refuse(name.member("value_shift"), infinite);
}

void check_results(arguments& given, const row_problem& problem) {
  check_type(given, problem.c_type, problem.accumulate, result_type::f8_e4m3);
  check_gate(given, problem);
}

void check_results(arguments& given, const weight_problem& problem) {
  check_type(given, problem.c_type, problem.accumulate, result_type::f32);
}

void check_results(arguments& given, const pointer_problem& problem) {
  check_type(given, problem.c_type, problem.accumulate, result_type::f32);
}

void check_targets(arguments& given, const row_problem& problem) {
  const argument count_name = problem_name.member("c_row_count");
  if (problem.c_rows == nullptr) {
    return given.equal(problem.c_row_count, 0, count_name, "is {found}; without c_rows it must be {allowed}");
  }
  given.pointer(problem.c_rows, problem_name.member("c_rows"));
  given.range(problem.c_row_count, 1, max_extent, count_name);
  const auto exclude = [&](bool is_set, const argument& name, const char* reason) {
    if (is_set) given.refuse(name, reason);
  };
  exclude(problem.type == operand_type::f8_e5m2, problem_name.member("type"),
          "is f8_e5m2; with c_rows it must be another");
  exclude(problem.a_layout != a_layout::m_by_k, problem_name.member("a_layout"),
          "is k_by_m; with c_rows it must be m_by_k");
  exclude(problem.b_layout != b_layout::n_by_k, problem_name.member("b_layout"),
          "is k_by_n; with c_rows it must be n_by_k");
  exclude(problem.a_rows != nullptr, problem_name.member("a_rows"), "is not null; with c_rows it must be null");
  exclude(problem.c_addresses != nullptr, problem_name.member("c_addresses"),
          "is not null; with c_rows it must be null");
  exclude(problem.c_type == result_type::f8_e4m3, problem_name.member("c_type"),
          "is f8_e4m3; with c_rows it must be like_operands or f32");
  exclude(problem.fast_accumulation, problem_name.member("fast_accumulation"), "is set; with c_rows it must not be");
  exclude(problem.zero_rest, problem_name.member("zero_rest"), "is set; with c_rows it must not be");
  exclude(kernels::is_backward(problem), gate_name.member("backward"), "is set; with c_rows it must not be");
}

void check_epilogue(arguments& given, const row_problem& problem) {
  const epilogue& with = problem.epilogue;
  given.optional_pointer(with.row_scales, epilogue_name.member("row_scales"));
  if (with.row_scales != nullptr) given.at_least(with.row_scale_stride, 1, epilogue_name.member("row_scale_stride"));
  if (with.column_scales != nullptr)
    given.pointer(with.column_scales, unit_bytes, epilogue_name.member("column_scales"));
  if (with.bias != nullptr) given.pointer(with.bias, unit_bytes, epilogue_name.member("bias"));
  if (problem.c_type == result_type::f8_e4m3) {
    const argument scales_name = problem_name.member("c_scales");
    given.pointer(problem.c_scales.values, scales_name.member("values"));
    if (problem.c_scales.are_given) {
      given.equal(problem.c_scales.are_powers_of_two ? 1 : 0, 0, scales_name.member("are_powers_of_two"),
                  "is {found}; it must be {allowed} if the scales are given");
    }
  }
  if (with.gate.kept.address != 0 || kernels::is_backward(problem)) {
    const std::uint64_t columns = with.gate.backward ? 2 * problem.n : problem.n;
    check_matrix(given, with.gate.kept, {problem.rows, columns * sizeof(std::uint16_t)}, gate_name.member("kept"));
  }
}

}  // namespace tmap::gemm
