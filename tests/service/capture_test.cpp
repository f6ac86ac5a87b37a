// SPDX-License-Identifier: Apache-2.0
// Services, their graphs, and threads that capture.
#include <gmock/gmock.h>

#include <optional>

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
  EXPECT_EQ(machine.host_blocks(), checks_hazards ? 1u : 0u) << "where kernels of the graph may report";
  machine.streams.destroy_graph(graph);
  EXPECT_TRUE(machine.streams.violations().empty());
  EXPECT_EQ(machine.streams.live_allocations(), 1u);
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
    map_batch updated = service.update(batch, {which, 1}, base, tensors.source(), stream_of(two)).value();
    EXPECT_TRUE(service.reserve(200, stream_of(one)).has_value()) << "by growing";
    EXPECT_TRUE(batch.release().has_value());
    EXPECT_EQ(service.statistics().batches, 4u);
  }
  EXPECT_NE(machine.streams.end_capture(captured), nullptr);
  EXPECT_THAT(machine.streams.violations(), ::testing::IsEmpty());
  EXPECT_EQ(machine.private_streams, 0);
}

}  // namespace
}  // namespace tmap::testing
