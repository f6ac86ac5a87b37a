// SPDX-License-Identifier: Apache-2.0
// Enqueues the parts of a problem: its labels are read and its groups set up, then its tiles are
// computed.
#include <type_traits>

#include "kernels/gemm/label_runs.cuh"
#include "kernels/gemm/product_launch.hpp"
#include "kernels/gemm/set_up.cuh"

namespace tmap::kernels {
namespace {

template <class Problem>
operand_orders orders_of(const Problem& problem) {
  return {problem.a_layout == gemm::a_layout::k_by_m, problem.b_layout == gemm::b_layout::k_by_n};
}

result_work results_of(const gemm::row_problem& problem) {
  return {problem.epilogue, problem.c_scales, problem.c_type, problem.accumulate};
}
result_work results_of(const gemm::column_problem&) {
  return {};
}
template <class Problem>
result_work results_of(const Problem& problem) {
  return {{}, {}, problem.c_type, problem.accumulate};
}

/// Returns the column at which values begin that come after all gates, or 0.
std::uint32_t first_value(const gemm::row_problem& problem) {
  const bool are_halves = has_gates(problem) && problem.epilogue.gate.columns == gemm::gate_columns::halves;
  return are_halves ? static_cast<std::uint32_t>(problem.n / 2) : 0;
}
template <class Problem>
std::uint32_t first_value(const Problem&) {
  return 0;
}

promotion promotion_of(const gemm::row_problem& problem) {
  if (problem.a_scales.values != nullptr) return promotion::scaled;
  return problem.fast_accumulation ? promotion::none : promotion::plain;
}
promotion promotion_of(const gemm::weight_problem&) {
  return promotion::lines;
}
template <class Problem>
promotion promotion_of(const Problem&) {
  return promotion::plain;
}

void place_rows(const gemm::row_problem& problem, const fault_sink& faults, gemm_shape& shape) {
  shape.a_rows = {problem.a_rows, static_cast<std::uint32_t>(problem.a_row_count), problem.a, faults};
  shape.c_rows = {problem.c_rows, static_cast<std::uint32_t>(problem.c_row_count), problem.c, faults};
  shape.pending = problem.pending;
}
template <class Problem>
void place_rows(const Problem&, const fault_sink&, gemm_shape&) {}

template <class Problem>
void place_scales(const Problem& problem, gemm_shape& shape) {
  if constexpr (std::is_same_v<Problem, gemm::row_problem> || std::is_same_v<Problem, gemm::weight_problem>) {
    shape.a_scales = problem.a_scales;
    shape.b_scales = problem.b_scales;
  }
}

/// Writes the runs of equal labels, if the problem's groups are named by labels.
template <class Problem>
cudaError_t read_labels(const Problem& problem, std::uint64_t rows, const gemm_call& call) {
  if (problem.offsets.format != offset_format::labels) return cudaSuccess;
  const label_runs_request request{problem.offsets, rows, problem.groups,
                                   cut_scratch(call.scratch, problem.groups).runs, call.faults};
  return launch_label_runs(request, call.multiprocessors, call.stream);
}
cudaError_t read_labels(const gemm::row_problem& problem, const gemm_call& call) {
  return read_labels(problem, problem.rows, call);
}
cudaError_t read_labels(const gemm::column_problem& problem, const gemm_call& call) {
  return read_labels(problem, problem.columns, call);
}
cudaError_t read_labels(const gemm::weight_problem& problem, const gemm_call& call) {
  return read_labels(problem, problem.rows, call);
}
cudaError_t read_labels(const gemm::pointer_problem&, const gemm_call&) {
  return cudaSuccess;
}

template <class Problem>
product_arguments arguments_of(const Problem& problem, const gemm_call& call) {
  product_arguments arguments{};
  arguments.b = call.maps.b.map;
  gemm_shape& shape = arguments.shape;
  shape.scratch = cut_scratch(call.scratch, problem.groups);
  shape.results = results_of(problem);
  place_scales(problem, shape);
  shape.groups = problem.groups;
  shape.has_own_b = has_own_b(problem);
  const std::uint32_t columns_axis = orders_of(problem).b_is_across ? 0 : 1;
  shape.b_pieces = call.plan.tile_n / call.maps.b.spec.box_dim[columns_axis];
  shape.per_result = has_gates(problem) ? 2 : 1;
  shape.values = first_value(problem);
  place_rows(problem, call.faults, shape);
  return arguments;
}

template <class Problem>
cudaError_t launch_gathered(const Problem& problem, const product_arguments& arguments, const gemm_call& call) {
  const bool b_is_across = orders_of(problem).b_is_across;
  switch (problem.type) {
    case gemm::operand_type::bf16: return launch_gathered_bf16(b_is_across, arguments, call);
    case gemm::operand_type::f16: return launch_gathered_f16(b_is_across, arguments, call);
    case gemm::operand_type::f8_e4m3: return launch_gathered_e4m3(promotion_of(problem), arguments, call);
    default: return launch_gathered_e5m2(arguments, call);
  }
}

template <class Problem>
cudaError_t launch_scattered(const Problem& problem, const product_arguments& arguments, const gemm_call& call) {
  switch (problem.type) {
    case gemm::operand_type::bf16: return launch_scattered_bf16(arguments, call);
    case gemm::operand_type::f16: return launch_scattered_f16(arguments, call);
    default: return launch_scattered_e4m3(promotion_of(problem) == promotion::scaled, arguments, call);
  }
}

}  // namespace

template <class Problem>
cudaError_t launch_gemm_set_up(const Problem& problem, const gemm_call& call) {
  const cudaError_t code = read_labels(problem, call);
  return code == cudaSuccess ? launch_set_up(problem, call) : code;
}

template <class Problem>
cudaError_t launch_gemm_tiles(const Problem& problem, const gemm_call& call) {
  const product_arguments arguments = arguments_of(problem, call);
  if (arguments.shape.a_rows.rows != nullptr) return launch_gathered(problem, arguments, call);
  if (arguments.shape.c_rows.rows != nullptr) return launch_scattered(problem, arguments, call);
  if (gemm::has_8_bits(problem.type) && promotion_of(problem) == promotion::lines) {
    return launch_lines(problem.type, arguments, call);
  }
  switch (problem.type) {
    case gemm::operand_type::bf16: return launch_bf16(orders_of(problem), arguments, call);
    case gemm::operand_type::f16: return launch_f16(orders_of(problem), arguments, call);
    case gemm::operand_type::f8_e4m3: return launch_e4m3(promotion_of(problem), arguments, call);
    default: return launch_e5m2(arguments, call);
  }
}

template cudaError_t launch_gemm_set_up(const gemm::row_problem& problem, const gemm_call& call);
template cudaError_t launch_gemm_set_up(const gemm::column_problem& problem, const gemm_call& call);
template cudaError_t launch_gemm_set_up(const gemm::weight_problem& problem, const gemm_call& call);
template cudaError_t launch_gemm_set_up(const gemm::pointer_problem& problem, const gemm_call& call);

template cudaError_t launch_gemm_tiles(const gemm::row_problem& problem, const gemm_call& call);
template cudaError_t launch_gemm_tiles(const gemm::column_problem& problem, const gemm_call& call);
template cudaError_t launch_gemm_tiles(const gemm::weight_problem& problem, const gemm_call& call);
template cudaError_t launch_gemm_tiles(const gemm::pointer_problem& problem, const gemm_call& call);

}  // namespace tmap::kernels
