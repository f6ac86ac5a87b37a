// SPDX-License-Identifier: Apache-2.0
// Tests services, batches and templates of C over the fake machine.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>
#include <tmap/encode.hpp>

#include "interop/c_service_fixture.hpp"
#include "interop/sized.hpp"

namespace tmap::testing {
namespace {

using ::testing::HasSubstr;
using c_service = c_service_fixture;

TEST_F(c_service, encodes_lends_and_takes_back) {
  const tmap_service service = make_c();
  const tensor_list tensors{50};
  const tmap_patch_source source = source_of(tensors);
  alignas(16) tmap_batch_header header{7, 7, 7, 0};
  tmap_call call = sized<tmap_call>();
  call.header = &header;
  tmap_batch batch{};
  ASSERT_EQ(tmap_service_encode(service, c_base, &source, 50, &batch, &call), TMAP_OK);
  EXPECT_EQ(wrong_maps(batch, base, tensors.patches), 0u);
  EXPECT_EQ(header.bad_count, 0u);
  EXPECT_EQ(header.first_bad, no_bad_item);
  EXPECT_EQ(header.empty_count, 0u);
  const tmap_batch_info info = info_of(batch);
  EXPECT_EQ(info.writer.slots, nullptr);
  EXPECT_THAT(statistics_of(service), HasSubstr("\"encoded_maps\":50"));
  EXPECT_THAT(statistics_of(service), HasSubstr("\"leased\":50"));
  EXPECT_EQ(tmap_batch_release(batch), TMAP_OK);
  EXPECT_EQ(tmap_batch_release(batch), TMAP_INVALID_HANDLE);
  EXPECT_THAT(statistics_of(service), HasSubstr("\"leased\":0"));
  EXPECT_EQ(tmap_service_destroy(service), TMAP_OK);
  machine.streams.run_all();
  EXPECT_TRUE(machine.is_clean());
}

TEST_F(c_service, bad_and_empty_maps_have_their_statuses) {
  const tmap_service service = make_c();
  tensor_list tensors{3};
  tensors.patches[1].global_address = 8;
  tensors.patches[2].global_dim[1] = 0;
  const tmap_patch_source source = source_of(tensors);
  tmap_batch batch{};
  alignas(16) tmap_batch_header header{};
  tmap_call call = sized<tmap_call>();
  call.header = &header;
  ASSERT_EQ(tmap_service_encode(service, c_base, &source, 3, &batch, &call), TMAP_OK);
  EXPECT_EQ(header.bad_count, 1u);
  EXPECT_EQ(header.first_bad, 1u);
  EXPECT_EQ(header.empty_count, 1u);
  const tmap_batch_info info = info_of(batch);
  EXPECT_EQ(info.ref.statuses[0], 0u);
  EXPECT_NE(info.ref.statuses[1] >> static_cast<int>(rule::t06_address_multiple_of_16) & 1, 0u);
  EXPECT_EQ(info.ref.statuses[2], TMAP_EMPTY_MAP);
  EXPECT_EQ(tmap_batch_release(batch), TMAP_OK);
  EXPECT_EQ(tmap_service_destroy(service), TMAP_OK);
}

TEST_F(c_service, columns_and_compact_columns) {
  const tmap_service service = make_c();
  const tensor_list tensors{20};
  std::vector<std::uint64_t> address, dims[2], stride;
  std::vector<std::uint32_t> units, dims_32[2], stride_units;
  for (const map_patch& patch : tensors.patches) {
    address.push_back(patch.global_address);
    stride.push_back(patch.global_stride_bytes[0]);
    units.push_back(static_cast<std::uint32_t>((patch.global_address - 4096) / 16));
    stride_units.push_back(static_cast<std::uint32_t>(patch.global_stride_bytes[0] / 16));
    for (int axis = 0; axis < 2; ++axis) {
      dims[axis].push_back(patch.global_dim[axis]);
      dims_32[axis].push_back(static_cast<std::uint32_t>(patch.global_dim[axis]));
    }
  }
  tmap_patch_source columns{sizeof columns, TMAP_SOURCE_COLUMNS, {}};
  columns.of.columns = {address.data(), {dims[0].data(), dims[1].data()}, {stride.data()}};
  tmap_patch_source compact{sizeof compact, TMAP_SOURCE_COMPACT, {}};
  compact.of.compact = {4096, units.data(), {dims_32[0].data(), dims_32[1].data()}, {stride_units.data()}};
  for (const tmap_patch_source* source : {&columns, &compact}) {
    tmap_batch batch{};
    ASSERT_EQ(tmap_service_encode(service, c_base, source, 20, &batch, nullptr), TMAP_OK);
    EXPECT_EQ(wrong_maps(batch, base, tensors.patches), 0u);
    EXPECT_EQ(tmap_batch_release(batch), TMAP_OK);
  }
  EXPECT_EQ(tmap_service_destroy(service), TMAP_OK);
}

/// Returns patches of rows of 256 bytes in one buffer. Patch i has `sizes[i]` rows.
std::vector<map_patch> rows_patches(const std::vector<std::int64_t>& sizes) {
  std::vector<map_patch> patches;
  std::uint64_t begin = 0;
  for (const std::int64_t rows : sizes) {
    map_patch patch{};
    patch.global_address = (1 << 24) + begin * 256;
    patch.global_dim[1] = static_cast<std::uint64_t>(rows);
    patches.push_back(patch);
    begin += static_cast<std::uint64_t>(rows);
  }
  return patches;
}

template <class Offset>
void expect_rows(tmap_patch_source source, const std::vector<Offset>& offsets, std::uint32_t format,
                 const std::function<void(const tmap_patch_source&)>& check) {
  source.of.rows.offsets = {offsets.data(), format, sizeof(Offset), nullptr, 0};
  check(source);
}

TEST_F(c_service, ragged_rows_in_each_offset_format) {
  const tmap_service service = make_c();
  const map_template rows_base = codec_template(rows_spec(), patch_address | patch_dim(1)).value();
  const tmap_template c_rows_base = make_template(rows_base);
  const std::vector<map_patch> patches = rows_patches({3, 0, 5});
  tmap_patch_source source{sizeof source, TMAP_SOURCE_ROWS, {}};
  alignas(256) unsigned char sums[1 << 14];
  const tmap_call call = call_in(sums, sizeof sums);
  source.of.rows = {1 << 24, 256, {}, 0, 0, 0};
  const auto check = [&](const tmap_patch_source& from) {
    tmap_batch batch{};
    ASSERT_EQ(tmap_service_encode(service, c_rows_base, &from, 3, &batch, &call), TMAP_OK);
    EXPECT_EQ(wrong_maps(batch, rows_base, patches), 0u);
    tmap_batch updated{9};
    EXPECT_EQ(tmap_service_update(service, batch, nullptr, 0, c_rows_base, &from, &updated, &call), TMAP_UNSUPPORTED);
    EXPECT_EQ(updated.value, 9u);
    EXPECT_EQ(tmap_batch_release(batch), TMAP_OK);
  };
  expect_rows<std::int32_t>(source, {3, 3, 8}, TMAP_OFFSETS_ENDS, check);
  expect_rows<std::int64_t>(source, {3, 3, 8}, TMAP_OFFSETS_ENDS, check);
  expect_rows<std::int32_t>(source, {0, 3, 3, 8}, TMAP_OFFSETS_PREFIX, check);
  expect_rows<std::int64_t>(source, {0, 3, 3, 8}, TMAP_OFFSETS_PREFIX, check);
  expect_rows<std::int32_t>(source, {3, 0, 5}, TMAP_OFFSETS_SIZES, check);
  expect_rows<std::int64_t>(source, {3, 0, 5}, TMAP_OFFSETS_SIZES, check);
  EXPECT_EQ(tmap_template_destroy(c_rows_base), TMAP_OK);
  EXPECT_EQ(tmap_service_destroy(service), TMAP_OK);
}

TEST_F(c_service, update_changes_what_it_names) {
  const tmap_service service = make_c();
  tensor_list tensors{40};
  tmap_patch_source source = source_of(tensors);
  tmap_batch first{};
  ASSERT_EQ(tmap_service_encode(service, c_base, &source, 40, &first, nullptr), TMAP_OK);
  const std::vector<map_patch> before = tensors.patches;
  for (map_patch& patch : tensors.patches) patch.global_address += 1 << 20;
  const std::uint32_t changed[] = {7, 31};
  tmap_batch second{};
  ASSERT_EQ(tmap_service_update(service, first, changed, 2, c_base, &source, &second, nullptr), TMAP_OK);
  std::vector<map_patch> expected = before;
  for (const std::uint32_t i : changed) expected[i] = tensors.patches[i];
  EXPECT_EQ(wrong_maps(first, base, before), 0u);
  EXPECT_EQ(tmap_batch_release(first), TMAP_OK);
  EXPECT_EQ(wrong_maps(second, base, expected), 0u);
  EXPECT_EQ(tmap_service_update(service, first, changed, 2, c_base, &source, &second, nullptr), TMAP_INVALID_HANDLE);
  EXPECT_EQ(tmap_batch_release(second), TMAP_OK);
  EXPECT_EQ(tmap_service_destroy(service), TMAP_OK);
}

TEST_F(c_service, reserved_batches_have_a_writer) {
  const tmap_service service = make_c();
  tmap_batch batch{};
  ASSERT_EQ(tmap_service_reserve(service, 12, &batch, nullptr), TMAP_OK);
  const tmap_batch_info info = info_of(batch);
  EXPECT_EQ(info.writer.slots, info.ref.slots);
  EXPECT_EQ(info.writer.count, 12u);
  EXPECT_NE(info.writer.statuses, nullptr);
  EXPECT_EQ(tmap_batch_release(batch), TMAP_OK);
  EXPECT_EQ(tmap_service_destroy(service), TMAP_OK);
}

TEST_F(c_service, handles_tell_their_kinds_apart) {
  const tmap_service service = make_c();
  tmap_batch batch{};
  ASSERT_EQ(tmap_service_reserve(service, 1, &batch, nullptr), TMAP_OK);
  EXPECT_NE(batch.value >> 60, service.value >> 60);
  EXPECT_NE(batch.value >> 60, c_base.value >> 60);
  EXPECT_NE(service.value >> 60, c_base.value >> 60);
  EXPECT_EQ(tmap_batch_release(batch), TMAP_OK);
  EXPECT_EQ(tmap_service_destroy(service), TMAP_OK);
}

TEST_F(c_service, other_streams_wait_by_use_on) {
  const tmap_service service = make_c();
  const tensor_list tensors{4};
  const tmap_patch_source source = source_of(tensors);
  const cudaStream_t home = machine.streams.open_stream();
  const cudaStream_t other = machine.streams.open_stream();
  const tmap_call on_home = call_on(home);
  tmap_batch batch{};
  ASSERT_EQ(tmap_service_encode(service, c_base, &source, 4, &batch, &on_home), TMAP_OK);
  ASSERT_EQ(tmap_batch_use_on(batch, other), TMAP_OK);
  EXPECT_GT(machine.streams.calls_made(pool_call::wait_event), 0u);
  EXPECT_EQ(tmap_batch_release(batch), TMAP_OK);
  EXPECT_EQ(tmap_batch_use_on(batch, other), TMAP_INVALID_HANDLE);
  EXPECT_EQ(tmap_service_destroy(service), TMAP_OK);
}

TEST_F(c_service, a_full_pool_tells_its_counts) {
  const tmap_service service = make_c(8);
  const tensor_list tensors{9};
  const tmap_patch_source source = source_of(tensors);
  tmap_batch batch{3};
  ASSERT_EQ(tmap_service_encode(service, c_base, &source, 9, &batch, nullptr), TMAP_POOL_EXHAUSTED);
  EXPECT_EQ(batch.value, 3u);
  tmap_error last{};
  last.struct_size = sizeof last;
  ASSERT_EQ(tmap_last_error(&last), TMAP_OK);
  EXPECT_EQ(last.found, 9u);
  EXPECT_EQ(last.slots.capacity, 8u);
  EXPECT_EQ(last.slots.free, 8u);
  EXPECT_EQ(tmap_service_destroy(service), TMAP_OK);
}

TEST_F(c_service, a_call_that_fails_keeps_no_handle) {
  const tmap_service service = make_c(8);
  const tensor_list few{3};
  const tensor_list many{9};
  const tmap_patch_source source = source_of(few);
  const tmap_patch_source too_large = source_of(many);
  const auto place_of_next = [&] {
    tmap_batch batch{};
    EXPECT_EQ(tmap_service_encode(service, c_base, &source, 3, &batch, nullptr), TMAP_OK);
    EXPECT_EQ(tmap_batch_release(batch), TMAP_OK);
    return batch.value >> 32;
  };
  const std::uint64_t place = place_of_next();
  tmap_batch batch{};
  EXPECT_EQ(tmap_service_encode(service, c_base, &too_large, 9, &batch, nullptr), TMAP_POOL_EXHAUSTED);
  EXPECT_EQ(tmap_service_reserve(service, 9, &batch, nullptr), TMAP_POOL_EXHAUSTED);
  EXPECT_EQ(place_of_next(), place);
  EXPECT_EQ(tmap_service_destroy(service), TMAP_OK);
}

TEST_F(c_service, a_pool_tells_what_is_pending) {
  const tmap_service service = make_c(8);
  const tensor_list few{3};
  const tensor_list many{9};
  const tmap_patch_source source = source_of(few);
  const tmap_patch_source too_many = source_of(many);
  tmap_batch batch{};
  ASSERT_EQ(tmap_service_encode(service, c_base, &source, 3, &batch, nullptr), TMAP_OK);
  ASSERT_EQ(tmap_batch_release(batch), TMAP_OK);
  ASSERT_EQ(tmap_service_encode(service, c_base, &too_many, 9, &batch, nullptr), TMAP_POOL_EXHAUSTED);
  tmap_error last{};
  last.struct_size = sizeof last;
  ASSERT_EQ(tmap_last_error(&last), TMAP_OK);
  EXPECT_EQ(last.slots.free, 5u);
  EXPECT_EQ(last.slots.leased, 0u);
  EXPECT_EQ(last.slots.pending, 3u);
  EXPECT_EQ(last.slots.captured, 0u);
  EXPECT_EQ(tmap_service_destroy(service), TMAP_OK);
}

TEST_F(c_service, batches_outlive_their_service) {
  const tmap_service service = make_c();
  const tensor_list tensors{4};
  const tmap_patch_source source = source_of(tensors);
  tmap_batch batch{};
  ASSERT_EQ(tmap_service_encode(service, c_base, &source, 4, &batch, nullptr), TMAP_OK);
  EXPECT_EQ(tmap_service_destroy(service), TMAP_OK);
  EXPECT_FALSE(machine.is_clean());
  EXPECT_EQ(wrong_maps(batch, base, tensors.patches), 0u);
  EXPECT_EQ(tmap_batch_release(batch), TMAP_OK);
  EXPECT_TRUE(machine.is_clean());
}

TEST_F(c_service, in_another_context_a_batch_stays) {
  const tmap_service service = make_c();
  const tensor_list tensors{4};
  const tmap_patch_source source = source_of(tensors);
  tmap_batch batch{};
  ASSERT_EQ(tmap_service_encode(service, c_base, &source, 4, &batch, nullptr), TMAP_OK);
  machine.push_context();
  EXPECT_EQ(tmap_batch_release(batch), TMAP_WRONG_CONTEXT);
  machine.pop_context();
  EXPECT_EQ(wrong_maps(batch, base, tensors.patches), 0u);
  EXPECT_EQ(tmap_batch_release(batch), TMAP_OK);
  EXPECT_EQ(tmap_service_destroy(service), TMAP_OK);
}

TEST_F(c_service, a_batch_in_a_call_is_busy) {
  const tmap_service service = make_c();
  tmap_batch batch{};
  ASSERT_EQ(tmap_service_reserve(service, 4, &batch, nullptr), TMAP_OK);
  const tensor_list tensors{4};
  const tmap_patch_source source = source_of(tensors);
  {
    const auto held = interop::batches().find(batch.value);
    const interop::batch_turn turn{*held};
    tmap_batch_info info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(tmap_batch_query(batch, &info), TMAP_BATCH_BUSY);
    EXPECT_EQ(tmap_batch_use_on(batch, nullptr), TMAP_BATCH_BUSY);
    EXPECT_EQ(tmap_batch_release(batch), TMAP_BATCH_BUSY);
    EXPECT_EQ(tmap_service_update(service, batch, nullptr, 0, c_base, &source, &batch, nullptr), TMAP_BATCH_BUSY);
    EXPECT_EQ(info.ref.count, 0u);
  }
  EXPECT_EQ(tmap_batch_release(batch), TMAP_OK);
  EXPECT_EQ(tmap_service_destroy(service), TMAP_OK);
}

TEST_F(c_service, a_forked_child_is_told) {
  const tmap_service service = make_c();
  tmap_batch batch{};
  ASSERT_EQ(tmap_service_reserve(service, 4, &batch, nullptr), TMAP_OK);
  const pid_t child = fork();
  if (child == 0) {
    const std::uint64_t calls = machine.all_calls();
    tmap_batch made{};
    const bool told = tmap_service_reserve(service, 4, &made, nullptr) == TMAP_FORKED &&
                      tmap_batch_use_on(batch, nullptr) == TMAP_FORKED && tmap_batch_release(batch) == TMAP_FORKED &&
                      tmap_batch_release(batch) == TMAP_INVALID_HANDLE && tmap_service_destroy(service) == TMAP_OK;
    _exit(told && made.value == 0 && machine.all_calls() == calls ? 0 : 1);
  }
  int outcome = -1;
  ASSERT_EQ(waitpid(child, &outcome, 0), child);
  EXPECT_EQ(outcome, 0);
  EXPECT_EQ(tmap_batch_release(batch), TMAP_OK);
  EXPECT_EQ(tmap_service_destroy(service), TMAP_OK);
}

/// Makes a service on a machine with a GPU, and expects the reason without one.
TEST(c_service_create, on_this_machine) {
  tmap_service service{5};
  const tmap_status made = tmap_service_create(nullptr, &service);
  if (query_device_limits()) {
    EXPECT_EQ(made, TMAP_OK);
    EXPECT_EQ(tmap_service_destroy(service), TMAP_OK);
  } else {
    EXPECT_NE(made, TMAP_OK);
    EXPECT_EQ(service.value, 5u);
  }
  EXPECT_EQ(tmap_service_memory_bytes(64), service_memory_bytes(64));
}

}  // namespace
}  // namespace tmap::testing
