// SPDX-License-Identifier: Apache-2.0
#include <tmap/expert_parallel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/launch.hpp"
#include "kernels/moe_launch.hpp"
#include "kernels/peer_launch.hpp"
#include "lib/batch/workspace.hpp"
#include "lib/encode/device.hpp"
#include "lib/encode/reported_call.hpp"
#include "lib/peer/call_checks.hpp"
#include "lib/peer/expert_places.hpp"
#include "lib/pool/relaxed_capture.hpp"
#include "lib/support/check.hpp"
#include "lib/support/trace.hpp"

namespace tmap::expert_parallel {
namespace {

using kernels::peer::exchange_request;
using kernels::peer::fetch_request;
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
  given.range(sizes.columns, 1, most_row_bytes / sizeof(float), name.member("columns"));
  if (given) given.multiple(sum_bytes(sizes), unit_bytes, name.member("columns"));
}

void check_shape(arguments& given, const shape& sizes, std::uint32_t ranks, const argument& name) {
  check_experts(given, sizes, ranks, name);
  given.range(sizes.k, 1, moe::max_k, name.member("k"));
  if (!given) return;
  given.at_most(sizes.tokens, moe::max_choices / sizes.k, name.member("tokens"));
  given.at_most(sizes.arrivals, moe::max_choices / sizes.k, name.member("arrivals"));
  if (given) check_rows_of_shape(given, sizes, ranks, name);
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

/// Checks a dispatch whose window and shape are good.
void check(arguments& given, const peer_memory& window, const dispatch_problem& problem, const run& with,
           std::uint64_t needed) {
  const shape& sizes = problem.sizes;
  const extent scratch = check_run(given, window, with, needed);
  const extent x = check_window_rows(given, window, problem.x, sizes.tokens, sizes.row_bytes, problem_name.member("x"));
  const extent out = check_window_rows(given, window, problem.out, row_count(sizes, window.ref().ranks),
                                       sizes.row_bytes, problem_name.member("out"));
  check_inputs(given, problem);
  check_outputs(given, problem);
  if (!given) return;
  if (peer::overlap(out, x)) given.refuse(problem_name.member("out"), "overlaps what this rank sends");
  if (peer::overlap(scratch, x) || peer::overlap(scratch, out)) {
    given.refuse(run_name.member("scratch").member("memory"), "overlaps rows of the problem");
  }
}

void check_matrix(arguments& given, const gemm::matrix& of, const shape& sizes, std::uint64_t rows,
                  const argument& name) {
  if (rows == 0) return;
  peer::check_rows(given, of, rows, sum_bytes(sizes), name);
  given.address(of.address, unit_bytes, name.member("address"));
}

void check(arguments& given, const peer_memory& window, const combine_problem& problem, const run& with,
           std::uint64_t needed) {
  const shape& sizes = problem.sizes;
  check_run(given, window, with, needed);
  check_matrix(given, problem.values, sizes, row_count(sizes, window.ref().ranks), problem_name.member("values"));
  check_matrix(given, problem.out, sizes, sizes.tokens, problem_name.member("out"));
  if (problem.base.address != 0) check_matrix(given, problem.base, sizes, sizes.tokens, problem_name.member("base"));
}

/// Checks all arguments of a call. Returns the parts of its workspace.
template <class Problem>
result<places> check_call(const peer_memory& window, const Problem& problem, const run& with) {
  arguments given;
  peer::check_window(given, window);
  if (given) check_shape(given, problem.sizes, window.ref().ranks, problem_name.member("sizes"));
  if (!given) return failure{given.complaint()};
  const result<places> parts = place(problem.sizes, window.ref().ranks);
  if (!parts) return parts;
  check(given, window, problem, with, parts->end);
  if (!given) return failure{given.complaint()};
  return parts;
}

/// Makes the kernels of both calls ready. If a rank of the same GPU waited for this one, loading one
/// later might wait for it.
result<void> load_kernels(const shape& sizes) {
  if (const result<void> loaded = peer::load_kernels(); !loaded) return loaded;
  const pool::relaxed_capture relaxed{pool::real_pool_calls()};
  TMAP_TRY_CUDA(relaxed.code());
  TMAP_TRY_CUDA(kernels::load_encode_kernels());
  TMAP_TRY_CUDA(kernels::load_given_route());
  TMAP_TRY_CUDA(kernels::load_combine(sizes.result_type, sizes.k));
  return {};
}

/// One call: its window, its workspace, and how it runs.
class call {
 public:
  call(const peer_memory& window, const shape& sizes, const run& with, const places& parts)
      : window_(window.ref()), sizes_(sizes), with_(with), parts_(parts) {}

  [[nodiscard]] result<void> dispatch(const dispatch_problem& problem) const;
  [[nodiscard]] result<void> combine(const combine_problem& problem) const;

 private:
  std::uint32_t ranks() const { return window_.ranks; }
  std::uint64_t rows() const { return row_count(sizes_, ranks()); }
  cudaStream_t stream() const { return with_.stream.get(); }
  std::uint64_t patience() const { return peer::nanoseconds(with_.patience); }

  /// Returns the address of a part.
  template <class T>
  T* part(std::uint64_t at) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(with_.scratch.memory) + at);
  }
  /// Returns the offset of a part in the window.
  std::uint64_t offset(std::uint64_t at) const { return peer::offset_of(window_, part<void>(at)); }
  std::uint64_t offset(const gemm::matrix& of) const { return of.address - window_.windows[window_.rank]; }

  kernels::peer::expert_arrays arrays() const;
  moe::run route_run(batch_header* header) const;
  exchange_request request() const;
  exchange_request records() const;
  exchange_request sums() const;
  fetch_request rows_of(const dispatch_problem& problem) const;

  [[nodiscard]] result<void> depart(const kernels::dispatch_call& work) const;
  [[nodiscard]] result<void> arrive(const kernels::dispatch_call& work, const dispatch_problem& problem) const;
  [[nodiscard]] result<void> add_up_here(const gemm::matrix& values) const;

  const peer_memory_ref& window_;
  const shape& sizes_;
  const run& with_;
  const places& parts_;
};

kernels::peer::expert_arrays call::arrays() const {
  kernels::peer::expert_arrays at{};
  at.tokens = static_cast<std::uint32_t>(sizes_.tokens);
  at.k = sizes_.k;
  at.experts = sizes_.experts / ranks();
  at.scales = sizes_.scales;
  at.arrivals = static_cast<std::uint32_t>(sizes_.arrivals);
  at.rank_of_choice = offset(parts_.rank_of_choice);
  at.record_of_choice = offset(parts_.record_of_choice);
  at.token_of_record = offset(parts_.token_of_record);
  at.departing = offset(parts_.departing);
  at.arriving = offset(parts_.arriving);
  at.arrived = offset(parts_.arrived);
  at.total = offset(parts_.total);
  at.ids = offset(parts_.ids);
  at.weights = offset(parts_.weights);
  at.places = offset(parts_.row_of_choice);
  at.list = offset(parts_.list);
  return at;
}

moe::run call::route_run(batch_header* header) const {
  return {.where = {with_.stream, {part<void>(parts_.scratch), parts_.scratch_bytes}},
          .header = header,
          .check = fault_check::off};
}

/// Returns what all requests of the call have in common.
exchange_request call::request() const {
  exchange_request made{};
  made.groups = 1;
  made.staging_bytes = peer::staging_bytes;
  made.stages = peer::stages;
  made.blocks = with_.blocks;
  made.after = offsetof(detail::peer::window_header, verdict);
  return made;
}

exchange_request call::records() const {
  exchange_request made = request();
  made.rows = offset(parts_.departing);
  made.splits = offset(parts_.departed);
  made.out = offset(parts_.arriving);
  made.out_splits = offset(parts_.arrived);
  made.row_bytes = 4 * kernels::peer::record_words(sizes_.k, sizes_.scales);
  made.sent_rows = static_cast<std::uint32_t>(departures(sizes_, ranks()));
  made.capacity = static_cast<std::uint32_t>(sizes_.arrivals);
  return made;
}

/// Rows are smaller than the pieces of an exchange, so there are more stages.
fetch_request call::rows_of(const dispatch_problem& problem) const {
  constexpr std::uint32_t most_piece = 16384;
  constexpr std::uint32_t all_stages = peer::stages * peer::staging_bytes;
  fetch_request made{};
  made.call = request();
  made.call.kind = kernels::peer::call_kind::fetch;
  made.call.groups = 0;
  made.call.rows = offset(problem.x);
  made.call.sent_rows = static_cast<std::uint32_t>(sizes_.tokens);
  made.call.sent_pitch = static_cast<std::uint32_t>(problem.x.pitch_bytes);
  made.call.row_bytes = sizes_.row_bytes;
  made.call.out = offset(problem.out);
  made.call.capacity = static_cast<std::uint32_t>(rows());
  made.call.outcome = offset(parts_.outcome);
  made.call.lacking = offset(parts_.header) + offsetof(batch_header, bad_count);
  made.call.staging_bytes = std::min(sizes_.row_bytes, most_piece);
  made.call.stages = std::min(all_stages / made.call.staging_bytes, kernels::peer::most_fetch_stages);
  made.arrived = offset(parts_.arrived);
  made.list = offset(parts_.list);
  made.places = sizes_.k;
  made.entries = kernels::peer::most_fetch_entries;
  made.out_pitch = static_cast<std::uint32_t>(problem.out.pitch_bytes);
  return made;
}

exchange_request call::sums() const {
  exchange_request made = request();
  made.after = offset(parts_.outcome);
  made.rows = offset(parts_.sums);
  made.splits = offset(parts_.arrived);
  made.out = offset(parts_.returned);
  made.out_splits = offset(parts_.returned_counts);
  made.row_bytes = static_cast<std::uint32_t>(sum_bytes(sizes_));
  made.sent_rows = static_cast<std::uint32_t>(sizes_.arrivals);
  made.capacity = static_cast<std::uint32_t>(departures(sizes_, ranks()));
  return made;
}

/// Sorts this rank's tokens by rank, and writes their records.
result<void> call::depart(const kernels::dispatch_call& work) const {
  if (sizes_.tokens != 0) TMAP_TRY_CUDA(kernels::launch_write_ranks(work));
  const moe::route_problem by_rank = departing_route(sizes_, ranks(), part<std::int32_t>(parts_.rank_of_choice));
  const moe::route_results sorted{.counts = part<std::int32_t>(parts_.departed),
                                  .row_of_choice = part<std::int32_t>(parts_.record_of_choice),
                                  .token_of_row = part<std::int32_t>(parts_.token_of_record)};
  if (const auto routed = moe::route(by_rank, sorted, route_run(nullptr)); !routed) return routed;
  if (sizes_.tokens != 0) TMAP_TRY_CUDA(kernels::launch_write_records(work));
  return {};
}

/// Sorts what came by expert, and makes the list of rows to fetch.
result<void> call::arrive(const kernels::dispatch_call& work, const dispatch_problem& problem) const {
  TMAP_TRY_CUDA(kernels::launch_write_choices(work));
  const moe::route_problem by_expert =
      arriving_route(sizes_, ranks(), part<std::int32_t>(parts_.ids), part<float>(parts_.weights));
  const moe::route_results sorted{.counts = problem.counts,
                                  .begins = problem.begins,
                                  .ends = problem.ends,
                                  .row_of_choice = part<std::int32_t>(parts_.row_of_choice),
                                  .weight_of_row = problem.weight_of_row};
  if (const auto routed = moe::route(by_expert, sorted, route_run(part<batch_header>(parts_.header))); !routed) {
    return routed;
  }
  TMAP_TRY_CUDA(kernels::launch_write_list(work));
  return {};
}

result<void> call::dispatch(const dispatch_problem& problem) const {
  const auto* const weights = reinterpret_cast<const std::uint32_t*>(problem.weights);
  const auto* const scales = reinterpret_cast<const std::uint32_t*>(problem.x_scales);
  const kernels::dispatch_call work{window_,
                                    arrays(),
                                    {problem.ids, weights, scales, problem.x_scale_pitch},
                                    departures(sizes_, ranks()),
                                    sizes_.scales == 0 ? nullptr : problem.out_scales,
                                    stream()};
  TMAP_TRY_CUDA(kernels::launch_await_credits(window_, patience(), stream()));
  if (const auto departed = depart(work); !departed) return departed;
  TMAP_TRY_CUDA(kernels::launch_exchange(window_, records(), patience(), stream()));
  if (const auto arrived = arrive(work, problem); !arrived) return arrived;
  TMAP_TRY_CUDA(kernels::launch_fetch(window_, rows_of(problem), patience(), stream()));
  return {};
}

/// Adds up the results of each token that came.
result<void> call::add_up_here(const gemm::matrix& values) const {
  if (sizes_.arrivals == 0) return {};
  const result<std::uint32_t> multiprocessors = multiprocessor_count();
  if (!multiprocessors) return failure{multiprocessors.error()};
  const moe::combine_problem sums{.tokens = sizes_.arrivals,
                                  .k = sizes_.k,
                                  .columns = sizes_.columns,
                                  .row_type = sizes_.result_type,
                                  .rows = rows(),
                                  .values = values,
                                  .row_of_choice = part<std::int32_t>(parts_.row_of_choice),
                                  .weights = part<float>(parts_.weights),
                                  .out = {part<void>(parts_.sums), sum_bytes(sizes_)}};
  const reported_call reported{batch_call::moe_combine, sums.tokens * sums.k, fault_check::off, stream()};
  return report_call(reported, [&](const fault_sink& faults) -> result<void> {
    const auto* const count = part<std::uint32_t>(parts_.total);
    TMAP_TRY_CUDA(kernels::launch_combine({sums, {nullptr, nullptr, faults}, *multiprocessors, stream(), count}));
    return {};
  });
}

result<void> call::combine(const combine_problem& problem) const {
  if (const auto added = add_up_here(problem.values); !added) return added;
  TMAP_TRY_CUDA(kernels::launch_exchange(window_, sums(), patience(), stream()));
  const moe::combine_problem home{.tokens = sizes_.tokens,
                                  .k = sizes_.k,
                                  .columns = sizes_.columns,
                                  .row_type = sizes_.result_type,
                                  .rows = departures(sizes_, ranks()),
                                  .values = {part<void>(parts_.returned), sum_bytes(sizes_)},
                                  .row_of_choice = part<std::int32_t>(parts_.record_of_choice),
                                  .base = problem.base,
                                  .out = problem.out};
  if (sizes_.tokens == 0) return {};
  return moe::combine(home, {.where = {with_.stream}, .check = fault_check::off});
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
  return call{window, problem.sizes, run, *parts}.dispatch(problem);
}

result<void> combine_async(const peer_memory& window, const combine_problem& problem, const run& run) {
  const support::trace_range range{"tmap combine of experts"};
  const result<places> parts = check_call(window, problem, run);
  if (!parts) return failure{parts.error()};
  if (const auto loaded = load_kernels(problem.sizes); !loaded) return loaded;
  return call{window, problem.sizes, run, *parts}.combine(problem);
}

}  // namespace tmap::expert_parallel
