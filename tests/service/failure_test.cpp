// SPDX-License-Identifier: Apache-2.0
// Lets every call in every operation of a service fail in turn, and every allocation of host
// memory. Nothing leaks, no result is half made, and the service goes on or is dead.
#include <algorithm>
#include <functional>
#include <optional>

#include "service/service_fixture.hpp"
#include "support/failing_new.hpp"

namespace tmap::testing {
namespace {

/// Holds a service with one batch. Tests break its context or its calls.
struct scene {
  log_lines unread;
  fake_machine machine;
  map_template base = rows_template();
  tensor_list tensors{100};
  std::optional<map_service> service;
  map_batch batch;
  cudaStream_t home{};
  cudaStream_t other{};
  batch_header header;

  void make_all() {
    result<map_service> made = service::create_service({.capacity = 400}, fake_machine::calls());
    service.emplace(std::move(made.value()));
    home = machine.streams.open_stream();
    other = machine.streams.open_stream();
    batch = encode().value();
  }
  result<map_batch> encode(batch_header* counts = nullptr) {
    return service->encode(base, tensors.source(), tensors.patches.size(), {.where = {home}, .header = counts});
  }
  result<map_batch> update(const std::vector<std::uint32_t>& which) {
    return service->update(batch, {which.data(), which.size()}, base, tensors.source(), {other});
  }
  std::uint64_t wrong_maps(const map_batch& of) const {
    std::uint64_t wrong = 0;
    for (std::uint32_t i = 0; i < of.size(); ++i) {
      wrong += *of.ref().slot(i) != map_of(base, tensors.patches[i]) ? 1 : 0;
    }
    return wrong;
  }
};

enum class table { of_service, of_pool };

void fail(scene& play, table which, std::uint64_t n, cudaError_t code) {
  if (which == table::of_service) play.machine.fail_call(n, code);
  if (which == table::of_pool) play.machine.streams.fail_call(n, code);
}

std::uint64_t calls_of(const scene& play, table which) {
  return which == table::of_service ? play.machine.calls_made() : play.machine.streams.calls_made();
}

/// An action, which returns its error, if any.
using action = std::function<std::optional<error>(scene&)>;

template <class T>
std::optional<error> error_of(const result<T>& outcome) {
  return outcome ? std::nullopt : std::optional{outcome.error()};
}

/// Checks the contents of a batch that an action made.
std::optional<error> judged(scene& play, const result<map_batch>& made) {
  const uncounted_allocations beside;
  if (made) {
    EXPECT_EQ(play.wrong_maps(*made), 0u);
  }
  return error_of(made);
}

/// Checks that the service goes on or is dead, that all slots are accounted for, and that all
/// objects can end.
void check_after(scene& play) {
  result<map_batch> next = play.encode();
  const bool is_dead = !next;
  if (next) {
    EXPECT_EQ(play.wrong_maps(*next), 0u);
    EXPECT_EQ(play.wrong_maps(play.batch), 0u);
    const slot_counts slots = play.service->statistics().slots;
    EXPECT_EQ(slots.free + slots.leased + slots.pending + slots.captured, slots.capacity);
  } else {
    EXPECT_EQ(next.error().code, status::service_dead) << to_string(next.error());
  }
  play.batch = map_batch{};
  next = map_batch{};
  play.service.reset();
  EXPECT_TRUE(is_dead || play.machine.is_clean());
}

void fail_each_call(const action& act, table which, cudaError_t code, status expected) {
  for (std::uint64_t n = 1;; ++n) {
    SCOPED_TRACE(::testing::Message() << (which == table::of_service ? "service" : "pool") << " call " << n);
    scene play;
    play.make_all();
    const std::uint64_t before = calls_of(play, which);
    fail(play, which, n, code);
    const std::optional<error> outcome = act(play);
    const bool was_reached = calls_of(play, which) - before >= n;
    if (outcome) {
      EXPECT_TRUE(was_reached);
      EXPECT_EQ(outcome->code, expected) << to_string(*outcome);
    }
    fail(play, which, 0, cudaSuccess);
    check_after(play);
    if (!was_reached) return;
    ASSERT_LT(n, 1000u);
  }
}

slot_counts counts_of(scene& play) {
  play.machine.streams.run_all();
  return play.service->statistics().slots;
}

/// Lets each allocation of an action fail in turn. Checks that slots, totals and service are
/// unchanged and go on.
void fail_each_allocation(const action& act, bool all_after) {
  for (std::uint64_t n = 1;; ++n) {
    SCOPED_TRACE(::testing::Message() << "allocation " << n << (all_after ? " and all after it" : ""));
    scene play;
    play.make_all();
    const slot_counts before = counts_of(play);
    fail_allocation(n, all_after);
    const std::optional<error> outcome = act(play);
    const bool was_reached = allocations_made() >= n;
    fail_allocation(0);
    EXPECT_EQ(outcome.has_value(), was_reached);
    if (outcome) {
      EXPECT_EQ(outcome->code, status::out_of_memory) << to_string(*outcome);
      const slot_counts after = counts_of(play);
      EXPECT_EQ(after.free, before.free);
      EXPECT_EQ(after.leased, before.leased);
      EXPECT_EQ(after.pending, before.pending);
      EXPECT_EQ(after.captured, before.captured);
    }
    EXPECT_TRUE(play.encode().has_value()) << "it is not dead";
    check_after(play);
    if (!was_reached) return;
    ASSERT_LT(n, 1000u);
  }
}

/// `usual` is the error after a failure that leaves the context intact.
void expect_robust(const action& act, status usual = status::cuda_failure) {
  for (const table which : {table::of_service, table::of_pool}) {
    fail_each_call(act, which, cudaErrorLaunchOutOfResources, usual);
    fail_each_call(act, which, cudaErrorIllegalAddress, status::service_dead);
  }
  for (const bool all_after : {false, true}) fail_each_allocation(act, all_after);
}

TEST(service_failure, encode) {
  expect_robust([](scene& play) { return judged(play, play.encode()); });
}

TEST(service_failure, encode_with_a_header) {
  expect_robust([](scene& play) { return judged(play, play.encode(&play.header)); });
}

const std::vector<std::uint32_t> few{1, 2, 3};
const std::vector<std::uint32_t> many(100, 7);

TEST(service_failure, update_that_shares) {
  expect_robust([](scene& play) { return judged(play, play.update(few)); });
}

TEST(service_failure, update_that_moves_everything) {
  expect_robust([](scene& play) { return judged(play, play.update(many)); });
}

/// Runs inside a capture of the service's stream and expects that the capture ends without an
/// error.
template <class Make>
std::optional<error> captured(scene& play, const Make& make) {
  std::optional<error> outcome;
  {
    const uncounted_allocations beside;
    play.machine.streams.begin_capture(play.other);
  }
  {
    const result<map_batch> made = make();
    outcome = error_of(made);
  }
  const uncounted_allocations beside;
  const cudaGraph_t graph = play.machine.streams.end_capture(play.other);
  EXPECT_NE(graph, nullptr);
  play.machine.streams.destroy_graph(graph);
  return outcome;
}

TEST(service_failure, reserve_in_a_capture) {
  expect_robust([](scene& play) {
    return captured(play, [&] { return play.service->reserve(50, cuda::stream_ref{play.other}); });
  });
}

TEST(service_failure, update_in_a_capture) {
  for (const std::vector<std::uint32_t>* which : {&few, &many}) {
    expect_robust([which](scene& play) { return captured(play, [&] { return play.update(*which); }); });
  }
}

const std::vector<std::uint32_t> second_map{1};

/// Makes a captured call fail at call number `n` of the service's table, counted from the first
/// that enqueues a kernel.
struct failing_kernel {
  const char* what;
  std::uint64_t n;
  std::uint64_t kept;  ///< slots that the graph keeps, including old ones
  std::function<result<map_batch>(scene&, cudaStream_t)> act;
};

/// The number of calls before the first kernel: one asks for the context.
constexpr std::uint64_t calls_of_enter = 1;
constexpr std::uint64_t calls_of_open = checks_hazards ? 1 : 0;

/// Slots that no node uses come back while the capture goes on.
TEST(service_failure, a_captured_call_that_enqueued_nothing_gives_its_slots_back) {
  const failing_kernel tries[] = {
      {"encode", 1, 0,
       [](scene& play, cudaStream_t stream) {
         return play.service->encode(play.base, play.tensors.source(), 50, {stream});
       }},
      {"update that shares", 1, 100, [](scene& play, cudaStream_t) { return play.update(second_map); }},
      {"update that moves everything", 1, 100, [](scene& play, cudaStream_t) { return play.update(many); }},
      {"the second kernel of an update that shares", 2 + calls_of_open, 105,
       [](scene& play, cudaStream_t) { return play.update(second_map); }},
      {"the second kernel of an update that moves", 2 + calls_of_open, 200,
       [](scene& play, cudaStream_t) { return play.update(many); }},
  };
  for (const failing_kernel& each : tries) {
    SCOPED_TRACE(each.what);
    scene play;
    play.make_all();
    play.machine.streams.begin_capture(play.other);
    play.machine.fail_call(calls_of_enter + each.n, cudaErrorLaunchOutOfResources);
    EXPECT_EQ(each.act(play, play.other).error().cuda_code, cudaErrorLaunchOutOfResources);
    const slot_counts slots = play.service->statistics().slots;
    EXPECT_EQ(slots.captured, each.kept);
    EXPECT_EQ(slots.free, 400 - std::max<std::uint64_t>(each.kept, 100));
    EXPECT_TRUE(each.act(play, play.other).has_value()) << "the capture goes on";
    play.machine.streams.destroy_graph(play.machine.streams.end_capture(play.other));
    EXPECT_TRUE(play.machine.streams.violations().empty());
    check_after(play);
  }
}

TEST(service_failure, reserve) {
  expect_robust([](scene& play) { return error_of(play.service->reserve(50, cuda::stream_ref{play.other})); });
}

TEST(service_failure, use_on) {
  expect_robust([](scene& play) {
    result<map_batch> made = play.update(few);
    if (!made) return error_of(made);
    return error_of(made->use_on(cuda::stream_ref{cudaStreamLegacy}));
  });
}

TEST(service_failure, release) {
  const auto release = [](scene& play) {
    result<map_batch> made = play.encode();
    return made ? error_of(made->release()) : std::optional<error>{};
  };
  for (const table which : {table::of_service, table::of_pool}) {
    fail_each_call(release, which, cudaErrorIllegalAddress, status::service_dead);
  }
}

/// Calls that end or query objects need no host memory.
TEST(service_failure, without_memory_batches_end_and_statistics_are_told) {
  scene play;
  play.make_all();
  {
    const result<map_batch> updated = play.update(few);
    ASSERT_TRUE(updated.has_value());
    fail_allocation(1, true);
  }
  EXPECT_TRUE(play.batch.release().has_value());
  EXPECT_EQ(play.service->statistics().slots.pending, 107u);
  EXPECT_EQ(allocations_made(), 0u);
  play.service.reset();
  fail_allocation(0);
  EXPECT_TRUE(play.machine.is_clean());
}

/// Lets every call of creation fail in turn until creation succeeds.
void fail_each_call_of_create(table which, cudaError_t code, status expected) {
  for (std::uint64_t n = 1;; ++n) {
    SCOPED_TRACE(::testing::Message() << (which == table::of_service ? "service" : "pool") << " call " << n);
    scene play;
    fail(play, which, n, code);
    const std::uint64_t before = calls_of(play, which);
    const bool was_made = service::create_service({.capacity = 40}, fake_machine::calls())
                              .transform_error([&](const error& e) {
                                EXPECT_EQ(e.code, expected) << to_string(e);
                                return e;
                              })
                              .has_value();
    const bool was_reached = calls_of(play, which) - before >= n;
    EXPECT_TRUE(was_made || play.machine.is_clean());
    if (!was_reached) return;
    ASSERT_LT(n, 1000u);
  }
}

TEST(service_failure, create_without_memory) {
  std::uint64_t n = 0;
  for (bool was_reached = true; was_reached;) {
    scene play;
    fail_allocation(++n);
    const result<map_service> made = service::create_service({.capacity = 40}, fake_machine::calls());
    was_reached = allocations_made() >= n;
    fail_allocation(0);
    if (made) continue;  // the failed allocation was for a line of the log
    EXPECT_EQ(made.error().code, status::out_of_memory) << n;
    EXPECT_TRUE(play.machine.is_clean()) << n;
  }
  EXPECT_GT(n, 5u);
}

TEST(service_failure, create) {
  for (const table which : {table::of_service, table::of_pool}) {
    fail_each_call_of_create(which, cudaErrorMemoryAllocation, status::out_of_memory);
    fail_each_call_of_create(which, cudaErrorIllegalAddress, status::earlier_asynchronous_error);
  }
}

}  // namespace
}  // namespace tmap::testing
