// SPDX-License-Identifier: Apache-2.0
// Tests a service's capacity, memory and statistics.
#include <algorithm>

#include "service/service_fixture.hpp"

namespace tmap::testing {
namespace {

using map_service_test = service_fixture;

TEST_F(map_service_test, counts_outside_the_contract_are_refused) {
  map_service service = make();
  const tensor_list tensors{1};
  for (const std::uint64_t count : {std::uint64_t{0}, max_batch + 1}) {
    const auto encoded = service.encode(base, tensors.source(), count, {stream_of(nullptr)});
    expect_refused(encoded, "count", "encode");
    expect_refused(service.reserve(count, stream_of(nullptr)), "count", "reserve");
  }
  EXPECT_EQ(service.statistics().slots.free, 256u);
}

TEST_F(map_service_test, a_full_pool_says_where_its_slots_are) {
  map_service service = make(8);
  const map_batch batch = encode(service, tensor_list{6}, nullptr).value();
  for (int call = 1; call <= 5; ++call) {
    const auto refused = encode(service, tensor_list{3}, nullptr);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, status::pool_exhausted);
    EXPECT_EQ(refused.error().found, 3u);
    EXPECT_EQ(refused.error().slots.leased, 6u);
    EXPECT_EQ(refused.error().slots.free, 2u);
  }
  EXPECT_EQ(service.statistics().exhausted_calls, 5u);
  EXPECT_EQ(log.count(log_level::warning), 3u);  // calls 1, 2 and 4
}

TEST_F(map_service_test, grows_as_far_as_it_may) {
  map_service service = try_make({.capacity = 8, .max_capacity = 32}).value();
  const std::uint64_t bytes = service.statistics().device_bytes;
  const map_batch one = encode(service, tensor_list{6}, nullptr).value();
  EXPECT_FALSE(log.has(log_level::debug, "grown"));
  const map_batch two = encode(service, tensor_list{8}, nullptr).value();
  EXPECT_EQ(wrong_maps(two, tensor_list{8}), 0u);
  EXPECT_TRUE(log.has(log_level::debug, "grown"));
  EXPECT_GT(service.statistics().device_bytes, bytes);
  EXPECT_EQ(encode(service, tensor_list{32}, nullptr).error().code, status::pool_exhausted);
}

TEST_F(map_service_test, works_in_memory_of_the_caller_and_leaves_it) {
  constexpr std::size_t canaries = 4096;
  constexpr unsigned char poison = 0xa5;
  const std::uint64_t bytes = service_memory_bytes(64);
  std::vector<unsigned char> memory(bytes + canaries, poison);
  const auto address = (reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256;
  auto* const aligned = reinterpret_cast<unsigned char*>(address);
  tensor_list tensors{64};
  tensors.patches[5].global_address = 8;
  {
    map_service service =
        try_make({.capacity = 64, .max_capacity = 128, .memory = aligned, .memory_bytes = bytes}).value();
    const map_batch batch = encode(service, tensors, nullptr).value();
    EXPECT_EQ(reinterpret_cast<const unsigned char*>(batch.ref().slots), aligned);
    EXPECT_EQ(service.statistics().bad_maps, 1u);
    EXPECT_EQ(service.statistics().device_bytes, bytes);
    EXPECT_EQ(machine.streams.live_allocations(), 0u);
    EXPECT_EQ(encode(service, tensor_list{1}, nullptr).error().code, status::pool_exhausted);
  }
  EXPECT_EQ(std::count(aligned + bytes, memory.data() + memory.size(), poison),
            memory.data() + memory.size() - (aligned + bytes));
  EXPECT_TRUE(machine.is_clean());
}

TEST_F(map_service_test, options_outside_the_contract_are_refused) {
  void* const misaligned = reinterpret_cast<void*>(std::uintptr_t{4096 + 128});
  void* const aligned = reinterpret_cast<void*>(std::uintptr_t{4096});
  const std::uint64_t bytes = service_memory_bytes(8);
  expect_refused(try_make({.capacity = 0}), "options.capacity", 0, 1, "none");
  expect_refused(try_make({.capacity = max_batch + 1}), "options.capacity", max_batch + 1, max_batch, "too many");
  expect_refused(try_make({.capacity = 8, .max_capacity = 7}), "options.max_capacity", 7, 8, "less than at first");
  expect_refused(try_make({.capacity = 8, .memory = misaligned, .memory_bytes = bytes}), "options.memory");
  expect_refused(try_make({.capacity = 8, .memory = aligned, .memory_bytes = bytes - 1}), "options.memory_bytes",
                 bytes - 1, bytes, "a byte less");
  EXPECT_TRUE(machine.is_clean());
}

TEST_F(map_service_test, statistics_are_exact_and_print_as_json) {
  map_service service = make(64);
  const cudaStream_t one = machine.streams.open_stream();
  const cudaStream_t two = machine.streams.open_stream();
  map_batch first = encode(service, tensor_list{40}, one).value();
  ASSERT_TRUE(first.release().has_value());
  EXPECT_EQ(service.statistics().slots.pending, 40u);
  const map_batch second = encode(service, tensor_list{64}, two).value();
  ASSERT_FALSE(encode(service, tensor_list{1}, two).has_value());
  const service_statistics now = service.statistics();
  expect_sum(now.slots);
  EXPECT_EQ(to_json(now), R"({"slots":{"capacity":64,"free":0,"leased":64,"pending":0,"captured":0},)"
                          R"("peak_leased":64,"batches":2,"encoded_maps":104,)"
                          R"("bad_maps":0,"empty_maps":0,"exhausted_calls":1,)"
                          R"("cross_stream_reuses":1,"device_bytes":)" +
                              std::to_string(service_memory_bytes(64)) + R"(,"hazards":0})");
}

TEST_F(map_service_test, every_number_prints_under_its_name) {
  service_statistics all{};
  all.slots = {.capacity = 1, .free = 2, .leased = 3, .pending = 4, .captured = 5};
  all.peak_leased = 6;
  all.batches = 7;
  all.encoded_maps = 8;
  all.bad_maps = 9;
  all.empty_maps = 10;
  all.exhausted_calls = 11;
  all.cross_stream_reuses = 12;
  all.device_bytes = 13;
  all.hazards = 14;
  EXPECT_EQ(to_json(all), R"({"slots":{"capacity":1,"free":2,"leased":3,"pending":4,"captured":5},)"
                          R"("peak_leased":6,"batches":7,"encoded_maps":8,)"
                          R"("bad_maps":9,"empty_maps":10,"exhausted_calls":11,)"
                          R"("cross_stream_reuses":12,"device_bytes":13,"hazards":14})");
}

/// Reads the statistics again while the n-th call of the service's table fails, or of the pool's if
/// `in_pool`.
service_statistics look_with_a_failure(fake_machine& machine, map_service& service, bool in_pool, std::uint64_t n,
                                       cudaError_t code) {
  if (in_pool) machine.streams.fail_call(n, code);
  if (!in_pool) machine.fail_call(n, code);
  const service_statistics seen = service.statistics();
  machine.streams.fail_call(0, cudaSuccess);
  machine.fail_call(0, cudaSuccess);
  return seen;
}

TEST_F(map_service_test, statistics_that_cannot_be_asked_are_the_last_known) {
  tensor_list tensors{10};
  tensors.patches[3].global_address = 8;
  tensors.patches[4].global_dim[0] = 0;
  for (const bool in_pool : {false, true}) {
    for (std::uint64_t n = 1; n <= 4; ++n) {
      for (const cudaError_t code : {cudaErrorLaunchOutOfResources, cudaErrorIllegalAddress}) {
        map_service service = make(64);
        const map_batch first = encode(service, tensors, nullptr).value();
        ASSERT_EQ(service.statistics().bad_maps, 1u);
        const map_batch second = encode(service, tensors, nullptr).value();
        const service_statistics seen = look_with_a_failure(machine, service, in_pool, n, code);
        EXPECT_TRUE(seen.bad_maps == 1 || seen.bad_maps == 2) << seen.bad_maps;
        EXPECT_EQ(seen.empty_maps, seen.bad_maps);
        EXPECT_EQ(seen.batches, 2u);
        const bool is_dead = !encode(service, tensors, nullptr).has_value();
        EXPECT_EQ(service.statistics().bad_maps, is_dead ? 1u : 3u) << in_pool << n;
      }
    }
  }
}

TEST_F(map_service_test, statistics_that_find_the_context_broken_ask_no_more) {
  map_service service = make(64);
  ASSERT_TRUE(encode(service, tensor_list{10}, nullptr).value().release().has_value());
  ASSERT_EQ(service.statistics().slots.pending, 10u);
  const std::uint64_t queries = machine.streams.calls_made(pool_call::query_event);
  machine.fail_call(2, cudaErrorIllegalAddress);  // the copy of the totals
  EXPECT_EQ(service.statistics().slots.pending, 10u) << "as of the previous read";
  EXPECT_EQ(machine.streams.calls_made(pool_call::query_event), queries);
  EXPECT_EQ(encode(service, tensor_list{1}, nullptr).error().code, status::service_dead);
}

TEST_F(map_service_test, release_and_use_on_do_nothing_twice) {
  map_service service = make(64);
  const cudaStream_t one = machine.streams.open_stream();
  const cudaStream_t two = machine.streams.open_stream();
  map_batch batch = encode(service, tensor_list{4}, one).value();
  ASSERT_TRUE(batch.use_on(stream_of(two)).has_value());
  const std::uint64_t waits = machine.streams.calls_made(pool_call::wait_event);
  EXPECT_EQ(waits, 1u);
  ASSERT_TRUE(batch.use_on(stream_of(two)).has_value());
  EXPECT_EQ(machine.streams.calls_made(pool_call::wait_event), waits);
  ASSERT_TRUE(batch.release().has_value());
  EXPECT_FALSE(batch);
  EXPECT_EQ(batch.size(), 0u);
  EXPECT_EQ(batch.ref().slots, nullptr);
  EXPECT_TRUE(batch.release().has_value());
  expect_refused(batch.use_on(stream_of(two)), "map_batch", "after its release");
}

}  // namespace
}  // namespace tmap::testing
