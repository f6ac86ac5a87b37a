// SPDX-License-Identifier: Apache-2.0
// What a service and its batches do when nothing fails.
#include <thread>

#include "lib/pool/slab_layout.hpp"
#include "service/service_fixture.hpp"

namespace tmap::testing {
namespace {

using map_service_test = service_fixture;

TEST_F(map_service_test, encodes_an_array_of_patches_into_slots_of_its_own) {
  map_service service = make();
  const cudaStream_t stream = machine.streams.open_stream();
  const tensor_list first{7};
  const tensor_list second{33, std::uint64_t{1} << 30};
  const map_batch one = encode(service, first, stream).value();
  const map_batch two = encode(service, second, stream).value();
  EXPECT_EQ(wrong_maps(one, first), 0u);
  EXPECT_EQ(wrong_maps(two, second), 0u);
  EXPECT_EQ(one.size(), 7u);
  EXPECT_EQ(one.header(), nullptr);
  EXPECT_EQ(one.writer().slots, nullptr);
  EXPECT_EQ(one.ref().indices, nullptr);
  EXPECT_EQ(one.ref().records, nullptr);
  EXPECT_NE(one.ref().generation, 0u);
}

TEST_F(map_service_test, encodes_columns) {
  map_service service = make();
  const tensor_list tensors{5};
  std::vector<std::uint64_t> columns[4];
  for (const map_patch& patch : tensors.patches) {
    columns[0].push_back(patch.global_address);
    columns[1].push_back(patch.global_dim[0]);
    columns[2].push_back(patch.global_dim[1]);
    columns[3].push_back(patch.global_stride_bytes[0]);
  }
  const patch_columns source{columns[0].data(), {columns[1].data(), columns[2].data()}, {columns[3].data()}};
  const map_batch batch = service.encode(base, source, 5, stream_of(nullptr)).value();
  EXPECT_EQ(wrong_maps(batch, tensors), 0u);
}

template <class Offset>
void expect_ragged(map_service& service) {
  map_template base = rows_template();
  base.fields = patch_address | patch_dim(1);
  base.spec.global_dim[0] = 64;
  base.spec.global_stride_bytes[0] = 256;
  const std::vector<Offset> prefix{0, 3, 3, 10};
  const ragged_rows<Offset> source{1 << 24, 256, prefix.data(), offset_format::prefix, nullptr, 0};
  const map_batch batch = service.encode(base, source, 3, cuda::stream_ref{cudaStream_t{}}).value();
  map_patch patch{};
  patch.global_address = (1 << 24) + 3 * 256;
  patch.global_dim[1] = 7;
  EXPECT_EQ(*batch.ref().slot(2), map_of(base, patch));
  EXPECT_TRUE(batch.ref().status(1).is_empty());
}

TEST_F(map_service_test, encodes_ragged_rows) {
  map_service service = make();
  expect_ragged<std::int32_t>(service);
  expect_ragged<std::int64_t>(service);
}

TEST_F(map_service_test, says_which_maps_are_bad_and_counts_them) {
  map_service service = make();
  tensor_list tensors{10};
  tensors.patches[3].global_address = 8;
  tensors.patches[4].global_dim[0] = 0;
  tensors.patches[8].global_stride_bytes[0] = 24;
  const map_batch batch = encode(service, tensors, nullptr, {.header = true}).value();
  EXPECT_EQ(wrong_maps(batch, tensors), 0u);
  EXPECT_TRUE(batch.ref().status(3).rules().contains(rule::t06_address_multiple_of_16));
  EXPECT_TRUE(batch.ref().status(4).is_empty());
  ASSERT_NE(batch.header(), nullptr);
  EXPECT_EQ(batch.header()->bad_count, 2u);
  EXPECT_EQ(batch.header()->first_bad, 3u);
  EXPECT_EQ(batch.header()->empty_count, 1u);
  EXPECT_EQ(reinterpret_cast<const tensor_map*>(batch.header()) + 1, batch.ref().slot(0));
  const service_statistics statistics = service.statistics();
  EXPECT_EQ(statistics.bad_maps, 2u);
  EXPECT_EQ(statistics.empty_maps, 1u);
  EXPECT_EQ(statistics.slots.leased, 11u);
}

TEST_F(map_service_test, passes_windows_on) {
  map_service service = make();
  const tensor_list tensors{3};
  const address_window window{tensors.patches[0].global_address, tensors.patches[1].global_address};
  const map_batch batch = encode(service, tensors, nullptr, {.windows = &window, .window_count = 1}).value();
  EXPECT_TRUE(batch.ref().status(0).is_good());
  EXPECT_TRUE(batch.ref().status(1).rules().contains(rule::t38_address_window));
}

TEST_F(map_service_test, trusted_batches_have_no_statuses) {
  map_service service = make();
  tensor_list tensors{3};
  tensors.patches[1].global_address = 8;
  const map_batch batch = encode(service, tensors, nullptr, {.trusted = true}).value();
  EXPECT_EQ(batch.ref().statuses, nullptr);
  EXPECT_EQ(*batch.ref().slot(2), map_of(base, tensors.patches[2]));
  EXPECT_EQ(service.statistics().bad_maps, 0u);
}

TEST_F(map_service_test, reserves_slots_to_write) {
  map_service service = make();
  const map_batch batch = service.reserve(40, stream_of(nullptr)).value();
  const map_batch_writer writer = batch.writer();
  EXPECT_EQ(writer.count, 40u);
  EXPECT_EQ(writer.slots, batch.ref().slots);
  EXPECT_EQ(writer.statuses, batch.ref().statuses);
  EXPECT_EQ(writer.generation, batch.ref().generation);
  writer.statuses[39] = map_status{map_status::empty_bit};
  EXPECT_TRUE(batch.ref().status(39).is_empty());
  EXPECT_EQ(service.statistics().batches, 1u);
  EXPECT_EQ(service.statistics().encoded_maps, 0u);
}

TEST_F(map_service_test, counts_outside_the_contract_are_refused) {
  map_service service = make();
  const tensor_list tensors{1};
  for (const std::uint64_t count : {std::uint64_t{0}, max_batch + 1}) {
    const auto encoded = service.encode(base, tensors.source(), count, stream_of(nullptr));
    ASSERT_FALSE(encoded.has_value());
    EXPECT_EQ(encoded.error().code, status::invalid_argument);
    EXPECT_EQ(service.reserve(count, stream_of(nullptr)).error().code, status::invalid_argument);
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
  std::vector<tensor_map> memory(1000, tensor_map{{0xa5a5}});
  ASSERT_LE(service_memory_bytes(64), 999 * sizeof(tensor_map));
  auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  address = (address + 255) / 256 * 256;
  void* const aligned = reinterpret_cast<void*>(address);
  {
    map_service service =
        try_make({.capacity = 64, .max_capacity = 128, .memory = aligned, .memory_bytes = service_memory_bytes(64)})
            .value();
    const map_batch batch = encode(service, tensor_list{64}, nullptr).value();
    EXPECT_EQ(batch.ref().slots, aligned);
    EXPECT_EQ(machine.streams.live_allocations(), 0u);
    EXPECT_EQ(encode(service, tensor_list{1}, nullptr).error().code, status::pool_exhausted);
  }
  EXPECT_EQ(memory.back().words[0], 0xa5a5u);
  EXPECT_TRUE(machine.is_clean());
}

TEST_F(map_service_test, options_outside_the_contract_are_refused) {
  void* const misaligned = reinterpret_cast<void*>(std::uintptr_t{4096 + 128});
  void* const aligned = reinterpret_cast<void*>(std::uintptr_t{4096});
  const std::uint64_t bytes = service_memory_bytes(8);
  for (const service_options& options :
       {service_options{.capacity = 0}, service_options{.capacity = max_batch + 1},
        service_options{.capacity = 8, .max_capacity = 7},
        service_options{.capacity = 8, .memory = misaligned, .memory_bytes = bytes},
        service_options{.capacity = 8, .memory = aligned, .memory_bytes = bytes - 1}}) {
    const auto refused = try_make(options);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, status::invalid_argument);
  }
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
  EXPECT_EQ(to_json(now),
            R"({"slots":{"capacity":64,"free":0,"leased":64,"pending":0,"captured":0},)"
            R"("peak_leased":64,"batches":2,"encoded_maps":104,"bad_maps":0,"empty_maps":0,"exhausted_calls":1,)"
            R"("cross_stream_reuses":1,"device_bytes":)" +
                std::to_string(service_memory_bytes(64)) + R"(,"hazards":0})");
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
  EXPECT_EQ(batch.use_on(stream_of(two)).error().code, status::invalid_argument);
}

}  // namespace
}  // namespace tmap::testing
