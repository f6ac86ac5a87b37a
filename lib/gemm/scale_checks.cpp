// SPDX-License-Identifier: Apache-2.0
#include "lib/gemm/scale_checks.hpp"

#include "kernels/gemm/gemm_group.hpp"
#include "lib/gemm/matrix_checks.hpp"

namespace tmap::gemm {

using support::argument;
using support::arguments;

void check_block_scales(arguments& given, const row_problem& problem) {
  const argument a_name = problem_name.member("a_scales");
  const argument b_name = problem_name.member("b_scales");
  const bool has_a = problem.a_scales.values != nullptr;
  const bool has_b = problem.b_scales.values != nullptr;
  if (!has_a && !has_b) return;
  if (!has_8_bits(problem.type)) {
    return given.refuse((has_a ? a_name : b_name).member("values"),
                        "is set; only operands of 8 bits have block scales");
  }
  given.pointer(problem.a_scales.values, a_name.member("values"));
  given.pointer(problem.b_scales.values, b_name.member("values"));
  given.equal(problem.a_scales.lines, 1, a_name.member("lines"),
              "is {found}; each row of A has scales, so it must be {allowed}");
  given.equal(problem.b_scales.lines, scaled_columns, b_name.member("lines"), "is {found}; it must be {allowed}");
  given.equal(problem.a_scales.group_stride, 0, a_name.member("group_stride"),
              "is {found}; the rows of all groups are one matrix, so it must be {allowed}");
  if (kernels::has_gates(problem) && problem.epilogue.gate.columns == gate_columns::halves) {
    given.multiple(problem.n, 2 * scaled_columns, problem_name.member("n"));
  }
  if (!given) return;
  check_scale_places(given, problem.a_scales, a_row_count(problem), 1, problem.k, a_name);
  check_scale_places(given, problem.b_scales, problem.n, problem.groups, problem.k, b_name);
}

void check_line_scales(arguments& given, const weight_problem& problem) {
  const auto check = [&](const block_scales& scales, std::uint64_t lines, const argument& name) {
    const argument values = name.member("values");
    if (!has_8_bits(problem.type)) {
      if (scales.values != nullptr) given.refuse(values, "is set; only operands of 8 bits have block scales");
      return;
    }
    if (scales.values == nullptr) {
      return given.refuse(values, "is null; sums over rows of 8 bits need scales (ragged::quantize makes both)");
    }
    given.pointer(scales.values, values);
    given.equal(scales.lines, 1, name.member("lines"),
                "is {found}; sums over rows have scales for each line, so it must be {allowed}");
    if (given && problem.rows != 0) check_scale_places(given, scales, lines, problem.groups, problem.rows, name);
  };
  const argument b_name = problem_name.member("b_scales");
  check(problem.a_scales, problem.m, problem_name.member("a_scales"));
  check(problem.b_scales, problem.n, b_name);
  if (!has_8_bits(problem.type)) return;
  given.equal(problem.b_scales.line_stride, 1, b_name.member("line_stride"),
              "is {found}; scales of neighbouring columns follow each other, as ragged::quantize with "
              "block_128x1 writes them, so it must be {allowed}");
}

void check_scale_places(arguments& given, const block_scales& scales, std::uint64_t lines, std::uint64_t groups,
                        std::uint64_t k, const argument& name) {
  constexpr std::uint64_t most = 0xffffffff;
  const auto check_stride = [&](std::uint64_t stride, std::uint64_t steps, const char* word) {
    given.at_most(stride, steps == 0 ? most : most / steps, name.member(word));
    return given ? stride * steps : 0;
  };
  const std::uint64_t last_line = (lines - 1) / scales.lines;
  const std::uint64_t last_block = (k - 1) / scaled_elements;
  const std::uint64_t last = check_stride(scales.line_stride, last_line, "line_stride") +
                             check_stride(scales.k_stride, last_block, "k_stride") +
                             check_stride(scales.group_stride, groups - 1, "group_stride");
  if (given && last > most) {
    given.refuse(name.member("line_stride"),
                 "is {found}; with the other strides, the last scale is above element {allowed}", scales.line_stride,
                 most);
  }
}

}  // namespace tmap::gemm
