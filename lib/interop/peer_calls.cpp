// SPDX-License-Identifier: Apache-2.0
// Calls that the ranks of a group make together, and what they ask of a window.
#include <tmap/c/peer.h>
#include <tmap/expert_parallel.hpp>
#include <tmap/peer_exchange.hpp>
#include <tmap/peer_maps.hpp>

#include "lib/interop/convert.hpp"
#include "lib/interop/inputs.hpp"
#include "lib/interop/peer_arguments.hpp"

namespace tmap::interop {
namespace {

/// Returns how a call of a problem runs, which C has in the problem.
template <class Run, class Problem>
Run run_of_problem(const Problem& problem, cuda::stream_ref stream) {
  Run made{stream};
  made.blocks = problem.blocks == 0 ? made.blocks : problem.blocks;
  made.patience = patience_of(problem.patience_ms, made.patience);
  return made;
}

answer exchange(const peer_memory& window, const tmap_exchange_problem& problem, cuda::stream_ref stream) {
  return named(exchange_rows_async(window, library_of(problem), run_of_problem<exchange_run>(problem, stream)));
}

template <class Problem>
expert_parallel::run run_of_experts(const Problem& problem, cuda::stream_ref stream) {
  auto made = run_of_problem<expert_parallel::run>(problem, stream);
  made.scratch = {problem.workspace, problem.workspace_bytes};
  return made;
}

answer dispatch(const peer_memory& window, const tmap_peer_dispatch_problem& problem, cuda::stream_ref stream) {
  return named(expert_parallel::dispatch_async(window, library_of(problem), run_of_experts(problem, stream)));
}

answer combine(const peer_memory& window, const tmap_peer_combine_problem& problem, cuda::stream_ref stream) {
  return named(expert_parallel::combine_async(window, library_of(problem), run_of_experts(problem, stream)));
}

/// Returns the rows of a rank whose sizes are good.
result<std::uint64_t> checked_row_count(const expert_parallel::shape& sizes, std::uint32_t ranks) {
  const result<std::uint64_t> checked = expert_parallel::workspace_bytes(sizes, ranks);
  if (!checked) return failure{checked.error()};
  return expert_parallel::row_count(sizes, ranks);
}

/// A problem that its call converts, because it has the choices of the run, too.
template <class Problem>
struct problem_input {
  void check(arguments& all) const { input{"problem", given}.check(all); }
  const Problem& value() const { return *given; }

  const Problem* given;
};
template <class Problem>
problem_input(const Problem*) -> problem_input<Problem>;

using waiting_call = result<void> (*)(const peer_memory&, cuda::stream_ref, std::chrono::milliseconds);

tmap_status run_waiting(const char* name, waiting_call call, tmap_peer_memory window, std::uint64_t patience_ms,
                        tmap_stream stream) {
  const std::chrono::milliseconds patience = patience_of(patience_ms, default_peer_patience);
  return run(
      name, [&](const peer_memory& with) { return named(call(with, cuda::stream_ref{stream}, patience)); },
      window_of(window));
}

}  // namespace
}  // namespace tmap::interop

using namespace tmap::interop;

tmap_status tmap_peer_exchange_rows(tmap_peer_memory window, const tmap_exchange_problem* problem, tmap_stream stream) {
  return run(__func__, exchange, window_of(window), problem_input{problem}, as_is{cuda::stream_ref{stream}});
}

tmap_status tmap_peer_dispatch(tmap_peer_memory window, const tmap_peer_dispatch_problem* problem, tmap_stream stream) {
  return run(__func__, dispatch, window_of(window), problem_input{problem}, as_is{cuda::stream_ref{stream}});
}

tmap_status tmap_peer_combine(tmap_peer_memory window, const tmap_peer_combine_problem* problem, tmap_stream stream) {
  return run(__func__, combine, window_of(window), problem_input{problem}, as_is{cuda::stream_ref{stream}});
}

tmap_status tmap_peer_workspace_bytes(const tmap_expert_shape* sizes, uint32_t ranks, uint64_t* bytes) {
  return ask(__func__, output{"bytes", bytes}, tmap::expert_parallel::workspace_bytes, input{"sizes", sizes},
             as_is{ranks});
}

tmap_status tmap_peer_expert_rows(const tmap_expert_shape* sizes, uint32_t ranks, uint64_t* rows) {
  return ask(__func__, output{"rows", rows}, checked_row_count, input{"sizes", sizes}, as_is{ranks});
}

tmap_status tmap_peer_await_pulls(tmap_peer_memory window, uint64_t patience_ms, tmap_stream stream) {
  return run_waiting(__func__, tmap::await_pulls_async, window, patience_ms, stream);
}

tmap_status tmap_peer_barrier(tmap_peer_memory window, uint64_t patience_ms, tmap_stream stream) {
  return run_waiting(__func__, tmap::barrier_async, window, patience_ms, stream);
}

tmap_status tmap_peer_self_test(tmap_peer_memory window, uint64_t patience_ms, tmap_stream stream) {
  return run_waiting(__func__, tmap::self_test_async, window, patience_ms, stream);
}

tmap_status tmap_peer_abort(tmap_peer_memory window) {
  return run(__func__, tmap::abort_group, window_of(window));
}

tmap_status tmap_peer_last_outcome(tmap_peer_memory window, tmap_stream stream) {
  return run(__func__, tmap::last_outcome, window_of(window), as_is{cuda::stream_ref{stream}});
}

tmap_status tmap_all_ranks_spec(const tmap_tensor_spec* local, tmap_peer_memory window, tmap_tensor_spec* spec) {
  return ask(__func__, output{"spec", spec}, tmap::all_ranks_spec, input{"local", local}, window_of(window));
}
