// SPDX-License-Identifier: Apache-2.0
#include "lib/gemm/plan.hpp"

#include <tmap/device_limits.hpp>
#include <tmap/element_type.hpp>

#include <cstdint>

#include "kernels/gemm/gemm_group.hpp"
#include "kernels/gemm/tile_math.hpp"

namespace tmap::gemm {
namespace {

using kernels::gemm_plan;
using kernels::gemm_plans;
using kernels::piece_lines;
using kernels::strip_rows;
using kernels::swizzle_bytes;

// Indices in gemm_plans.
constexpr std::uint32_t pairs = 0;
constexpr std::uint32_t square = 1;
constexpr std::uint32_t flat = 2;
// Groups that have more rows on average often have more than a flat tile has. Then they take two
// tiles, and B is read twice.
constexpr std::uint64_t most_average_flat_rows = gemm_plans[flat].tile_m * 7 / 8;
// With fewer tiles of pairs, many multiprocessors of a Hopper GPU would have none.
constexpr std::uint64_t few_tiles = tmap::detail::hopper_multiprocessors;

constexpr std::uint32_t group_alignment = 256;

std::uint64_t parts(std::uint64_t of, std::uint64_t size) {
  return (of + size - 1) / size;
}

std::uint32_t choose(std::uint64_t groups, std::uint64_t rows_per_group, std::uint64_t columns,
                     std::uint64_t most_flat_rows = gemm_plans[flat].tile_m) {
  const gemm_plan& plan = gemm_plans[pairs];
  const bool has_few_tiles = groups * parts(rows_per_group, plan.tile_m) * parts(columns, plan.tile_n) < few_tiles;
  if (rows_per_group <= (has_few_tiles ? gemm_plans[flat].tile_m : most_flat_rows)) return flat;
  return has_few_tiles ? square : pairs;
}

element_type elements_of(operand_type type) {
  switch (type) {
    case operand_type::bf16: return element_type::bf16;
    case operand_type::f16: return element_type::f16;
    default: return element_type::u8;
  }
}

tensor_spec spec_of(element_type type, std::uint32_t columns, std::uint32_t rows) {
  tensor_spec spec;
  spec.type = type;
  spec.rank = 2;
  spec.global_address = group_alignment;
  spec.global_dim[0] = spec.global_dim[1] = 1;
  spec.global_stride_bytes[0] = group_alignment;
  spec.box_dim[0] = columns;
  spec.box_dim[1] = rows;
  spec.swizzle = swizzle::bytes_128;
  spec.l2_promotion = l2_promotion::bytes_256;
  return spec;
}

/// Returns how many lines of an operand one load brings. In pairs each block may load half of what
/// a stage holds.
std::uint32_t load_lines(const gemm_plan& plan, std::uint32_t lines) {
  return plan.is_paired ? lines / 2 : lines;
}

/// Returns the spec of an operand. A stage holds `lines` of its rows (or columns, if they are
/// across K), and `swizzle_bytes` of K.
tensor_spec operand_spec(operand_type type, bool is_across, std::uint32_t lines) {
  const std::uint32_t k = swizzle_bytes / operand_bytes(type);
  return is_across ? spec_of(elements_of(type), piece_lines, k) : spec_of(elements_of(type), k, lines);
}

element_type results_of(operand_type type, result_type c_type) {
  switch (c_type) {
    case result_type::f32: return element_type::f32;
    case result_type::f8_e4m3: return element_type::u8;
    default: return type == operand_type::f16 ? element_type::f16 : element_type::bf16;
  }
}

/// A store takes as many columns as the swizzle is wide.
map_spec result_spec(operand_type type, result_type c_type) {
  const std::uint32_t columns = swizzle_bytes / result_bytes(c_type);
  return {spec_of(results_of(type, c_type), columns, strip_rows), patch_extents(2)};
}

/// Returns whether B's columns are loaded in pieces of 64, because gates and values lie apart.
bool has_parts(const row_problem& problem) {
  return kernels::has_gates(problem) && problem.epilogue.gate.columns == gate_columns::halves;
}
template <class Problem>
bool has_parts(const Problem&) {
  return false;
}

result_type type_of_c(const column_problem&) {
  return result_type::like_operands;
}
template <class Problem>
result_type type_of_c(const Problem& problem) {
  return problem.c_type;
}

/// Returns the maps of a problem of which each group has one of each operand.
template <class Problem>
map_specs own_maps(const Problem& problem, const gemm_plan& plan) {
  const bool a_is_across = problem.a_layout == a_layout::k_by_m;
  const bool b_is_across = problem.b_layout == b_layout::k_by_n;
  const std::uint32_t b_lines = has_parts(problem) ? piece_lines : load_lines(plan, plan.tile_n);
  return {{operand_spec(problem.type, a_is_across, load_lines(plan, plan.tile_m)), patch_extents(2)},
          {operand_spec(problem.type, b_is_across, b_lines), patch_extents(2)},
          result_spec(problem.type, type_of_c(problem)),
          result_spec(problem.type, result_type::like_operands)};
}

}  // namespace

bool is_plan_of(const row_problem& problem, std::uint32_t plan) {
  const std::uint64_t results = kernels::results_of_row(problem, gemm_plans[plan].tile_n);
  return problem.c_type != result_type::f8_e4m3 || results >= scaled_results;
}

std::uint32_t choose_plan(const row_problem& problem) {
  const std::uint64_t average_rows = parts(problem.rows, problem.groups);
  const std::uint32_t chosen = choose(problem.groups, average_rows, problem.n, most_average_flat_rows);
  return is_plan_of(problem, chosen) ? chosen : pairs;
}

std::uint32_t choose_plan(const column_problem& problem) {
  return choose(problem.groups, problem.m, parts(problem.columns, problem.groups));
}

std::uint32_t choose_plan(const weight_problem& problem) {
  return choose(problem.groups, problem.m, problem.n);
}

std::uint32_t choose_plan(const pointer_problem&) {
  return pairs;
}

map_specs map_specs_of(const row_problem& problem, const gemm_plan& plan) {
  map_specs specs = own_maps(problem, plan);
  if (problem.b_addresses != nullptr) return specs;
  const bool is_across = problem.b_layout == b_layout::k_by_n;
  tensor_spec b = specs.b.spec;
  b.rank = 3;
  b.global_address = problem.b.address;
  b.global_dim[0] = is_across ? problem.n : problem.k;
  b.global_dim[1] = is_across ? problem.k : problem.n;
  b.global_dim[2] = problem.groups;
  b.global_stride_bytes[0] = problem.b.pitch_bytes;
  // The group pitch of a single group was never checked, and is never used.
  b.global_stride_bytes[1] = problem.groups < 2 ? problem.b.pitch_bytes : problem.b_group_pitch_bytes;
  b.box_dim[2] = 1;
  specs.b = {b, {}};
  return specs;
}

map_specs map_specs_of(const column_problem& problem, const gemm_plan& plan) {
  return own_maps(problem, plan);
}

map_specs map_specs_of(const weight_problem& problem, const gemm_plan& plan) {
  return own_maps(problem, plan);
}

map_specs map_specs_of(const pointer_problem& problem, const gemm_plan& plan) {
  return own_maps(problem, plan);
}

}  // namespace tmap::gemm
