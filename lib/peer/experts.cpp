// SPDX-License-Identifier: Apache-2.0
#include <tmap/expert_parallel.hpp>

#include <cstddef>
#include <cstdint>

#include "kernels/launch.hpp"
#include "kernels/moe_launch.hpp"
#include "kernels/peer_launch.hpp"
#include "lib/encode/device.hpp"
#include "lib/encode/reported_call.hpp"
#include "lib/peer/call_checks.hpp"
#include "lib/peer/expert_checks.hpp"
#include "lib/peer/expert_places.hpp"
#include "lib/peer/expert_requests.hpp"
#include "lib/pool/relaxed_capture.hpp"
#include "lib/support/check.hpp"
#include "lib/support/trace.hpp"

namespace tmap::expert_parallel {
namespace {

using support::argument;
using support::arguments;

/// Checks all arguments of a call. Returns the parts of its workspace.
template <class Problem>
result<places> check_call(const peer_memory& window, const Problem& problem, const run& with) {
  arguments given;
  peer::check_window(given, window);
  if (given) check_shape(given, problem.sizes, window.ref().ranks, argument{"problem"}.member("sizes"));
  if (!given) return failure{given.complaint()};
  const result<places> parts = place(problem.sizes, window.ref().ranks);
  if (!parts) return parts;
  check(given, window, problem, with, parts->end);
  if (!given) return failure{given.complaint()};
  return parts;
}

/// Makes the kernels of both calls ready. If a rank of the same GPU waited for this one, loading
/// one later might wait for it.
result<void> load_kernels(const shape& sizes) {
  if (const result<void> loaded = peer::load_kernels(); !loaded) return loaded;
  const pool::relaxed_capture relaxed{pool::real_pool_calls()};
  TMAP_TRY_CUDA(relaxed.code());
  TMAP_TRY_CUDA(kernels::load_encode_kernels());
  TMAP_TRY_CUDA(kernels::load_given_route());
  TMAP_TRY_CUDA(kernels::load_combine(sizes.result_type));
  TMAP_TRY_CUDA(kernels::load_home_sums(sizes.result_type));
  return {};
}

moe::route_problem by_rank(const call_parts& call) {
  return departing_route(call.sizes(), call.ranks(), call.part<std::int32_t>(call.at().rank_of_choice));
}
moe::route_results sorted_by_rank(const call_parts& call) {
  return {.counts = call.part<std::int32_t>(call.at().departed),
          .row_of_choice = call.part<std::int32_t>(call.at().record_of_choice),
          .token_of_row = call.part<std::int32_t>(call.at().token_of_record)};
}
moe::route_problem by_expert(const call_parts& call) {
  return arriving_route(call.sizes(), call.ranks(), call.part<std::int32_t>(call.at().ids),
                        call.part<float>(call.at().weights));
}
moe::route_results sorted_by_expert(const call_parts& call, const dispatch_problem& problem) {
  return {.counts = problem.counts,
          .begins = problem.begins,
          .ends = problem.ends,
          .row_of_choice = call.part<std::int32_t>(call.at().row_of_choice),
          .weight_of_row = problem.weight_of_row};
}

moe::route_problem by_first_expert(const call_parts& call) {
  return fetching_route(call.sizes(), call.ranks(), call.part<std::int32_t>(call.at().first_ids));
}
moe::route_results order_of_fetch(const call_parts& call) {
  return {.row_of_choice = call.part<std::int32_t>(call.at().order)};
}

/// Sorts this rank's tokens by rank, and writes their records.
result<void> depart(const call_parts& call, const kernels::dispatch_call& work) {
  if (call.sizes().tokens != 0) TMAP_TRY_CUDA(kernels::launch_write_ranks(work));
  if (const auto routed = moe::route(by_rank(call), sorted_by_rank(call), call.route_run(nullptr)); !routed) {
    return routed;
  }
  if (call.sizes().tokens != 0) TMAP_TRY_CUDA(kernels::launch_write_records(work));
  return {};
}

/// Sorts what came by expert, and makes the list of rows to fetch.
result<void> arrive(const call_parts& call, const kernels::dispatch_call& work, const dispatch_problem& problem) {
  TMAP_TRY_CUDA(kernels::launch_write_choices(work));
  const moe::run sorting = call.route_run(call.part<batch_header>(call.at().header));
  if (const auto routed = moe::route(by_expert(call), sorted_by_expert(call, problem), sorting); !routed) return routed;
  if (const auto routed = moe::route(by_first_expert(call), order_of_fetch(call), call.route_run(nullptr)); !routed) {
    return routed;
  }
  TMAP_TRY_CUDA(kernels::launch_write_list(work));
  return {};
}

/// Does all that comes before the fetch, a kernel for each step.
result<void> prepare_many(const call_parts& call, const kernels::dispatch_call& work, const dispatch_problem& problem,
                          const kernels::peer::exchange_request& fetch) {
  TMAP_TRY_CUDA(kernels::launch_await_credits(call.window(), call.patience(), call.stream()));
  if (const auto departed = depart(call, work); !departed) return departed;
  TMAP_TRY_CUDA(
      kernels::launch_exchange_and_announce(call.window(), call.records(), fetch, call.patience(), call.stream()));
  return arrive(call, work, problem);
}

/// Dispatches in one kernel. Scales need another one.
result<void> dispatch_few(const call_parts& call, const kernels::dispatch_call& work, const dispatch_problem& problem) {
  moe::route_problem coming = by_expert(call);
  coming.rows = call.rows();
  const moe::route_results came = sorted_by_expert(call, problem);
  TMAP_TRY_CUDA(kernels::launch_dispatch_few({call.window(),
                                              {work.at, work.given, call.few_records(), call.few_rows_of(problem)},
                                              {coming, came, {}, {}, call.stream()},
                                              call.patience()}));
  if (work.row_scales != nullptr) TMAP_TRY_CUDA(kernels::launch_put_scales(work));
  if (problem.ready != nullptr) TMAP_TRY_CUDA(cudaEventRecord(problem.ready, call.stream()));
  return {};
}

result<void> fetch(const call_parts& call, const kernels::peer::fetch_request& request) {
  TMAP_TRY_CUDA(kernels::launch_fetch(call.window(), request, call.patience(), call.stream()));
  return {};
}

/// Dispatches by a kernel for each step.
result<void> dispatch_many(const call_parts& call, const kernels::dispatch_call& work,
                           const dispatch_problem& problem) {
  const kernels::peer::fetch_request rows = call.rows_of(problem);
  if (const auto prepared = prepare_many(call, work, problem, rows.call); !prepared) return prepared;
  const cudaError_t recorded = problem.ready == nullptr ? cudaSuccess : cudaEventRecord(problem.ready, call.stream());
  const result<void> fetched = fetch(call, rows);  // others may have its announcement by now
  TMAP_TRY_CUDA(recorded);
  return fetched;
}

result<void> dispatch(const call_parts& call, const dispatch_problem& problem) {
  const auto* const weights = reinterpret_cast<const std::uint32_t*>(problem.weights);
  const auto* const scales = reinterpret_cast<const std::uint32_t*>(problem.x_scales);
  const kernels::dispatch_call work{call.window(),
                                    call.arrays(problem.pending),
                                    {problem.ids, weights, scales, problem.x_scale_pitch},
                                    departures(call.sizes(), call.ranks()),
                                    call.sizes().scales == 0 ? nullptr : problem.out_scales,
                                    call.stream()};
  return are_few(call.sizes()) ? dispatch_few(call, work, problem) : dispatch_many(call, work, problem);
}

result<void> combine_sums(const call_parts& call, const combine_problem& problem) {
  const result<std::uint32_t> multiprocessors = multiprocessor_count();
  if (!multiprocessors) return failure{multiprocessors.error()};
  const kernels::weighted_rows came{.k = call.sizes().k,
                                    .columns = call.sizes().columns,
                                    .type = call.sizes().result_type,
                                    .rows = call.rows(),
                                    .values = problem.values,
                                    .row_of_choice = call.part<std::int32_t>(call.at().row_of_choice),
                                    .weights = call.part<float>(call.at().weights)};
  const kernels::peer::expert_arrays at = call.arrays();
  const kernels::combine_work work{.came = came,
                                   .arrivals = call.sizes().arrivals,
                                   .arrived = at.arrived,
                                   .targets = call.part<std::uint64_t>(call.at().targets),
                                   .tokens = call.sizes().tokens,
                                   .departed = at.departed,
                                   .record_of_choice = call.part<std::int32_t>(call.at().record_of_choice),
                                   .returned = at.returned,
                                   .base = problem.base,
                                   .out = problem.out,
                                   .request = call.sums()};
  TMAP_TRY_CUDA(kernels::launch_combine(call.window(), work, *multiprocessors, call.patience(), call.stream()));
  return {};
}

/// Adds up the results that have come home, if the last call was a success: others may still pull
/// `x`, which `out` may be.
result<void> add_up_home(const call_parts& call, const combine_problem& problem) {
  if (call.sizes().tokens == 0) return {};
  const result<std::uint32_t> multiprocessors = multiprocessor_count();
  if (!multiprocessors) return failure{multiprocessors.error()};
  kernels::home_sums sums{};
  sums.k = call.sizes().k;
  sums.columns = call.sizes().columns;
  sums.type = call.sizes().result_type;
  sums.rows = call.sizes().tokens * call.sizes().k;
  sums.values = {call.part<void>(call.at().landed), sum_bytes(call.sizes())};
  sums.row_of_choice = call.part<std::int32_t>(call.at().row_of_landed);
  sums.weights = problem.weights;
  sums.tokens = call.sizes().tokens;
  sums.base = problem.base;
  sums.out = problem.out;
  TMAP_TRY_CUDA(kernels::launch_home_sums(call.window(), sums, *multiprocessors, call.stream()));
  return {};
}

result<void> combine_rows(const call_parts& call, const combine_problem& problem) {
  TMAP_TRY_CUDA(kernels::launch_exchange(call.window(), call.places_of_rows(), call.patience(), call.stream()));
  TMAP_TRY_CUDA(kernels::launch_write_returns({call.window(), call.arrays(), {}, 0, nullptr, call.stream()}));
  if (const auto fetched = fetch(call, call.results_of(problem)); !fetched) return fetched;
  return add_up_home(call, problem);
}

}  // namespace

result<std::uint64_t> workspace_bytes(const shape& sizes, std::uint32_t ranks) {
  arguments given;
  check_shape(given, sizes, ranks, "sizes");
  if (!given) return failure{given.complaint()};
  const result<places> parts = place(sizes, ranks);
  if (!parts) return failure{parts.error()};
  return parts->end;
}

result<void> dispatch_async(const peer_memory& window, const dispatch_problem& problem, const run& run) {
  const support::trace_range range{"tmap dispatch to experts"};
  const result<places> parts = check_call(window, problem, run);
  if (!parts) return failure{parts.error()};
  if (const auto loaded = load_kernels(problem.sizes); !loaded) return loaded;
  return dispatch({window, problem.sizes, run, *parts}, problem);
}

result<void> combine_async(const peer_memory& window, const combine_problem& problem, const run& run) {
  const support::trace_range range{"tmap combine of experts"};
  const result<places> parts = check_call(window, problem, run);
  if (!parts) return failure{parts.error()};
  if (const auto loaded = load_kernels(problem.sizes); !loaded) return loaded;
  const call_parts call{window, problem.sizes, run, *parts};
  return problem.sizes.returned == return_kind::sums ? combine_sums(call, problem) : combine_rows(call, problem);
}

}  // namespace tmap::expert_parallel
