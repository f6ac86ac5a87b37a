// SPDX-License-Identifier: Apache-2.0
// Tests groups and windows of C++ and C over a machine and an NCCL made of functions.
#include <tmap/tmap.h>
#include <tmap/expert_parallel.hpp>
#include <tmap/peer_exchange.hpp>
#include <tmap/peer_group.hpp>
#include <tmap/peer_maps.hpp>

#include <memory>
#include <optional>
#include <utility>

#include "interop/out_of_memory.hpp"
#include "interop/sized.hpp"
#include "lib/interop/objects.hpp"
#include "lib/peer/make_group.hpp"
#include "peer/fake_peers.hpp"

namespace tmap::testing {
namespace {

// Arguments that the caller allocates, before anything fails.
const std::vector<device_address> window_addresses{4096, 1 << 30};
const std::vector<int> two_gpus{0, 1};

// Addresses differ from run to run, so texts have none. Texts are so short that they need no
// memory.

std::string words_of(const peer_memory& memory) {
  const peer_memory_ref& ref = memory.ref();
  return std::to_string(ref.rank) + " of " + std::to_string(ref.ranks) + ", " + std::to_string(ref.bytes);
}
std::string words_of(const peer_group& group) {
  return std::to_string(group.rank()) + " of " + std::to_string(group.ranks());
}
std::string words_of(const peer_id& id) {
  return std::to_string(id.bytes[0]);
}
template <class T>
std::string words_of_result(const result<T>& answer) {
  return answer ? words_of(*answer) : to_string(answer.error());
}

/// Returns the same failure, or the result as a text, which the tests can compare.
template <class T>
result<std::string> as_text(const result<T>& answer) {
  if (!answer) return failure{answer.error()};
  return words_of(*answer);
}
result<std::string> as_text(const result<std::vector<peer_group>>& answer) {
  if (!answer) return failure{answer.error()};
  std::string text;
  for (const peer_group& each : *answer) text += words_of(each);
  return text;
}

/// Holds a machine without a group.
struct peer_machine {
  static constexpr bool may_do_a_part = false;
  std::string state() const { return machine.is_clean() ? "clean" : "something is left"; }
  std::string work() {
    result<peer_group> made =
        peer::group_from_nccl(machine.program_communicator(0, 2, 1), std::chrono::seconds{1}, fake_peers::calls());
    return made ? words_of_result(made->allocate(100)) : to_string(made.error());
  }
  static peer_start start() { return {.rank = 0, .ranks = 2, .id_file = {}}; }

  fake_peers machine;
};

/// Holds groups of each kind, and a window.
struct peer_scene : peer_machine {
  peer_scene()
      : given{peer_group::from_addresses(0, window_addresses, 1 << 20)},
        gpus{peer::group_of_process(two_gpus, fake_peers::calls())},
        over_nccl{
            peer::group_from_nccl(machine.program_communicator(0, 2, 1), std::chrono::seconds{1}, fake_peers::calls())},
        window{over_nccl->allocate(100).value()} {}

  std::string state() const {
    return std::to_string(machine.memory.size()) + ' ' + std::to_string(machine.nccl_memory.size()) + ' ' +
           std::to_string(machine.windows.size()) + ' ' + words_of(window);
  }
  std::string work() {
    std::string text = words_of_result(given->allocate(100)) + words_of_result((*gpus)[1].allocate(100));
    window = peer_memory{};
    return text + (over_nccl ? words_of_result(over_nccl->allocate(100)) : "none");
  }

  result<peer_group> given;
  result<std::vector<peer_group>> gpus;
  result<peer_group> over_nccl;
  peer_memory window;
};

/// Adds a window whose memory is there on all GPUs of the fake machine.
struct whole_window_scene : peer_scene {
  whole_window_scene() : whole{(*gpus)[0].allocate(100).value()} {}

  peer_memory whole;
};

void check_allocate() {
  in<peer_scene>("addresses", [](peer_scene& s) { return as_text(s.given->allocate(100)); }).check();
  in<peer_scene>("a process", [](peer_scene& s) { return as_text((*s.gpus)[0].allocate(100)); }).check();
  in<peer_scene>("NCCL", [](peer_scene& s) { return as_text(s.over_nccl->allocate(100)); }).check();
}

template <class End>
public_call ending_of_peers(const char* name, const End& end, int overloads = 1) {
  return in<peer_scene>(
      name,
      [end](peer_scene& s) {
        end(s);
        return done{};
      },
      overloads);
}

template <class Call, class Real>
public_call making(const char* name, const Call& call, const Real& real) {
  return {name, [call, real] {
            in<peer_machine>("over the fake machine", [call](peer_machine& m) { return as_text(call(m)); }).check();
            in<empty_scene>("over what is there", [real](empty_scene&) { return as_text(real()); }).check();
          }};
}

std::vector<public_call> calls_that_make_groups() {
  return {
      making(
          "tmap::peer_group::from_addresses",
          [](peer_machine&) { return peer_group::from_addresses(0, window_addresses, 1 << 20); },
          [] { return peer_group::from_addresses(1, window_addresses, 1 << 20); }),
      making(
          "tmap::peer_group::of_process",
          [](peer_machine&) { return peer::group_of_process(two_gpus, fake_peers::calls()); },
          [] { return peer_group::of_process(two_gpus); }),
      making(
          "tmap::peer_group::from_nccl",
          [](peer_machine& m) {
            return peer::group_from_nccl(m.machine.program_communicator(0, 2, 1), std::chrono::seconds{1},
                                         fake_peers::calls());
          },
          [] { return peer_group::from_nccl(nullptr); }),
      making(
          "tmap::peer_group::new_id", [](peer_machine&) { return peer::new_id(fake_peers::calls()); },
          [] { return peer_group::new_id(); }),
      making(
          "tmap::peer_group::create",
          [](peer_machine&) { return peer::create_group(peer_machine::start(), fake_peers::calls()); },
          [] { return peer_group::create(peer_start{}); }),
  };
}

/// Lists calls that enqueue kernels. Windows of the fake machine must not reach a GPU.
std::vector<public_call> calls_that_move_data() {
  static const cuda::stream_ref stream{cudaStream_t{}};
  return {
      plain("tmap::exchange_rows_async", [] { return exchange_rows_async({}, {}, {stream}); }),
      plain("tmap::expert_parallel::workspace_bytes", [] { return expert_parallel::workspace_bytes({}, 2); }),
      plain("tmap::expert_parallel::dispatch_async", [] { return expert_parallel::dispatch_async({}, {}, {stream}); }),
      plain("tmap::expert_parallel::combine_async", [] { return expert_parallel::combine_async({}, {}, {stream}); }),
      plain("tmap::await_pulls_async", [] { return await_pulls_async({}, stream); }),
      plain("tmap::barrier_async", [] { return barrier_async({}, stream); }),
      plain("tmap::self_test_async", [] { return self_test_async({}, stream); }),
      plain("tmap::last_outcome", [] { return last_outcome({}, stream); }),
      {"tmap::abort_group",
       [] {
         in<whole_window_scene>("over the fake machine", [](whole_window_scene& s) {
           return peer::abort_group(s.whole, fake_peers::calls());
         }).check();
         plain("over what is there", [] { return abort_group({}); }).check();
       }},
      in<peer_scene>("tmap::all_ranks_spec",
                     [](peer_scene& s) {
                       const auto made = all_ranks_spec({}, s.window);
                       return made ? result<void>{} : failure{made.error()};
                     }),
  };
}

}  // namespace

std::vector<public_call> peer_calls_of_cpp() {
  std::vector<public_call> all = calls_that_make_groups();
  const std::vector<public_call> others{
      {"tmap::peer_group::allocate", &check_allocate},
      in<peer_scene>("tmap::peer_group::allocate_local",
                     [](peer_scene& s) { return as_text(s.over_nccl->allocate_local(100, 100)); }),
      in<peer_scene>("tmap::peer_group::check", [](peer_scene& s) { return s.over_nccl->check(); }),
      ending_of_peers(
          "tmap::peer_group::peer_group",
          [](peer_scene& s) {
            peer_group moved{std::move(*s.given)};
            s.given = std::move(moved);
          },
          2),  // the other overload is the library's own
      ending_of_peers("tmap::peer_group::operator=", [](peer_scene& s) { *s.over_nccl = std::move((*s.gpus)[0]); }),
      ending_of_peers("tmap::peer_group::~peer_group", [](peer_scene& s) { s.over_nccl = failure{error{}}; }),
      ending_of_peers("tmap::peer_memory::peer_memory", [](peer_scene& s) { peer_memory moved{std::move(s.window)}; }),
      ending_of_peers("tmap::peer_memory::operator=", [](peer_scene& s) { s.window = peer_memory{}; }),
      ending_of_peers("tmap::peer_memory::~peer_memory",
                      [](peer_scene& s) { std::optional<peer_memory>{std::move(s.window)}.reset(); }),
  };
  all.insert(all.end(), others.begin(), others.end());
  for (public_call& each : calls_that_move_data()) all.push_back(std::move(each));
  return all;
}

namespace {

constexpr std::uint64_t no_handle = 9;

/// Holds a group over NCCL and a window of it, by handles. Outputs are poisoned.
struct peers_by_handles : peer_machine {
  peers_by_handles() {
    result<peer_group> group =
        peer::group_from_nccl(machine.program_communicator(0, 2, 1), std::chrono::seconds{1}, fake_peers::calls());
    auto window_made = std::make_shared<const peer_memory>(group->allocate(100).value());
    const auto held = std::make_shared<interop::held_group>();
    held->group.emplace(std::move(*group));
    EXPECT_TRUE(interop::hand_out(interop::peer_groups(), held, &c_group).is_ok());
    EXPECT_TRUE(interop::hand_out(interop::peer_memories(), std::move(window_made), &c_window).is_ok());
  }
  peers_by_handles(const peers_by_handles&) = delete;
  peers_by_handles& operator=(const peers_by_handles&) = delete;
  ~peers_by_handles() { end_all(); }

  std::string state() {
    std::string shown = made_group.value == no_handle ? "no group made, " : "a group made, ";
    shown += made_window.value == no_handle ? "no window made, " : "a window made, ";
    tmap_peer_memory_ref seen{};
    shown += tmap_status_name(tmap_peer_group_check(c_group));
    shown += tmap_status_name(tmap_peer_memory_query(c_window, &seen));
    return shown + std::to_string(seen.bytes) + ' ' + std::to_string(rank) + ' ' + std::to_string(ranks) + ' ' +
           std::to_string(ref.bytes) + ' ' + std::to_string(spec.rank);
  }
  std::string work() {
    end_all();
    return machine.is_clean() ? peer_machine::work() : "something is left";
  }
  void end_all() {
    for (tmap_peer_memory* const each : {&made_window, &c_window}) tmap_peer_memory_destroy(*each);
    for (tmap_peer_group* const each : {&made_group, &c_group}) tmap_peer_group_destroy(*each);
  }

  tmap_peer_group c_group{no_handle};
  tmap_peer_memory c_window{no_handle};
  tmap_peer_group made_group{no_handle};
  tmap_peer_memory made_window{no_handle};
  std::uint32_t rank{77};
  std::uint32_t ranks{77};
  tmap_peer_memory_ref ref{};
  tmap_tensor_spec spec{};
};

/// Makes a group of addresses.
tmap_status make_group(tmap_peer_group& to) {
  static constexpr std::uint64_t windows[]{4096, 1 << 30};
  return tmap_peer_group_from_addresses(0, windows, 2, 1 << 20, &to);
}

std::vector<public_call> calls_of_c_that_make_groups() {
  static constexpr std::int32_t devices[]{0, 1};
  return {
      in<peers_by_handles>("tmap_peer_group_from_addresses",
                           [](peers_by_handles& s) { return make_group(s.made_group); }),
      plain("tmap_peer_group_of_process",
            [] {
              tmap_peer_group made[2]{};
              const tmap_status ended = tmap_peer_group_of_process(devices, 2, made);
              for (const tmap_peer_group each : made) tmap_peer_group_destroy(each);
              return ended;
            }),
      in<peers_by_handles>("tmap_peer_group_from_nccl",
                           [](peers_by_handles& s) { return tmap_peer_group_from_nccl(nullptr, 0, &s.made_group); }),
      plain("tmap_peer_new_id",
            [] {
              tmap_peer_id id{};
              return tmap_peer_new_id(&id);
            }),
      in<peers_by_handles>("tmap_peer_group_create",
                           [](peers_by_handles& s) {
                             tmap_peer_start start = sized<tmap_peer_start>();
                             start.id_file = "/a/path/that/is/long/enough/to/need/an/allocation";
                             return tmap_peer_group_create(&start, &s.made_group);
                           }),
  };
}

/// Asks for a number that depends on the sizes of an exchange of experts.
tmap_status ask_of_experts(tmap_status (*ask)(const tmap_expert_shape*, std::uint32_t, std::uint64_t*)) {
  tmap_expert_shape sizes = sized<tmap_expert_shape>();
  sizes.k = 2;
  sizes.tokens = sizes.arrivals = 10;
  sizes.experts = 8;
  sizes.row_bytes = 256;
  sizes.columns = 64;
  std::uint64_t number = 0;
  return ask(&sizes, 2, &number);
}

/// Lists calls with a window, and those about sizes of experts. Those that enqueue kernels get
/// arguments that are refused: windows of the fake machine must not reach a GPU.
std::vector<public_call> calls_of_c_with_windows() {
  using s = peers_by_handles;
  static constexpr std::uint64_t hours = 25 * 60 * 60 * 1000;
  return {
      in<s>("tmap_peer_memory_query", [](s& o) { return tmap_peer_memory_query(o.c_window, &o.ref); }),
      in<s>("tmap_peer_memory_destroy", [](s& o) { return tmap_peer_memory_destroy(o.c_window); }),
      in<s>("tmap_peer_exchange_rows",
            [](s& o) {
              const tmap_exchange_problem problem = sized<tmap_exchange_problem>();
              return tmap_peer_exchange_rows(o.c_window, &problem, nullptr);
            }),
      in<s>("tmap_peer_dispatch",
            [](s& o) {
              tmap_peer_dispatch_problem problem = sized<tmap_peer_dispatch_problem>();
              problem.sizes = sized<tmap_expert_shape>();
              return tmap_peer_dispatch(o.c_window, &problem, nullptr);
            }),
      in<s>("tmap_peer_combine",
            [](s& o) {
              tmap_peer_combine_problem problem = sized<tmap_peer_combine_problem>();
              problem.sizes = sized<tmap_expert_shape>();
              return tmap_peer_combine(o.c_window, &problem, nullptr);
            }),
      plain("tmap_peer_workspace_bytes", [] { return ask_of_experts(tmap_peer_workspace_bytes); }),
      plain("tmap_peer_expert_rows", [] { return ask_of_experts(tmap_peer_expert_rows); }),
      in<s>("tmap_peer_await_pulls", [](s& o) { return tmap_peer_await_pulls(o.c_window, hours, nullptr); }),
      in<s>("tmap_peer_barrier", [](s& o) { return tmap_peer_barrier(o.c_window, hours, nullptr); }),
      in<s>("tmap_peer_self_test", [](s& o) { return tmap_peer_self_test(o.c_window, hours, nullptr); }),
      in<s>("tmap_peer_abort", [](s& o) { return tmap_peer_abort({o.c_group.value}); }),
      in<s>("tmap_peer_last_outcome", [](s& o) { return tmap_peer_last_outcome({o.c_group.value}, nullptr); }),
      in<s>("tmap_all_ranks_spec",
            [](s& o) {
              const tmap_tensor_spec local = sized<tmap_tensor_spec>();
              return tmap_all_ranks_spec(&local, o.c_window, &o.spec);
            }),
  };
}

}  // namespace

std::vector<public_call> peer_calls_of_c() {
  using s = peers_by_handles;
  std::vector<public_call> all = calls_of_c_that_make_groups();
  const std::vector<public_call> others = {
      in<s>("tmap_peer_group_query", [](s& o) { return tmap_peer_group_query(o.c_group, &o.rank, &o.ranks); }),
      in<s>("tmap_peer_group_check", [](s& o) { return tmap_peer_group_check(o.c_group); }),
      in<s>("tmap_peer_group_destroy", [](s& o) { return tmap_peer_group_destroy(o.c_group); }),
      in<s>("tmap_peer_group_allocate", [](s& o) { return tmap_peer_group_allocate(o.c_group, 100, &o.made_window); }),
      in<s>("tmap_peer_group_allocate_local",
            [](s& o) { return tmap_peer_group_allocate_local(o.c_group, 100, 100, &o.made_window); }),
  };
  all.insert(all.end(), others.begin(), others.end());
  for (public_call& each : calls_of_c_with_windows()) all.push_back(std::move(each));
  return all;
}

}  // namespace tmap::testing
