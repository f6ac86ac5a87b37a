// SPDX-License-Identifier: Apache-2.0
// Tests the batches that a service encodes and reserves.
#include "service/service_fixture.hpp"

namespace tmap::testing {
namespace {

using service_encode = service_fixture;

TEST_F(service_encode, encodes_an_array_of_patches_into_slots_of_its_own) {
  map_service service = make();
  const cudaStream_t stream = machine.streams.open_stream();
  const tensor_list first{7};
  const tensor_list second{33, std::uint64_t{1} << 30};
  const map_batch one = encode(service, first, stream).value();
  const map_batch two = encode(service, second, stream).value();
  EXPECT_EQ(wrong_maps(one, first), 0u);
  EXPECT_EQ(wrong_maps(two, second), 0u);
  EXPECT_EQ(one.size(), 7u);
  EXPECT_EQ(one.writer().slots, nullptr);
  EXPECT_EQ(one.ref().indices, nullptr);
  EXPECT_NE(one.ref().generation, 0u);
}

TEST_F(service_encode, encodes_columns) {
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
  const map_batch batch = service.encode(base, source, 5, {stream_of(nullptr)}).value();
  EXPECT_EQ(wrong_maps(batch, tensors), 0u);
}

TEST_F(service_encode, encodes_compact_columns) {
  map_service service = make();
  const tensor_list tensors{5};
  std::vector<std::uint32_t> columns[4];
  for (const map_patch& patch : tensors.patches) {
    columns[0].push_back(static_cast<std::uint32_t>((patch.global_address - 4096) / 16));
    columns[1].push_back(static_cast<std::uint32_t>(patch.global_dim[0]));
    columns[2].push_back(static_cast<std::uint32_t>(patch.global_dim[1]));
    columns[3].push_back(static_cast<std::uint32_t>(patch.global_stride_bytes[0] / 16));
  }
  const compact_columns source{4096, columns[0].data(), {columns[1].data(), columns[2].data()}, {columns[3].data()}};
  const map_batch batch = service.encode(base, source, 5, {stream_of(nullptr)}).value();
  EXPECT_EQ(wrong_maps(batch, tensors), 0u);
  const std::uint32_t which[] = {4, 2};
  const map_batch updated = service.update(batch, {which, 2}, base, source, {stream_of(nullptr)}).value();
  EXPECT_EQ(wrong_maps(updated, tensors), 0u);
}

/// Expects that every slot of the batch is published, for its generation or an older one.
void expect_published(const map_batch& batch) {
  const map_batch_ref ref = batch.ref();
  ASSERT_EQ(ref.records != nullptr, checks_hazards);
  for (std::uint32_t i = 0; checks_hazards && i < ref.count; ++i) {
    const slot_record& record = ref.records[ref.slot_index(i)];
    EXPECT_LE(record.generation, ref.generation);
    EXPECT_EQ(record.edition, edition_published);
    EXPECT_NE(record.log, nullptr);
  }
}

TEST_F(service_encode, records_are_kept_where_hazards_are_checked) {
  map_service service = make();
  const tensor_list tensors{100};
  batch_header header;
  const map_batch batch = encode(service, tensors, {.where = {cudaStream_t{}}, .header = &header}).value();
  expect_published(batch);
  const std::vector<std::uint32_t> which(60, 1);
  expect_published(service.update(batch, {which.data(), 2}, base, tensors.source(), {stream_of(nullptr)}).value());
  expect_published(service.update(batch, {which.data(), 60}, base, tensors.source(), {stream_of(nullptr)}).value());
  const map_batch reserved = service.reserve(10, stream_of(nullptr)).value();
  EXPECT_EQ(reserved.writer().records, reserved.ref().records);
  for (std::uint32_t i = 0; checks_hazards && i < 10; ++i) EXPECT_EQ(reserved.ref().records[i].edition, 0u);
}

TEST_F(service_encode, records_of_slots_that_were_never_lent_know_the_log) {
  map_service service = try_make({.capacity = 50, .max_capacity = 150}).value();
  const map_batch first = encode(service, tensor_list{30}, nullptr).value();
  const map_batch grown = encode(service, tensor_list{30}, nullptr).value();
  for (const map_batch* const batch : {&first, &grown}) {
    const slot_record* const records = batch->ref().records;
    ASSERT_EQ(records != nullptr, checks_hazards);
    for (std::uint32_t i = 30; checks_hazards && i < 50; ++i) {
      EXPECT_EQ(records[i].generation, 0u);
      EXPECT_NE(records[i].log, nullptr);
      EXPECT_EQ(records[i].log, records[0].log);
    }
  }
}

template <class Offset>
void expect_ragged(map_service& service) {
  map_template base = rows_template();
  base.fields = patch_address | patch_dim(1);
  base.spec.global_dim[0] = 64;
  base.spec.global_stride_bytes[0] = 256;
  const std::vector<Offset> prefix{0, 3, 3, 10};
  const ragged_rows source{1 << 24, 256, {prefix.data(), offset_format::prefix, sizeof(Offset)}};
  const map_batch batch = service.encode(base, source, 3, {cudaStream_t{}}).value();
  map_patch patch{};
  patch.global_address = (1 << 24) + 3 * 256;
  patch.global_dim[1] = 7;
  EXPECT_EQ(*batch.ref().slot(2), map_of(base, patch));
  EXPECT_TRUE(batch.ref().status(1).is_empty());
}

TEST_F(service_encode, encodes_ragged_rows) {
  map_service service = make();
  expect_ragged<std::int32_t>(service);
  expect_ragged<std::int64_t>(service);
}

TEST_F(service_encode, says_which_maps_are_bad_and_counts_them) {
  map_service service = make();
  tensor_list tensors{10};
  tensors.patches[3].global_address = 8;
  tensors.patches[4].global_dim[0] = 0;
  tensors.patches[8].global_stride_bytes[0] = 24;
  batch_header header;
  const map_batch batch = encode(service, tensors, {.where = {cudaStream_t{}}, .header = &header}).value();
  EXPECT_EQ(wrong_maps(batch, tensors), 0u);
  EXPECT_TRUE(rules_of(batch.ref().status(3)).contains(rule::t06_address_multiple_of_16));
  EXPECT_TRUE(batch.ref().status(4).is_empty());
  EXPECT_EQ(header.bad_count, 2u);
  EXPECT_EQ(header.first_bad, 3u);
  EXPECT_EQ(header.empty_count, 1u);
  const service_statistics statistics = service.statistics();
  EXPECT_EQ(statistics.bad_maps, 2u);
  EXPECT_EQ(statistics.empty_maps, 1u);
  EXPECT_EQ(statistics.slots.leased, 10u);
}

TEST_F(service_encode, passes_windows_on) {
  map_service service = make();
  const tensor_list tensors{3};
  const address_window window{tensors.patches[0].global_address, tensors.patches[1].global_address};
  const map_batch batch = encode(service, tensors, {.where = {cudaStream_t{}}, .windows = {&window, 1}}).value();
  EXPECT_TRUE(batch.ref().status(0).is_good());
  EXPECT_TRUE(rules_of(batch.ref().status(1)).contains(rule::t38_address_window));
}

TEST_F(service_encode, trusted_batches_have_no_statuses) {
  map_service service = make();
  tensor_list tensors{3};
  tensors.patches[1].global_address = 8;
  const map_batch batch = encode(service, tensors, {.where = {cudaStream_t{}}, .choices = {.trusted = true}}).value();
  EXPECT_EQ(batch.ref().statuses, nullptr);
  EXPECT_EQ(*batch.ref().slot(2), map_of(base, tensors.patches[2]));
  EXPECT_EQ(service.statistics().bad_maps, 0u);
}

TEST_F(service_encode, makes_no_more_calls_than_it_must) {
  map_service service = make();
  const cudaStream_t stream = machine.streams.open_stream();
  const tensor_list tensors{100};
  for (int round = 0; round < 5; ++round) ASSERT_TRUE(encode(service, tensors, stream).has_value());
  const auto calls = [&](pool_call call) { return machine.streams.calls_made(call); };
  const std::uint64_t of_pool = machine.streams.calls_made();
  const std::uint64_t of_service = machine.calls_made();
  const std::uint64_t captures = calls(pool_call::capture_id);
  const std::uint64_t ids = calls(pool_call::stream_id);
  const std::uint64_t records = calls(pool_call::record_event);
  ASSERT_TRUE(encode(service, tensors, stream).value().release().has_value());
  const std::uint64_t more = checks_hazards ? 2 : 0;  // to open and to publish
  EXPECT_EQ(machine.calls_made() - of_service, 3u + more) << "the context, the encode, and the context at the release";
  EXPECT_EQ(machine.streams.calls_made() - of_pool, 5u);
  EXPECT_EQ(calls(pool_call::capture_id) - captures, 3u) << "at the encode, and around the event of the release";
  EXPECT_EQ(calls(pool_call::stream_id) - ids, 1u);
  EXPECT_EQ(calls(pool_call::record_event) - records, 1u);
}

TEST_F(service_encode, reserves_slots_to_write) {
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

}  // namespace
}  // namespace tmap::testing
