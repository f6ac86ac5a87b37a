// SPDX-License-Identifier: Apache-2.0
// Tests services with graphs and with threads that capture.
#include <gmock/gmock.h>

#include <functional>
#include <optional>
#include <utility>

#include "service/service_fixture.hpp"

namespace tmap::testing {
namespace {

using service_capture = service_fixture;

TEST_F(service_capture, memory_that_graphs_hold_is_not_freed) {
  const cudaStream_t stream = machine.streams.open_stream();
  std::optional<map_service> service{make()};
  machine.streams.begin_capture(stream);
  map_batch batch = encode(*service, tensor_list{5}, stream).value();
  const cudaGraph_t graph = machine.streams.end_capture(stream);
  ASSERT_TRUE(batch.release().has_value());
  EXPECT_EQ(service->statistics().slots.captured, 5u);
  service.reset();
  EXPECT_EQ(log.count(log_level::warning), 1u);
  EXPECT_EQ(machine.streams.live_allocations(), 1u);
  EXPECT_EQ(machine.host_blocks(), checks_hazards ? 1u : 0u) << "the place where kernels of the graph may report";
  machine.streams.destroy_graph(graph);
  EXPECT_TRUE(machine.streams.violations().empty());
  EXPECT_EQ(machine.streams.live_allocations(), 1u);
}

/// A graph would keep the slots.
TEST_F(service_capture, a_call_that_is_refused_takes_no_slots) {
  const cudaStream_t stream = machine.streams.open_stream();
  map_service service = make();
  const tensor_list tensors{40};
  const map_batch old = encode(service, tensors, stream).value();
  map_template no_rank = base;
  no_rank.spec.rank = 0;
  map_template rows = base;
  rows.fields = patch_address | patch_dim(1);
  const std::int32_t sizes[] = {1};
  const address_window* const odd = reinterpret_cast<const address_window*>(std::uintptr_t{4});
  const std::uint32_t which[] = {1};
  const cuda::stream_ref to = stream_of(stream);
  batch_header header;
  map_status one_status;
  machine.streams.begin_capture(stream);
  const auto expect_refused = [&](const result<map_batch>& refused, const char* argument) {
    tmap::testing::expect_refused(refused, argument);
    EXPECT_EQ(service.statistics().slots.captured, 0u) << argument;
  };
  expect_refused(service.encode(no_rank, tensors.source(), 40, {to}), "base.spec.rank");
  expect_refused(service.encode(base, patch_array{}, 40, {to}), "source.patches");
  expect_refused(service.encode(base, patch_columns{}, 40, {to}), "source.global_address");
  expect_refused(
      service.encode(base, tensors.source(), 40, {.where = {to}, .header = &header, .choices = {.trusted = true}}),
      "choices.trusted");
  expect_refused(service.encode(base, tensors.source(), 40, {.where = {to}, .windows = {odd, 1}}), "windows");
  expect_refused(service.encode(rows, ragged_rows{1 << 24, 256, {sizes, offset_format::sizes}}, 1, {to}),
                 "scratch.bytes");
  expect_refused(service.encode(base, tensors.source(), 40, {.where = {to}, .statuses = &one_status}), "statuses");
  expect_refused(service.reserve(0, to), "count");
  expect_refused(service.update(old, {which, 1}, no_rank, tensors.source(), {to}), "base.spec.rank");
  expect_refused(service.update(old, {nullptr, 1}, base, tensors.source(), {to}), "changed.indices");
  expect_refused(service.update(old, {which, 1}, base, patch_array{}, {to}), "source.patches");
  expect_refused(service.update(old, {which, 1}, base, tensors.source(), {.where = {to}, .statuses = &one_status}),
                 "statuses");
  const result<map_batch> of_rows = service.update(old, {which, 1}, rows, ragged_rows{}, {to});
  ASSERT_FALSE(of_rows.has_value());
  EXPECT_EQ(of_rows.error().code, status::unsupported);
  EXPECT_STREQ(of_rows.error().argument.c_str(), "source");
  encode_run of_peers{to};
  of_peers.choices.owners.ranks = which;
  expect_refused(service.encode(base, tensors.source(), 40, of_peers), "choices.owners.memory.ranks");
  expect_refused(service.update(old, {which, 1}, base, tensors.source(), of_peers), "choices.owners.memory.ranks");
  EXPECT_EQ(service.statistics().slots.captured, 0u);
  machine.streams.destroy_graph(machine.streams.end_capture(stream));
  EXPECT_TRUE(machine.streams.violations().empty());
}

TEST_F(service_capture, a_thread_that_captures_may_do_all_of_it) {
  const cudaStream_t captured = machine.streams.open_stream();
  const cudaStream_t one = machine.streams.open_stream();
  const cudaStream_t two = machine.streams.open_stream();
  tensor_list tensors{100};
  const std::uint32_t which[] = {3};
  machine.streams.begin_capture(captured);
  {
    map_service service = try_make({.capacity = 300, .max_capacity = 1000}).value();
    EXPECT_TRUE(encode(service, tensors, captured).has_value());
    map_batch batch = encode(service, tensors, one).value();
    EXPECT_TRUE(batch.use_on(stream_of(two)).has_value());
    map_batch updated = service.update(batch, {which, 1}, base, tensors.source(), {stream_of(two)}).value();
    EXPECT_TRUE(service.reserve(200, stream_of(one)).has_value()) << "by growing";
    EXPECT_TRUE(batch.release().has_value());
    EXPECT_EQ(service.statistics().batches, 4u);
  }
  EXPECT_NE(machine.streams.end_capture(captured), nullptr);
  EXPECT_THAT(machine.streams.violations(), ::testing::IsEmpty());
  EXPECT_EQ(machine.private_streams, 0);
}

/// Runs another thread's action just before the next event is recorded.
std::function<void()> before_record;

const service::service_calls& raced_calls() {
  static const pool::pool_calls pool = [] {
    pool::pool_calls calls = fake_streams::calls();
    calls.record_event = [](cudaEvent_t event, cudaStream_t stream) {
      if (before_record) std::exchange(before_record, {})();
      return fake_streams::calls().record_event(event, stream);
    };
    return calls;
  }();
  static const service::service_calls calls = [] {
    service::service_calls made = fake_machine::calls();
    made.pool = &pool;
    return made;
  }();
  return calls;
}

TEST_F(service_capture, a_release_beside_its_beginning_harms_neither_it_nor_the_service) {
  const cudaStream_t stream = machine.streams.open_stream();
  map_service service = service::create_service({.capacity = 64}, raced_calls()).value();
  map_batch batch = encode(service, tensor_list{64}, stream).value();
  before_record = [&] { machine.streams.begin_capture(stream); };
  EXPECT_TRUE(batch.release().has_value());
  const cudaGraph_t graph = machine.streams.end_capture(stream);
  EXPECT_NE(graph, nullptr) << "it is whole";
  machine.streams.destroy_graph(graph);
  EXPECT_TRUE(encode(service, tensor_list{64}, nullptr).has_value());
  EXPECT_TRUE(machine.streams.violations().empty());
}

TEST_F(service_capture, one_that_forbids_the_legacy_stream_does_not_end_the_service) {
  const cudaStream_t stream = machine.streams.open_stream();
  map_service service = service::create_service({.capacity = 64}, raced_calls()).value();
  map_batch batch = encode(service, tensor_list{64}, nullptr).value();
  before_record = [&] { machine.streams.begin_capture(stream); };
  EXPECT_TRUE(batch.release().has_value());
  EXPECT_EQ(machine.streams.end_capture(stream), nullptr) << "CUDA breaks it";
  EXPECT_TRUE(encode(service, tensor_list{64}, stream).has_value());
}

}  // namespace
}  // namespace tmap::testing
