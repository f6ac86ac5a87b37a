// SPDX-License-Identifier: Apache-2.0
#include <tmap/moe_layer.hpp>

#include <cstdint>

#include "kernels/gemm_launch.hpp"
#include "kernels/moe_launch.hpp"
#include "kernels/ragged_launch.hpp"
#include "lib/batch/run_arguments.hpp"
#include "lib/encode/reported_call.hpp"
#include "lib/gemm/prepare.hpp"
#include "lib/moe/checks.hpp"
#include "lib/moe/layer_access.hpp"
#include "lib/moe/layer_checks.hpp"
#include "lib/moe/layer_places.hpp"
#include "lib/ragged/operation.hpp"
#include "lib/support/check.hpp"
#include "lib/support/trace.hpp"

namespace tmap::moe {
namespace {

/// Checks all but the workspace, whose bytes depend on how rows are accessed.
result<void> check(const layer_problem& problem, const layer_results& results, const run& with) {
  support::arguments given;
  check_call(given, with);
  check_sizes(given, problem);
  if (given) check_problem(given, problem);
  if (given) check_results(given, problem, results);
  return given.outcome();
}

result<void> check_bytes(const layer_problem& problem, const workspace& scratch, row_access access) {
  const result<std::uint64_t> needed = workspace_bytes(problem, access);
  if (!needed) return failure(needed.error());
  support::arguments given;
  check_scratch(given, scratch, *needed);
  return given.outcome();
}

/// Returns the scales of an operand A whose rows have so many elements.
gemm::block_scales a_scales(const float* values, std::uint64_t columns) {
  return {.values = values, .line_stride = scales_of(columns), .k_stride = 1};
}

/// Returns a product of the rows of all experts, without its operands A and C.
gemm::row_problem product_of(const layer_problem& problem, const layer_places& places, const expert_weights& weights) {
  gemm::row_problem made;
  made.type = problem.type;
  made.groups = problem.routing.experts;
  made.rows = row_count(problem);
  made.offsets = {places.results.routed.begins, offset_format::prefix, sizeof(std::int32_t)};
  made.b = weights.values;
  made.b_group_pitch_bytes = weights.group_pitch_bytes;
  made.b_addresses = weights.addresses;
  made.b_scales = weights.scales;
  made.epilogue.bias = weights.bias;
  return made;
}

gemm::row_problem gate_up_product(const layer_problem& problem, const layer_places& places) {
  gemm::row_problem made = product_of(problem, places, problem.gate_up);
  made.n = 2 * problem.inner;
  made.k = problem.width;
  made.a = places.rows.values;
  if (places.rows.access == row_access::by_index) {
    made.a_rows = places.results.routed.token_of_row;
    made.a_row_count = problem.routing.tokens;
  }
  made.c = places.results.activated;
  if (has_8_bits(problem)) {
    made.a_scales = a_scales(places.rows.scales, problem.width);
    made.c_type = gemm::result_type::f8_e4m3;
    made.c_scales = {.values = places.results.activated_scales,
                     .row_stride = scales_of(problem.inner),
                     .column_stride = 1,
                     .are_powers_of_two = problem.powers_of_two};
  }
  made.epilogue.gate = problem.gate;
  return made;
}

gemm::row_problem down_product(const layer_problem& problem, const layer_places& places) {
  gemm::row_problem made = product_of(problem, places, problem.down);
  made.n = problem.width;
  made.k = problem.inner;
  made.a = places.results.activated;
  if (has_8_bits(problem)) made.a_scales = a_scales(places.results.activated_scales, problem.inner);
  made.c = places.results.outputs;
  return made;
}

/// Rounds the rows of x to 8 bits, in the order by expert.
result<void> quantize(const layer_problem& problem, const layer_places& places, const run& with) {
  const kernels::token_rows work{.x = problem.x,
                                 .tokens = problem.routing.tokens,
                                 .columns = problem.width,
                                 .k = problem.routing.k,
                                 .row_of_choice = places.results.routed.row_of_choice,
                                 .rows = places.rows.values,
                                 .scales = places.rows.scales,
                                 .powers_of_two = problem.powers_of_two};
  TMAP_TRY_CUDA(kernels::launch_quantize_tokens(work, with.where.stream.get()));
  return {};
}

/// Copies the rows of x into the order by expert. Rows without a choice keep what they hold, which
/// is no fault.
result<void> gather(const layer_problem& problem, const layer_places& places, const run& with) {
  const result<kernels::device_shape> device = ragged::current_device_shape();
  if (!device) return failure(device.error());
  const std::uint64_t rows = row_count(problem);
  const std::uint64_t row_bytes = problem.width * token_item_bytes;
  const gemm::matrix& to = places.rows.values;
  const kernels::row_move move{.source = {problem.x.address, problem.routing.tokens, row_bytes, problem.x.pitch_bytes},
                               .destination = {to.address, rows, row_bytes, to.pitch_bytes},
                               .index = {places.results.routed.token_of_row, rows, sizeof(std::int32_t)},
                               .scatters = false,
                               .routes = {},
                               .statuses = nullptr,
                               .header = nullptr,
                               .faults = {}};
  TMAP_TRY_CUDA(kernels::launch_move_rows(move, *device, with.where.stream.get()));
  return {};
}

/// Makes the first product's operand A, unless that is x itself.
result<void> make_rows(const layer_problem& problem, const layer_places& places, const run& with) {
  if (has_8_bits(problem)) return quantize(problem, places, with);
  if (places.rows.access == row_access::sorted) return gather(problem, places, with);
  return {};
}

/// Enqueues both products. One launch sets up both: the groups of the second product are known as
/// soon as those of the first.
result<void> multiply(const layer_problem& problem, const layer_places& places, const run& with) {
  const gemm::row_problem gate_up = gate_up_product(problem, places);
  const gemm::row_problem down = down_product(problem, places);
  const result<gemm::prepared_product> first = gemm::prepare(gate_up, {});
  if (!first) return failure(first.error());
  const result<gemm::prepared_product> second = gemm::prepare(down, {});
  if (!second) return failure(second.error());
  const cudaStream_t stream = with.where.stream.get();
  const reported_call call{batch_call::gemm_rows, problem.routing.experts, with.check, stream};
  return report_call(call, [&](const fault_sink& faults) -> result<void> {
    const auto launch = [&](const gemm::prepared_product& ready, const workspace& scratch,
                            gemm::group_status* statuses) -> kernels::gemm_call {
      return {*ready.plan, ready.maps, scratch.memory, statuses, nullptr, ready.multiprocessors, stream, faults};
    };
    const kernels::gemm_call of_first = launch(*first, places.gate_up_scratch, places.results.gate_up_statuses);
    const kernels::gemm_call of_second = launch(*second, places.down_scratch, places.results.down_statuses);
    TMAP_TRY_CUDA(kernels::launch_gemm_set_ups(gate_up, of_first, down, of_second));
    TMAP_TRY_CUDA(kernels::launch_gemm_tiles(gate_up, of_first));
    TMAP_TRY_CUDA(kernels::launch_gemm_tiles(down, of_second));
    return {};
  });
}

result<void> add_up(const layer_problem& problem, const layer_places& places, const run& with) {
  const route_problem& routing = problem.routing;
  const combine_problem sums{.tokens = routing.tokens,
                             .k = routing.k,
                             .columns = problem.width,
                             .row_type = problem.type == gemm::operand_type::f16 ? float_type::f16 : float_type::bf16,
                             .rows = row_count(problem),
                             .values = places.results.outputs,
                             .row_of_choice = places.results.routed.row_of_choice,
                             .weights = places.weights,
                             .base = problem.base,
                             .out = problem.out};
  return combine(sums, {.where = with.where, .check = fault_check::off});
}

/// Whether the work goes on after a part of it: bad items stop nothing.
bool goes_on(const result<void>& done) {
  return done || done.error().code == status::bad_items;
}

/// Enqueues all of the layer. Its arguments are checked, but for the workspace.
result<void> enqueue(const layer_problem& problem, const layer_results& results, const run& with, row_access access) {
  if (const auto checked = check_bytes(problem, with.where.scratch, access); !checked) return checked;
  const result<layer_places> places = place(problem, results, with.where.scratch.memory, access);
  if (!places) return failure(places.error());
  run routing = with;
  routing.where.scratch = places->route_scratch;
  const result<void> routed = route(problem.routing, places->results.routed, routing);
  if (!goes_on(routed) || problem.routing.tokens == 0) return routed;
  if (const auto made = make_rows(problem, *places, with); !made) return made;
  const result<void> multiplied = multiply(problem, *places, with);
  if (!goes_on(multiplied)) return multiplied;
  if (const auto added = add_up(problem, *places, with); !added) return added;
  return routed ? multiplied : routed;
}

}  // namespace

result<std::uint64_t> workspace_bytes(const layer_problem& problem, row_access access) {
  const result<layer_places> places = place(problem, {}, nullptr, access);
  if (!places) return failure(places.error());
  return places->end;
}

result<std::uint64_t> workspace_bytes(const layer_problem& problem) {
  support::arguments given;
  check_sizes(given, problem);
  if (!given) return failure{given.complaint()};
  return workspace_bytes(problem, choose_access(problem));
}

result<void> layer(const layer_problem& problem, const layer_results& results, const run& with, row_access access) {
  if (const auto checked = check(problem, results, with); !checked) return checked;
  return enqueue(problem, results, with, access);
}

result<void> layer(const layer_problem& problem, const layer_results& results, const run& with) {
  const support::trace_range range{"tmap layer of experts"};
  if (const auto checked = check(problem, results, with); !checked) return checked;
  return enqueue(problem, results, with, choose_access(problem));
}

}  // namespace tmap::moe
