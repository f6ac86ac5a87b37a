// SPDX-License-Identifier: Apache-2.0
#include <tmap/make_template.hpp>
#include <tmap/peer_exchange.hpp>

#include <cstddef>
#include <cstdint>

#include "kernels/peer_launch.hpp"
#include "lib/peer/access.hpp"
#include "lib/peer/call_checks.hpp"
#include "lib/peer/local_window.hpp"
#include "lib/peer/verdict.hpp"
#include "lib/support/arguments.hpp"
#include "lib/support/check.hpp"
#include "lib/support/trace.hpp"

namespace tmap {

namespace peer {
namespace {

using kernels::peer::exchange_request;
using support::argument;
using support::arguments;

void check_pitch(arguments& given, std::uint64_t pitch, std::uint64_t row_bytes, const argument& name) {
  constexpr std::uint64_t most_pitch = ~std::uint32_t{0};
  if (pitch != 0) given.range(pitch, row_bytes, most_pitch, name);
}

/// Returns the bytes from the first one of some rows to the last one.
std::uint64_t bytes_of(std::uint64_t rows, std::uint64_t pitch, std::uint64_t row_bytes) {
  return rows == 0 ? 0 : (rows - 1) * (pitch == 0 ? row_bytes : pitch) + row_bytes;
}

void check_sizes(arguments& given, const exchange_problem& problem, std::uint32_t ranks) {
  constexpr argument name{"problem"};
  constexpr std::uint64_t most_rows = ~std::uint32_t{0};
  given.range(problem.row_bytes, 1, 1u << 30, name.member("row_bytes"));
  check_pitch(given, problem.rows_pitch_bytes, problem.row_bytes, name.member("rows_pitch_bytes"));
  check_pitch(given, problem.out_pitch_bytes, problem.row_bytes, name.member("out_pitch_bytes"));
  given.at_most(problem.sent_rows, most_rows, name.member("sent_rows"));
  given.at_most(problem.capacity, most_rows, name.member("capacity"));
  given.enumerator(problem.placed, row_placement::group_major, name.member("placed"));
  given.range(problem.groups, 1, kernels::peer::most_groups(ranks), name.member("groups"));
}

/// Checks that the window has all of the 16 bytes in which the last row ends: peers read them.
void check_units(arguments& given, const extent& rows, const peer_memory_ref& ref, const argument& name) {
  const std::uint64_t end = rows.begin + rows.bytes,
                      whole = ref.bytes / kernels::peer::bulk_unit * kernels::peer::bulk_unit;
  if (rows.bytes != 0 && end > whole) {
    given.refuse(name, "ends at byte {found}, after the last whole 16 bytes of the window at {allowed}; allocate more",
                 end, whole);
  }
}

void check_arrays(arguments& given, const exchange_problem& problem, const peer_memory_ref& ref) {
  constexpr argument name{"problem"};
  const std::uint64_t counts = std::uint64_t{ref.ranks} * problem.groups * sizeof(std::uint32_t);
  const std::uint64_t row_bytes = problem.row_bytes;
  const extent rows =
      check_array(given, ref, problem.rows, bytes_of(problem.sent_rows, problem.rows_pitch_bytes, row_bytes), 1,
                  name.member("rows"));
  const extent splits = check_array(given, ref, problem.splits, counts, 4, name.member("splits"));
  const extent out = check_array(given, ref, problem.out,
                                 bytes_of(problem.capacity, problem.out_pitch_bytes, row_bytes), 1, name.member("out"));
  const extent out_splits = check_array(given, ref, problem.out_splits, counts, 4, name.member("out_splits"));
  if (!given) return;
  check_units(given, rows, ref, name.member("rows"));
  if (overlap(out, rows) || overlap(out, splits)) given.refuse(name.member("out"), "overlaps what this rank sends");
  if (overlap(out_splits, rows) || overlap(out_splits, splits) || overlap(out_splits, out)) {
    given.refuse(name.member("out_splits"), "overlaps another array of the problem");
  }
}

exchange_request request_of(const peer_memory_ref& ref, const exchange_problem& problem, std::uint32_t blocks) {
  const auto offset = [&](const void* data) { return offset_of(ref, data); };
  exchange_request request{};
  request.rows = offset(problem.rows);
  request.splits = offset(problem.splits);
  request.out = offset(problem.out);
  request.out_splits = offset(problem.out_splits);
  request.groups = problem.groups;
  request.row_bytes = problem.row_bytes;
  request.sent_rows = static_cast<std::uint32_t>(problem.sent_rows);
  request.capacity = static_cast<std::uint32_t>(problem.capacity);
  request.placed = problem.placed;
  request.sent_pitch = static_cast<std::uint32_t>(problem.rows_pitch_bytes);
  request.out_pitch = static_cast<std::uint32_t>(problem.out_pitch_bytes);
  request.staging_bytes = staging_bytes;
  request.stages = stages;
  request.blocks = blocks;
  request.is_eager = problem.groups == 1 && problem.row_bytes % sizeof(std::uint32_t) == 0;
  return request;
}

/// Checks a call without arguments of its own, and makes its kernel ready.
result<void> prepare_waiting(const peer_memory& window, std::chrono::milliseconds patience,
                             void (*check)(arguments&, const peer_memory&)) {
  arguments given;
  check(given, window);
  check_patience(given, patience, "patience");
  return given ? load_kernels() : given.outcome();
}

}  // namespace
}  // namespace peer

result<void> exchange_rows_async(const peer_memory& window, const exchange_problem& problem, const exchange_run& run) {
  const support::trace_range range{"tmap exchange_rows"};
  constexpr support::argument with{"run"};
  support::arguments given;
  peer::check_any_window(given, window);
  if (given) peer::check_sizes(given, problem, window.ref().ranks);
  if (given) peer::check_arrays(given, problem, window.ref());
  peer::check_blocks(given, run.blocks, with.member("blocks"));
  peer::check_patience(given, run.patience, with.member("patience"));
  if (!given) return given.outcome();
  if (const result<void> loaded = peer::load_kernels(); !loaded) return loaded;
  kernels::peer::exchange_request request = peer::request_of(window.ref(), problem, run.blocks);
  const std::uint64_t patience = peer::nanoseconds(run.patience);
  if (const peer::local_window* local = peer::access::local(window)) {
    return local->exchange(request, patience, run.stream.get());
  }
  if (problem.groups == 1) request.pushed_bytes = peer::pushed_bytes;
  request.pushes = problem.groups == 1 && run.blocks >= peer::pushing_blocks;
  TMAP_TRY_CUDA(kernels::launch_exchange(window.ref(), request, patience, run.stream.get()));
  return {};
}

result<void> await_pulls_async(const peer_memory& window, cuda::stream_ref stream, std::chrono::milliseconds patience) {
  const support::trace_range range{"tmap await_pulls"};
  const result<void> ready = peer::prepare_waiting(window, patience, peer::check_any_window);
  if (!ready) return ready;
  const peer::local_window* const local = peer::access::local(window);
  const peer_memory_ref& ref = local == nullptr ? window.ref() : local->image();
  TMAP_TRY_CUDA(kernels::launch_await_credits(ref, peer::nanoseconds(patience), stream.get()));
  return {};
}

result<void> barrier_async(const peer_memory& window, cuda::stream_ref stream, std::chrono::milliseconds patience) {
  const support::trace_range range{"tmap barrier"};
  const result<void> ready = peer::prepare_waiting(window, patience, peer::check_any_window);
  if (!ready) return ready;
  if (const peer::local_window* local = peer::access::local(window)) return local->meet(stream.get());
  TMAP_TRY_CUDA(kernels::launch_peer_barrier(window.ref(), peer::nanoseconds(patience), stream.get()));
  return {};
}

result<void> self_test_async(const peer_memory& window, cuda::stream_ref stream, std::chrono::milliseconds patience) {
  const support::trace_range range{"tmap self_test of peers"};
  const result<void> ready = peer::prepare_waiting(window, patience, peer::check_window);
  if (!ready) return ready;
  const result<map_template> base = make_template(kernels::peer::map_test_spec(window.ref().ranks), patch_address);
  if (!base) return failure{base.error()};
  TMAP_TRY_CUDA(kernels::launch_peer_self_test(window.ref(), *base, peer::nanoseconds(patience), stream.get()));
  return {};
}

result<void> last_outcome(const peer_memory& window, cuda::stream_ref stream) {
  using header = detail::peer::window_header;
  static_assert(offsetof(header, fault) == offsetof(header, verdict) + sizeof(std::uint32_t));
  support::arguments given;
  peer::check_any_window(given, window);
  if (!given) return given.outcome();
  const std::uint64_t at = window.ref().windows[window.ref().rank] + offsetof(header, verdict);
  std::uint32_t words[2]{};
  TMAP_TRY_CUDA(
      cudaMemcpyAsync(words, reinterpret_cast<const void*>(at), sizeof(words), cudaMemcpyDeviceToHost, stream.get()));
  TMAP_TRY_CUDA(cudaStreamSynchronize(stream.get()));
  return peer::outcome_of(words[0], words[1]);
}

}  // namespace tmap
