// SPDX-License-Identifier: Apache-2.0
#include "lib/moe/layer_checks.hpp"

#include "lib/gemm/epilogue_checks.hpp"
#include "lib/gemm/matrix_checks.hpp"
#include "lib/gemm/scale_checks.hpp"
#include "lib/moe/checks.hpp"

namespace tmap::moe {
namespace {

using gemm::problem_name;
using support::argument;
using support::arguments;

const argument routing_name = problem_name.member("routing");
const argument gate_name = problem_name.member("gate");
constexpr std::uint64_t most_scales = 0xffffffff;  // of the rows of all experts

void check_weights(arguments& given, const layer_problem& problem, const expert_weights& weights,
                   const gemm::row_shape& shape, const argument& name) {
  const argument values = name.member("values");
  if (weights.addresses != nullptr) {
    gemm::check_listed(given, weights.addresses, weights.values, shape, name.member("addresses"), values);
  } else {
    gemm::check_matrices(given, weights.values, shape,
                         {problem.routing.experts, weights.group_pitch_bytes, name.member("group_pitch_bytes")},
                         values);
  }
  if (weights.bias != nullptr) given.pointer(weights.bias, gemm::unit_bytes, name.member("bias"));
  const argument scales = name.member("scales");
  if (!has_8_bits(problem)) {
    if (weights.scales.values != nullptr)
      given.refuse(scales.member("values"), "is not null; only weights of 8 bits have scales");
    return;
  }
  given.pointer(weights.scales.values, scales.member("values"));
  given.equal(weights.scales.lines, gemm::scaled_columns, scales.member("lines"), "is {found}; it must be {allowed}");
  if (!given) return;
  gemm::check_scale_places(given, weights.scales, shape.rows, problem.routing.experts, shape.bytes, scales);
}

void check_layer_gate(arguments& given, const layer_problem& problem) {
  const gemm::gate& gate = problem.gate;
  gemm::check_gate(given, gate, gate_name);
  if (!given) return;
  if (gate.function == gemm::gate_function::none) {
    given.refuse(gate_name.member("function"), "is none; a layer's experts have a gate");
  }
  if (gate.backward) given.refuse(gate_name.member("backward"), "is set; a layer's gate is not backward");
}

void check_scales(arguments& given, const layer_problem& problem, const float* scales, const argument& name) {
  given.optional_pointer(scales, name);
  if (scales != nullptr && !has_8_bits(problem)) given.refuse(name, "is not null; only operands of 8 bits have scales");
}

void check_optional(arguments& given, const gemm::matrix& of, const gemm::row_shape& shape, const argument& name) {
  if (of.address != 0) gemm::check_matrix(given, of, shape, name);
}

}  // namespace

bool has_8_bits(const layer_problem& problem) {
  return problem.type == gemm::operand_type::f8_e4m3;
}

std::uint64_t scales_of(std::uint64_t columns) {
  return (columns + gemm::scaled_elements - 1) / gemm::scaled_elements;
}

std::uint64_t row_count(const layer_problem& problem) {
  const route_problem& routing = problem.routing;
  return routing.rows != 0 ? routing.rows : most_rows(routing.tokens, routing.experts, routing.k, routing.alignment);
}

void check_sizes(arguments& given, const layer_problem& problem) {
  check_sizes(given, problem.routing, routing_name);
  given.power_of_two(problem.routing.alignment, max_alignment, routing_name.member("alignment"));
  given.enumerator(problem.type, gemm::operand_type::f8_e4m3, problem_name.member("type"));
  if (!given) return;
  const argument width = problem_name.member("width");
  given.range(problem.width, 1, max_columns, width);
  given.multiple(problem.width, gemm::unit_bytes / gemm::operand_bytes(problem.type), width);
  const argument inner = problem_name.member("inner");
  given.range(problem.inner, 1, max_columns, inner);
  const bool has_scaled_halves = has_8_bits(problem) && problem.gate.columns == gemm::gate_columns::halves;
  given.multiple(problem.inner, has_scaled_halves ? gemm::scaled_columns : gemm::gated_columns / 2, inner);
}

void check_problem(arguments& given, const layer_problem& problem) {
  check_problem(given, problem.routing, routing_name);
  if (has_8_bits(problem)) {
    const std::uint64_t of_row = scales_of(problem.width > problem.inner ? problem.width : problem.inner);
    given.at_most(row_count(problem), most_scales / of_row, routing_name.member("rows"));
    given.at_most(problem.routing.tokens, most_scales / of_row, routing_name.member("tokens"));
  }
  check_layer_gate(given, problem);
  if (!given || problem.routing.tokens == 0) return;
  const std::uint64_t item = gemm::operand_bytes(problem.type);
  check_weights(given, problem, problem.gate_up, {2 * problem.inner, problem.width * item},
                problem_name.member("gate_up"));
  check_weights(given, problem, problem.down, {problem.width, problem.inner * item}, problem_name.member("down"));
  const gemm::row_shape of_tokens{problem.routing.tokens, problem.width * token_item_bytes};
  gemm::check_matrix(given, problem.x, of_tokens, problem_name.member("x"));
  check_optional(given, problem.base, of_tokens, problem_name.member("base"));
  gemm::check_matrix(given, problem.out, of_tokens, problem_name.member("out"));
  check_optional(given, problem.gate.kept, {row_count(problem), 2 * problem.inner * token_item_bytes},
                 gate_name.member("kept"));
}

void check_results(arguments& given, const layer_problem& problem, const layer_results& results) {
  const argument name{"results"};
  check_results(given, problem.routing, results.routed, name.member("routed"));
  check_scales(given, problem, results.row_scales, name.member("row_scales"));
  if (has_8_bits(problem) && (results.rows.address != 0) != (results.row_scales != nullptr)) {
    given.refuse(name.member("row_scales"), "and rows go together: both are wanted, or neither");
  }
  check_scales(given, problem, results.activated_scales, name.member("activated_scales"));
  given.optional_pointer(results.gate_up_statuses, name.member("gate_up_statuses"));
  given.optional_pointer(results.down_statuses, name.member("down_statuses"));
  if (!given || problem.routing.tokens == 0) return;
  const std::uint64_t rows = row_count(problem);
  const std::uint64_t item = gemm::operand_bytes(problem.type);
  check_optional(given, results.rows, {rows, problem.width * item}, name.member("rows"));
  check_optional(given, results.activated, {rows, problem.inner * item}, name.member("activated"));
  check_optional(given, results.outputs, {rows, problem.width * token_item_bytes}, name.member("outputs"));
}

}  // namespace tmap::moe
