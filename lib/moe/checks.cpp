// SPDX-License-Identifier: Apache-2.0
#include "lib/moe/checks.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

#include "lib/batch/run_arguments.hpp"
#include "lib/gemm/matrix_checks.hpp"

namespace tmap::moe {
namespace {

using gemm::problem_name;
using support::argument;
using support::arguments;

constexpr std::uint64_t unit_bytes = 16;  // `combine` loads so many at once
/// The largest pitch with which no address overflows.
constexpr std::uint64_t most_pitch = std::uint64_t{1} << 40;
/// Rows are counted in signed integers of 32 bits.
constexpr std::uint64_t most_last_row = std::numeric_limits<std::int32_t>::max();

void check_token_choices(arguments& given, std::uint64_t tokens, std::uint32_t k, const argument& name) {
  given.range(k, 1, max_k, name.member("k"));
  if (given) given.at_most(tokens, max_choices / k, name.member("tokens"));
}

/// A matrix whose rows have `row_bytes`. Its address and pitch are multiples of `alignment`.
struct matrix_shape {
  std::uint64_t rows;
  std::uint64_t row_bytes;
  std::uint64_t alignment;
};

void check_matrix(arguments& given, const gemm::matrix& of, const matrix_shape& shape, const argument& name) {
  given.address(of.address, shape.alignment, name.member("address"));
  given.range(of.pitch_bytes, shape.row_bytes, most_pitch, name.member("pitch_bytes"));
  given.multiple(of.pitch_bytes, shape.alignment, name.member("pitch_bytes"));
  if (given && shape.rows != 0) gemm::check_reach(given, of, shape.rows, shape.row_bytes, name);
}

void check_groups(arguments& given, const route_problem& problem, const expert_groups& groups, const argument& name) {
  given.enumerator(groups.score, group_scoring::sum_of_two_largest, name.member("score"));
  given.range(groups.count, 1, max_expert_groups, name.member("count"));
  given.range(groups.chosen, 1, groups.count, name.member("chosen"));
  if (!given) return;
  if (problem.experts % groups.count != 0) {
    given.refuse(name.member("count"), "is {found}; it must divide the number of experts, {allowed}, evenly",
                 groups.count, problem.experts);
    return;
  }
  const std::uint32_t size = problem.experts / groups.count;
  if (groups.chosen * size < problem.k) {
    given.refuse(name.member("chosen"),
                 "is {found}; the chosen groups must hold at least k experts, which is {allowed}", groups.chosen,
                 problem.k);
  }
  if (groups.count > 1 && groups.score == group_scoring::sum_of_two_largest && size < 2) {
    given.refuse(name.member("score"), "is sum_of_two_largest; then each group must have at least 2 experts");
  }
}

void check_choices(arguments& given, const route_problem& problem, const logits& from, const argument& of_problem) {
  const argument name = of_problem.member("choices");
  given.enumerator(from.type, float_type::f16, name.member("type"));
  given.enumerator(from.scoring, scoring::sigmoid, name.member("scoring"));
  if (!given) return;
  given.at_most(problem.k, problem.experts, of_problem.member("k"));
  if (!given) return;
  check_groups(given, problem, from.groups, name.member("groups"));
  given.optional_pointer(from.bias, name.member("bias"));
  if (from.bias != nullptr && from.scoring != scoring::sigmoid) {
    given.refuse(name.member("bias"), "is not null; it must be null, unless the scoring is sigmoid");
  }
  if (!std::isfinite(from.scale)) given.refuse(name.member("scale"), "is not finite; it must be a finite number");
  if (!given || problem.tokens == 0) return;
  const std::uint32_t bytes = float_bytes(from.type);
  check_matrix(given, from.values, {problem.tokens, std::uint64_t{problem.experts} * bytes, bytes},
               name.member("values"));
}

void check_choices(arguments& given, const route_problem& problem, const given_choices& from,
                   const argument& of_problem) {
  const argument name = of_problem.member("choices");
  given.integer_bytes(from.bytes, name.member("bytes"));
  if (given && problem.tokens != 0) given.pointer(from.ids, from.bytes, name.member("ids"));
  given.optional_pointer(from.weights, name.member("weights"));
}

}  // namespace

void check_call(arguments& given, const run& with) {
  check_run(given, with);
  given.equal(with.windows.size(), 0, "windows", "are {found}; this call takes none, so there must be {allowed}");
}

void check_sizes(arguments& given, const route_problem& problem, const argument& name) {
  given.range(problem.experts, 1, max_experts, name.member("experts"));
  check_token_choices(given, problem.tokens, problem.k, name);
}

void check_problem(arguments& given, const route_problem& problem, const argument& name) {
  given.power_of_two(problem.alignment, max_alignment, name.member("alignment"));
  if (!given) return;
  given.at_most(problem.rows, most_last_row, name.member("rows"));
  given.multiple(problem.rows, problem.alignment, name.member("rows"));
  if (problem.choices.valueless_by_exception()) {
    return given.refuse(name.member("choices"), "holds no value; it must hold logits or given_choices");
  }
  std::visit([&](const auto& from) { check_choices(given, problem, from, name); }, problem.choices);
}

void check_results(arguments& given, const route_problem& problem, const route_results& results, const argument& name) {
  given.optional_pointer(results.ids, name.member("ids"));
  given.optional_pointer(results.weights, name.member("weights"));
  given.optional_pointer(results.counts, name.member("counts"));
  given.optional_pointer(results.begins, name.member("begins"));
  given.optional_pointer(results.ends, name.member("ends"));
  given.optional_pointer(results.row_of_choice, name.member("row_of_choice"));
  given.optional_pointer(results.token_of_row, name.member("token_of_row"));
  given.optional_pointer(results.weight_of_row, name.member("weight_of_row"));
  if (!given || !std::holds_alternative<given_choices>(problem.choices)) return;
  const char* const is_there = "is not null; it must be null with given choices, which are inputs";
  if (results.ids != nullptr) given.refuse(name.member("ids"), is_there);
  if (results.weights != nullptr) given.refuse(name.member("weights"), is_there);
}

namespace {

/// Checks what sums and their gradients have in common. Returns whether there is more to check.
template <class Problem>
bool check_sums(arguments& given, const Problem& problem) {
  given.enumerator(problem.row_type, float_type::f16, problem_name.member("row_type"));
  check_token_choices(given, problem.tokens, problem.k, problem_name);
  given.at_most(problem.columns, max_columns, problem_name.member("columns"));
  given.at_most(problem.rows, most_last_row, problem_name.member("rows"));
  if (!given) return false;
  given.multiple(problem.columns, unit_bytes / float_bytes(problem.row_type), problem_name.member("columns"));
  if (!given || problem.tokens == 0 || problem.columns == 0) return false;
  given.pointer(problem.row_of_choice, problem_name.member("row_of_choice"));
  given.optional_pointer(problem.weights, problem_name.member("weights"));
  return true;
}

template <class Problem>
matrix_shape shape_of(const Problem& problem, std::uint64_t rows) {
  return {rows, problem.columns * float_bytes(problem.row_type), unit_bytes};
}

}  // namespace

void check_problem(arguments& given, const combine_problem& problem) {
  if (!check_sums(given, problem)) return;
  if (problem.rows != 0) {
    check_matrix(given, problem.values, shape_of(problem, problem.rows), problem_name.member("values"));
  }
  const matrix_shape of_tokens = shape_of(problem, problem.tokens);
  if (problem.base.address != 0) check_matrix(given, problem.base, of_tokens, problem_name.member("base"));
  check_matrix(given, problem.out, of_tokens, problem_name.member("out"));
}

void check_problem(arguments& given, const combine_gradients& problem) {
  if (!check_sums(given, problem)) return;
  check_matrix(given, problem.d_out, shape_of(problem, problem.tokens), problem_name.member("d_out"));
  given.optional_pointer(problem.d_weights, problem_name.member("d_weights"));
  if (problem.rows == 0) return;
  const matrix_shape of_rows = shape_of(problem, problem.rows);
  if (problem.d_weights != nullptr) check_matrix(given, problem.values, of_rows, problem_name.member("values"));
  if (problem.d_values.address != 0) check_matrix(given, problem.d_values, of_rows, problem_name.member("d_values"));
}

}  // namespace tmap::moe
