// SPDX-License-Identifier: Apache-2.0
#include "lib/peer/expert_checks.hpp"

#include <algorithm>
#include <limits>

#include "lib/batch/workspace.hpp"
#include "lib/peer/call_checks.hpp"
#include "lib/peer/expert_places.hpp"

namespace tmap::expert_parallel {
namespace {

using peer::extent;
using support::argument;
using support::arguments;

constexpr argument problem_name{"problem"};
constexpr argument run_name{"run"};
constexpr std::uint64_t unit_bytes = 16;

void check_experts(arguments& given, const shape& sizes, std::uint32_t ranks, const argument& name) {
  given.range(ranks, 1, max_group_ranks, "ranks");
  if (!given) return;
  given.range(sizes.experts, ranks, std::uint64_t{ranks} * moe::max_experts, name.member("experts"));
  given.multiple(sizes.experts, ranks, name.member("experts"));
}

void check_rows_of_shape(arguments& given, const shape& sizes, std::uint32_t ranks, const argument& name) {
  constexpr std::uint64_t most_row_bytes = 1u << 30, most_scales = 4096;
  constexpr std::uint64_t most_rows = std::numeric_limits<std::int32_t>::max();
  given.power_of_two(sizes.alignment, moe::max_alignment, name.member("alignment"));
  if (given) given.multiple(sizes.rows, sizes.alignment, name.member("rows"));
  if (given) given.at_most(row_count(sizes, ranks), most_rows, name.member("rows"));
  given.range(sizes.row_bytes, unit_bytes, most_row_bytes, name.member("row_bytes"));
  given.multiple(sizes.row_bytes, unit_bytes, name.member("row_bytes"));
  given.at_most(sizes.scales, most_scales, name.member("scales"));
  given.enumerator(sizes.result_type, moe::float_type::f16, name.member("result_type"));
  given.enumerator(sizes.returned, return_kind::rows, name.member("returned"));
  given.range(sizes.columns, 1, most_row_bytes / sizeof(float), name.member("columns"));
  if (given) given.multiple(sizes.columns, unit_bytes / moe::float_bytes(sizes.result_type), name.member("columns"));
}

/// Checks a run whose problem has a good shape. Returns where the workspace lies.
extent check_run(arguments& given, const peer_memory& window, const run& with, std::uint64_t needed) {
  const argument scratch = run_name.member("scratch");
  peer::check_blocks(given, with.blocks, run_name.member("blocks"));
  peer::check_patience(given, with.patience, run_name.member("patience"));
  given.at_least(with.scratch.bytes, needed, scratch.member("bytes"));
  return peer::check_array(given, window.ref(), with.scratch.memory, needed, workspace_alignment,
                           scratch.member("memory"));
}

/// Checks rows that lie in the window.
extent check_window_rows(arguments& given, const peer_memory& window, const gemm::matrix& of, std::uint64_t rows,
                         std::uint64_t row_bytes, const argument& name) {
  const std::uint64_t bytes = peer::check_rows(given, of, rows, row_bytes, name);
  if (!given || bytes == 0) return {0, 0};
  const auto* const data = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(of.address));
  return peer::check_array(given, window.ref(), data, bytes, unit_bytes, name.member("address"));
}

void check_inputs(arguments& given, const dispatch_problem& problem) {
  if (problem.sizes.tokens == 0) return;
  given.pointer(problem.ids, problem_name.member("ids"));
  given.optional_pointer(problem.weights, problem_name.member("weights"));
  if (problem.sizes.scales == 0) return;
  given.pointer(problem.x_scales, problem_name.member("x_scales"));
  given.at_least(problem.x_scale_pitch, problem.sizes.scales, problem_name.member("x_scale_pitch"));
}

void check_outputs(arguments& given, const dispatch_problem& problem) {
  given.optional_pointer(problem.out_scales, problem_name.member("out_scales"));
  given.optional_pointer(problem.counts, problem_name.member("counts"));
  given.optional_pointer(problem.begins, problem_name.member("begins"));
  given.optional_pointer(problem.ends, problem_name.member("ends"));
  given.optional_pointer(problem.weight_of_row, problem_name.member("weight_of_row"));
}

void check_pending(arguments& given, const dispatch_problem& problem) {
  given.optional_pointer(problem.pending, problem_name.member("pending"));
  if (problem.pending != nullptr && problem.ready == nullptr) {
    given.refuse(problem_name.member("ready"), "is null; with `problem.pending` it must be an event");
  }
}

void check_matrix(arguments& given, const gemm::matrix& of, const shape& sizes, std::uint64_t rows,
                  const argument& name) {
  if (rows == 0) return;
  peer::check_rows(given, of, rows, sum_bytes(sizes), name);
  given.address(of.address, unit_bytes, name.member("address"));
}

/// Checks results that other ranks pull.
void check_pulled(arguments& given, const peer_memory& window, const combine_problem& problem, const extent& scratch) {
  const shape& sizes = problem.sizes;
  const extent values = check_window_rows(given, window, problem.values, row_count(sizes, window.ref().ranks),
                                          sum_bytes(sizes), problem_name.member("values"));
  given.optional_pointer(problem.weights, problem_name.member("weights"));
  if (given && peer::overlap(values, scratch)) {
    given.refuse(run_name.member("scratch").member("memory"), "overlaps rows of the problem");
  }
}

/// Checks that 32 bits count the results that may come home: one for each choice of each record.
void check_returns(arguments& given, const shape& sizes, std::uint32_t ranks, const argument& name) {
  constexpr std::uint64_t most_returns = std::numeric_limits<std::uint32_t>::max();
  const std::uint64_t of_token = std::uint64_t{std::min(sizes.k, ranks)} * sizes.k;
  given.at_most(sizes.tokens, most_returns / of_token, name.member("tokens"));
}

}  // namespace

void check_shape(arguments& given, const shape& sizes, std::uint32_t ranks, const argument& name) {
  check_experts(given, sizes, ranks, name);
  given.range(sizes.k, 1, moe::max_k, name.member("k"));
  if (!given) return;
  given.at_most(sizes.tokens, moe::max_choices / sizes.k, name.member("tokens"));
  given.at_most(sizes.arrivals, moe::max_choices / sizes.k, name.member("arrivals"));
  if (given) check_rows_of_shape(given, sizes, ranks, name);
  if (given && sizes.returned == return_kind::rows) check_returns(given, sizes, ranks, name);
}

void check(arguments& given, const peer_memory& window, const dispatch_problem& problem, const run& with,
           std::uint64_t needed) {
  const shape& sizes = problem.sizes;
  const extent scratch = check_run(given, window, with, needed);
  const extent x = check_window_rows(given, window, problem.x, sizes.tokens, sizes.row_bytes, problem_name.member("x"));
  const extent out = check_window_rows(given, window, problem.out, row_count(sizes, window.ref().ranks),
                                       sizes.row_bytes, problem_name.member("out"));
  check_inputs(given, problem);
  check_outputs(given, problem);
  check_pending(given, problem);
  if (!given) return;
  if (peer::overlap(out, x)) given.refuse(problem_name.member("out"), "overlaps what this rank sends");
  if (peer::overlap(scratch, x) || peer::overlap(scratch, out)) {
    given.refuse(run_name.member("scratch").member("memory"), "overlaps rows of the problem");
  }
}

void check(arguments& given, const peer_memory& window, const combine_problem& problem, const run& with,
           std::uint64_t needed) {
  const shape& sizes = problem.sizes;
  const extent scratch = check_run(given, window, with, needed);
  if (sizes.returned == return_kind::rows) {
    check_pulled(given, window, problem, scratch);
  } else {
    check_matrix(given, problem.values, sizes, row_count(sizes, window.ref().ranks), problem_name.member("values"));
  }
  check_matrix(given, problem.out, sizes, sizes.tokens, problem_name.member("out"));
  if (problem.base.address != 0) check_matrix(given, problem.base, sizes, sizes.tokens, problem_name.member("base"));
}

}  // namespace tmap::expert_parallel
