// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/peer.h>
#include <tmap/expert_parallel.hpp>
#include <tmap/peer_exchange.hpp>
#include <tmap/peer_group.hpp>
#include <tmap/peer_maps.hpp>

#include <algorithm>
#include <bit>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/interop/convert.hpp"
#include "lib/interop/inputs.hpp"
#include "lib/interop/objects.hpp"

namespace tmap::interop {
namespace {

/// Names the argument of a failure as C does. Lists are pointers here, and the choices of a run
/// belong to the problem.
answer named(const error& e) {
  struct other_name {
    std::string_view library;
    std::string_view c;
  };
  static constexpr other_name names[] = {
      {"windows.size()", "ranks"},
      {"devices.size()", "ranks"},
      {"start.patience", "start.patience_ms"},
      {"patience", "patience_ms"},
      {"run.patience", "problem.patience_ms"},
      {"run.blocks", "problem.blocks"},
      {"run.scratch.memory", "problem.workspace"},
      {"run.scratch.bytes", "problem.workspace_bytes"},
  };
  error made = e;
  for (const other_name& other : names) {
    if (e.argument.view() == other.library) made.argument = other.c;
  }
  return {static_cast<tmap_status>(e.code), made};
}

template <class T>
answer named(const result<T>& ended) {
  return ended ? answer{} : named(ended.error());
}

/// An array of one element for each rank.
template <class T>
struct rank_list {
  void check(arguments& all) const {
    all.range(ranks, 1, max_group_ranks, "ranks");
    all.pointer(elements, name);
  }
  T* value() const { return elements; }

  const char* name;
  T* elements;
  std::uint32_t ranks;
};
template <class T>
rank_list(const char*, T*, std::uint32_t) -> rank_list<T>;

template <class Make>
answer hand_out_group(tmap_peer_group& group, const Make& make) {
  return hand_out_made(peer_groups(), &group, [&](std::shared_ptr<held_group>& to) -> answer {
    auto held = std::make_shared<held_group>();
    result<peer_group> made = make();
    if (!made) return named(made.error());
    held->group.emplace(std::move(*made));
    to = std::move(held);
    return {};
  });
}

/// Hands out all groups or none.
answer hand_out_all(std::vector<peer_group>& made, tmap_peer_group* groups) {
  std::vector<tmap_peer_group> handles(made.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    const answer handed = hand_out_group(handles[i], [&]() -> result<peer_group> { return std::move(made[i]); });
    if (handed.is_ok()) continue;
    while (i-- > 0) peer_groups().remove(handles[i].value);
    return handed;
  }
  std::copy(handles.begin(), handles.end(), groups);
  return {};
}

answer of_process(const std::int32_t* devices, const std::uint32_t& ranks, tmap_peer_group* groups) {
  const std::vector<int> all(devices, devices + ranks);
  result<std::vector<peer_group>> made = peer_group::of_process(all);
  return made ? hand_out_all(*made, groups) : named(made.error());
}

/// Calls `use(group)` while no other call uses the group.
template <class Use>
answer with_group(tmap_peer_group group, const Use& use) {
  const auto held = peer_groups().find(group.value);
  if (held == nullptr) return stale("group");
  const turn<held_group> mine{*held};
  if (!mine.is_granted()) return busy("group", TMAP_GROUP_BUSY);
  return use(*held->group);
}

answer allocate(peer_group& group, std::uint64_t bytes, tmap_peer_memory& window) {
  return hand_out_made(peer_memories(), &window, [&](std::shared_ptr<const peer_memory>& to) -> answer {
    auto held = std::make_shared<peer_memory>();
    result<peer_memory> made = group.allocate(bytes);
    if (!made) return named(made.error());
    *held = std::move(*made);
    to = std::move(held);
    return {};
  });
}

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

object<const peer_memory> window_of(tmap_peer_memory window) {
  return {"window", peer_memories(), window.value};
}

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

tmap_status tmap_peer_group_from_addresses(uint32_t rank, const uint64_t* windows, uint32_t ranks,
                                           uint64_t window_bytes, tmap_peer_group* group) {
  return run(
      __func__,
      [&](const uint64_t* at, tmap_peer_group& to) {
        const std::vector<tmap::device_address> all(at, at + ranks);
        return hand_out_group(to, [&] { return tmap::peer_group::from_addresses(rank, all, window_bytes); });
      },
      rank_list{"windows", windows, ranks}, output{"group", group});
}

tmap_status tmap_peer_group_of_process(const int32_t* devices, uint32_t ranks, tmap_peer_group* groups) {
  return run(
      __func__, [&](const int32_t* all, tmap_peer_group* to) { return of_process(all, ranks, to); },
      rank_list{"devices", devices, ranks}, rank_list{"groups", groups, ranks});
}

tmap_status tmap_peer_group_from_nccl(struct ncclComm* communicator, uint64_t patience_ms, tmap_peer_group* group) {
  const std::chrono::milliseconds patience = patience_of(patience_ms, tmap::peer_start{}.patience);
  return run(
      __func__,
      [&](tmap_peer_group& to) {
        return hand_out_group(to, [&] { return tmap::peer_group::from_nccl(communicator, patience); });
      },
      output{"group", group});
}

tmap_status tmap_peer_new_id(tmap_peer_id* id) {
  return ask(__func__, output{"id", id}, tmap::peer_group::new_id);
}

tmap_status tmap_peer_group_create(const tmap_peer_start* start, tmap_peer_group* group) {
  return run(
      __func__,
      [](const tmap::peer_start& how, tmap_peer_group& to) {
        return hand_out_group(to, [&] { return tmap::peer_group::create(how); });
      },
      input{"start", start}, output{"group", group});
}

tmap_status tmap_peer_group_query(tmap_peer_group group, uint32_t* rank, uint32_t* ranks) {
  return run(
      __func__,
      [&](uint32_t& to_rank, uint32_t& to_ranks) {
        return with_group(group, [&](const tmap::peer_group& of) -> answer {
          to_rank = of.rank();
          to_ranks = of.ranks();
          return {};
        });
      },
      output{"rank", rank}, output{"ranks", ranks});
}

tmap_status tmap_peer_group_check(tmap_peer_group group) {
  return call(__func__, [&] { return with_group(group, [](tmap::peer_group& of) { return named(of.check()); }); });
}

tmap_status tmap_peer_group_destroy(tmap_peer_group group) {
  return call(__func__, [&] { return peer_groups().remove(group.value) == nullptr ? stale("group") : answer{}; });
}

tmap_status tmap_peer_group_allocate(tmap_peer_group group, uint64_t bytes, tmap_peer_memory* window) {
  return run(
      __func__,
      [&](tmap_peer_memory& to) {
        return with_group(group, [&](tmap::peer_group& of) { return allocate(of, bytes, to); });
      },
      output{"window", window});
}

tmap_status tmap_peer_memory_query(tmap_peer_memory window, tmap_peer_memory_ref* ref) {
  return run(
      __func__,
      [](const tmap::peer_memory& of, tmap_peer_memory_ref& to) -> answer {
        to = std::bit_cast<tmap_peer_memory_ref>(of.ref());
        return {};
      },
      window_of(window), output{"ref", ref});
}

tmap_status tmap_peer_memory_destroy(tmap_peer_memory window) {
  return call(__func__, [&] { return peer_memories().remove(window.value) == nullptr ? stale("window") : answer{}; });
}

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
