// SPDX-License-Identifier: Apache-2.0
#include "lib/gemm/checks.hpp"

#include <cstdint>
#include <optional>
#include <utility>

#include "kernels/gemm/gemm_group.hpp"
#include "lib/batch/run_arguments.hpp"
#include "lib/batch/source_arguments.hpp"
#include "lib/driver/device_query.hpp"
#include "lib/gemm/epilogue_checks.hpp"
#include "lib/gemm/matrix_checks.hpp"
#include "lib/gemm/plan.hpp"
#include "lib/gemm/scale_checks.hpp"

namespace tmap::gemm {
namespace {

using support::argument;
using support::arguments;

void check_groups(arguments& given, std::uint32_t groups, operand_type type, operand_type last_type) {
  given.enumerator(type, last_type, problem_name.member("type"));
  given.at_most(groups, max_groups, problem_name.member("groups"));
}

/// Checks that columns take whole units, at least one.
void check_columns(arguments& given, std::uint64_t columns, std::uint32_t element_bytes, const argument& name) {
  given.range(columns, unit_bytes / element_bytes, max_extent, name);
  given.multiple(columns, unit_bytes / element_bytes, name);
}

/// Returns the lines of a stored operand: `lines` of `elements`, or the other way around.
row_shape stored_shape(operand_type type, bool is_turned, std::uint64_t lines, std::uint64_t elements) {
  if (is_turned) std::swap(lines, elements);
  return {lines, elements * operand_bytes(type)};
}

/// 8-bit operands are read along K only.
void check_layouts(arguments& given, a_layout a, b_layout b, operand_type type) {
  const argument a_name = problem_name.member("a_layout");
  const argument b_name = problem_name.member("b_layout");
  given.enumerator(a, a_layout::k_by_m, a_name);
  given.enumerator(b, b_layout::k_by_n, b_name);
  if (!has_8_bits(type)) return;
  if (a != a_layout::m_by_k) given.refuse(a_name, "is k_by_m; with operands of 8 bits it must be m_by_k");
  if (b != b_layout::n_by_k) given.refuse(b_name, "is k_by_n; with operands of 8 bits it must be n_by_k");
}

/// Rows that an index names are copied whole, so they run along K.
void check_index(arguments& given, const row_problem& problem) {
  const argument count_name = problem_name.member("a_row_count");
  if (problem.a_rows == nullptr) {
    return given.equal(problem.a_row_count, 0, count_name, "is {found}; without a_rows it must be {allowed}");
  }
  given.pointer(problem.a_rows, problem_name.member("a_rows"));
  given.range(problem.a_row_count, 1, max_extent, count_name);
  if (problem.pending != nullptr) {
    given.refuse(problem_name.member("pending"), "is set; with a_rows it must not be");
  }
  if (problem.a_layout != a_layout::m_by_k) {
    given.refuse(problem_name.member("a_layout"), "is k_by_m; with a_rows it must be m_by_k");
  }
}

/// Only sums of 8-bit products have a faster way.
void check_accumulation(arguments& given, const row_problem& problem) {
  if (!problem.fast_accumulation) return;
  const bool has_scales = problem.a_scales.values != nullptr || problem.b_scales.values != nullptr;
  if (problem.type != operand_type::f8_e4m3 || has_scales) {
    given.refuse(problem_name.member("fast_accumulation"),
                 "is {found}; it must be {allowed}, except with operands of f8_e4m3 without block scales", 1, 0);
  }
}

/// Only one C whose old content has no use can be cleared.
template <class Problem>
void check_rest(arguments& given, const Problem& problem) {
  if (!problem.zero_rest || (!problem.accumulate && problem.c_addresses == nullptr)) return;
  given.refuse(problem_name.member("zero_rest"), "is set; with accumulate or c_addresses it must not be");
}

void check_b(arguments& given, const row_problem& problem) {
  const argument name = problem_name.member("b");
  const row_shape shape = stored_shape(problem.type, problem.b_layout == b_layout::k_by_n, problem.n, problem.k);
  if (problem.b_addresses != nullptr) {
    return check_listed(given, problem.b_addresses, problem.b, shape, problem_name.member("b_addresses"), name);
  }
  check_matrices(given, problem.b, shape,
                 {problem.groups, problem.b_group_pitch_bytes, problem_name.member("b_group_pitch_bytes")}, name);
}

void check_matrices(arguments& given, const row_problem& problem) {
  const std::uint64_t c_rows = problem.c_rows != nullptr ? problem.c_row_count : problem.rows;
  const row_shape of_c{c_rows, kernels::c_columns(problem, problem.n) * result_bytes(problem.c_type)};
  check_matrix(given, problem.a,
               stored_shape(problem.type, problem.a_layout == a_layout::k_by_m, a_row_count(problem), problem.k),
               problem_name.member("a"));
  if (problem.c_addresses != nullptr) {
    check_listed(given, problem.c_addresses, problem.c, of_c, problem_name.member("c_addresses"),
                 problem_name.member("c"));
  } else {
    check_matrix(given, problem.c, of_c, problem_name.member("c"));
  }
  check_b(given, problem);
}

/// Checks that rows of C, and of B if N is their inner dim, take whole units.
template <class Problem>
void check_n(arguments& given, const Problem& problem) {
  const bool has_lines_of_n = problem.b_layout == b_layout::k_by_n;
  const std::uint32_t of_c = result_bytes(problem.c_type);
  const std::uint32_t of_b = operand_bytes(problem.type);
  check_columns(given, problem.n, has_lines_of_n && of_b < of_c ? of_b : of_c, problem_name.member("n"));
}

}  // namespace

result<void> check_gpu(const device_limits& limits, bool has_kernels) {
  if (const result<void> checked = driver::require_copy_engine(limits); !checked) return checked;
  error e{.code = status::no_kernel_image,
          .found = limits.compute_capability,
          .allowed = tmap::detail::product_compute_capability};
  if (e.found != e.allowed) {
    e.reason = "this GPU has compute capability {found}; grouped products run on {allowed} alone";
  } else if (!has_kernels) {
    e.reason =
        "this build of tmap has no grouped products: it was built with TMAP_BUILD_PRODUCTS=OFF, or "
        "TMAP_ARCHITECTURES did not name {allowed}a";
  } else {
    return {};
  }
  return failure(e);
}

void check_call(arguments& given, const run& with) {
  check_run(given, with);
  given.equal(with.windows.size(), 0, "windows",
              "are {found}; a grouped product takes none, so there must be {allowed}");
  if (with.choices.blocks) given.at_least(*with.choices.blocks, 2, argument{"choices"}.member("blocks"));
  if (with.choices.plan) given.at_most(*with.choices.plan, plan_count() - 1, argument{"choices"}.member("plan"));
}

void check_plan(arguments& given, const row_problem& problem, const run& with) {
  const std::optional<std::uint32_t> plan = with.choices.plan;
  if (!plan || !given || is_plan_of(problem, *plan)) return;
  given.refuse(argument{"choices"}.member("plan"),
               "is {found}, whose tiles do not hold the 128 results of a row that share a scale; with gates and C of "
               "f8_e4m3 plan {allowed} is legal, as is every other whose tiles have 256 columns",
               *plan, choose_plan(problem));
}

void check_problem(arguments& given, const row_problem& problem) {
  check_groups(given, problem.groups, problem.type, operand_type::f8_e5m2);
  check_layouts(given, problem.a_layout, problem.b_layout, problem.type);
  check_accumulation(given, problem);
  check_rest(given, problem);
  check_results(given, problem);
  given.at_most(problem.rows, max_extent, problem_name.member("rows"));
  check_n(given, problem);
  check_columns(given, problem.k, operand_bytes(problem.type), problem_name.member("k"));
  if (!given || problem.groups == 0 || problem.rows == 0) return;
  check_offsets(given, problem.offsets, problem_name.member("offsets"), offset_format::labels);
  check_epilogue(given, problem);
  given.optional_pointer(problem.pending, problem_name.member("pending"));
  check_index(given, problem);
  check_targets(given, problem);
  check_block_scales(given, problem);
  check_matrices(given, problem);
}

void check_problem(arguments& given, const column_problem& problem) {
  check_groups(given, problem.groups, problem.type, operand_type::f16);
  check_layouts(given, problem.a_layout, problem.b_layout, problem.type);
  given.at_most(problem.columns, max_extent, problem_name.member("columns"));
  const std::uint32_t element_bytes = operand_bytes(problem.type);
  given.range(problem.m, 1, max_extent, problem_name.member("m"));
  check_columns(given, problem.k, element_bytes, problem_name.member("k"));
  if (!given || problem.groups == 0 || problem.columns == 0) return;
  check_offsets(given, problem.offsets, problem_name.member("offsets"), offset_format::labels);
  check_matrices(given, problem.a,
                 stored_shape(problem.type, problem.a_layout == a_layout::k_by_m, problem.m, problem.k),
                 {problem.groups, problem.a_group_pitch_bytes, problem_name.member("a_group_pitch_bytes")},
                 problem_name.member("a"));
  check_matrix(given, problem.b,
               stored_shape(problem.type, problem.b_layout == b_layout::k_by_n, problem.columns, problem.k),
               problem_name.member("b"));
  check_matrix(given, problem.c, {problem.m, problem.columns * sizeof(std::uint16_t)}, problem_name.member("c"));
}

void check_problem(arguments& given, const weight_problem& problem) {
  check_groups(given, problem.groups, problem.type, operand_type::f8_e5m2);
  check_layouts(given, problem.a_layout, problem.b_layout, problem.type);
  check_results(given, problem);
  check_rest(given, problem);
  given.at_most(problem.rows, max_extent, problem_name.member("rows"));
  given.range(problem.m, 1, max_extent, problem_name.member("m"));
  check_n(given, problem);
  if (!given || problem.groups == 0) return;
  check_offsets(given, problem.offsets, problem_name.member("offsets"), offset_format::labels);
  check_line_scales(given, problem);
  if (problem.rows != 0) {
    check_matrix(given, problem.a,
                 stored_shape(problem.type, problem.a_layout == a_layout::k_by_m, problem.m, problem.rows),
                 problem_name.member("a"));
    check_matrix(given, problem.b,
                 stored_shape(problem.type, problem.b_layout == b_layout::k_by_n, problem.n, problem.rows),
                 problem_name.member("b"));
  }
  const row_shape of_c{problem.m, problem.n * result_bytes(problem.c_type)};
  if (problem.c_addresses != nullptr) {
    return check_listed(given, problem.c_addresses, problem.c, of_c, problem_name.member("c_addresses"),
                        problem_name.member("c"));
  }
  check_matrices(given, problem.c, of_c,
                 {problem.groups, problem.c_group_pitch_bytes, problem_name.member("c_group_pitch_bytes")},
                 problem_name.member("c"));
}

void check_problem(arguments& given, const pointer_problem& problem) {
  check_groups(given, problem.groups, problem.type, operand_type::f16);
  check_layouts(given, problem.a_layout, problem.b_layout, problem.type);
  check_results(given, problem);
  if (!given || problem.groups == 0) return;
  given.pointer(problem.a, problem_name.member("a"));
  given.pointer(problem.b, problem_name.member("b"));
  given.pointer(problem.c, problem_name.member("c"));
  given.pointer(problem.a_pitch_bytes, problem_name.member("a_pitch_bytes"));
  given.pointer(problem.b_pitch_bytes, problem_name.member("b_pitch_bytes"));
  given.pointer(problem.c_pitch_bytes, problem_name.member("c_pitch_bytes"));
  given.pointer(problem.m, problem_name.member("m"));
  given.pointer(problem.n, problem_name.member("n"));
  given.pointer(problem.k, problem_name.member("k"));
}

}  // namespace tmap::gemm
