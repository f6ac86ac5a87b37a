// SPDX-License-Identifier: Apache-2.0
// Arguments outside the contract are answered before any CUDA call, so these cases need no GPU.
#include <tmap/encode_batch.hpp>

#include <gtest/gtest.h>

#include "kernels/launch.hpp"
#include "lib/encode/batch_checks.hpp"
#include "lib/encode/device.hpp"

namespace tmap::testing {
namespace {

const cuda::stream_ref default_stream{cudaStream_t{}};

// Addresses that are checked, never read.
template <class T>
T* at(std::uintptr_t address) {
  return reinterpret_cast<T*>(address);
}
tensor_map* const slots = at<tensor_map>(0x10000);
const patch_array patches{at<const map_patch>(0x20000)};

map_template rank_2(patch_fields fields) {
  map_template base{};
  base.spec.rank = 2;
  base.fields = fields;
  return base;
}

void expect_invalid(const result<void>& answer) {
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, status::invalid_argument) << to_string(answer.error());
}

TEST(encode_arguments, no_maps_are_no_error) {
  EXPECT_TRUE(encode_batch_async(rank_2(patch_address), patch_array{}, nullptr, 0, default_stream).has_value());
}

TEST(encode_arguments, slots_and_count) {
  const map_template base = rank_2(patch_address);
  expect_invalid(encode_batch_async(base, patches, nullptr, 1, default_stream));
  expect_invalid(encode_batch_async(base, patches, at<tensor_map>(0x10040), 1, default_stream));
  expect_invalid(encode_batch_async(base, patches, slots, max_batch + 1, default_stream));
}

TEST(encode_arguments, templates) {
  map_template no_rank = rank_2(patch_address);
  no_rank.spec.rank = 0;
  expect_invalid(encode_batch_async(no_rank, patches, slots, 1, default_stream));
  expect_invalid(encode_batch_async(rank_2(patch_dim(2)), patches, slots, 1, default_stream));
  expect_invalid(encode_batch_async(rank_2(patch_stride(1)), patches, slots, 1, default_stream));
}

TEST(encode_arguments, patch_array) {
  expect_invalid(encode_batch_async(rank_2(patch_address), patch_array{nullptr}, slots, 1, default_stream));
  const patch_array misaligned{at<const map_patch>(0x20008)};
  expect_invalid(encode_batch_async(rank_2(patch_address), misaligned, slots, 1, default_stream));
}

TEST(encode_arguments, patch_columns_need_every_changed_field) {
  patch_columns columns{};
  expect_invalid(encode_batch_async(rank_2(patch_address), columns, slots, 1, default_stream));
  columns.global_address = at<const std::uint64_t>(0x20000);
  expect_invalid(encode_batch_async(rank_2(patch_address | patch_dim(1)), columns, slots, 1, default_stream));
  expect_invalid(encode_batch_async(rank_2(patch_address | patch_stride(0)), columns, slots, 1, default_stream));
  expect_invalid(encode_batch_async(rank_2(patch_address | patch_box(0)), columns, slots, 1, default_stream));
}

TEST(encode_arguments, compact_columns_need_every_changed_field) {
  compact_columns columns{};
  expect_invalid(encode_batch_async(rank_2(patch_address), columns, slots, 1, default_stream));
  columns.address_units = at<const std::uint32_t>(0x20002);
  expect_invalid(encode_batch_async(rank_2(patch_address), columns, slots, 1, default_stream));
  columns.address_units = at<const std::uint32_t>(0x20004);
  expect_invalid(encode_batch_async(rank_2(patch_address | patch_dim(1)), columns, slots, 1, default_stream));
  expect_invalid(encode_batch_async(rank_2(patch_address | patch_stride(0)), columns, slots, 1, default_stream));
  expect_invalid(encode_batch_async(rank_2(patch_address | patch_box(0)), columns, slots, 1, default_stream));
}

TEST(encode_arguments, options) {
  const auto encode_with = [](const encode_options& options) {
    return encode_batch_async(rank_2(patch_address), patches, slots, 1, default_stream, options);
  };
  expect_invalid(encode_with({.statuses = at<map_status>(0x30004)}));
  expect_invalid(encode_with({.header = at<batch_header>(0x30008)}));
  expect_invalid(encode_with({.check = static_cast<fault_check>(3)}));
  expect_invalid(encode_with({.totals = at<batch_totals>(0x30008)}));
  expect_invalid(encode_with({.totals = at<batch_totals>(0x30000), .trusted = true}));
  expect_invalid(encode_with({.window_count = 1}));
  expect_invalid(encode_with({.windows = at<const address_window>(0x30008), .window_count = 1}));
  expect_invalid(encode_with({.statuses = at<map_status>(0x30000), .trusted = true}));
  expect_invalid(encode_with({.header = at<batch_header>(0x30000), .trusted = true}));
  expect_invalid(encode_with({.windows = at<const address_window>(0x30000), .window_count = 1, .trusted = true}));
}

TEST(encode_arguments, ragged_rows) {
  const map_template base = rank_2(patch_address | patch_dim(1));
  ragged_rows<std::int32_t> source{0x1000, 16, at<const std::int32_t>(0x20000), offset_format::ends, nullptr, 0};
  expect_invalid(encode_batch_async(rank_2(patch_address), source, slots, 1, default_stream));
  source.offsets = nullptr;
  expect_invalid(encode_batch_async(base, source, slots, 1, default_stream));
  source.offsets = at<const std::int32_t>(0x20002);
  expect_invalid(encode_batch_async(base, source, slots, 1, default_stream));
  source.offsets = at<const std::int32_t>(0x20000);
  source.format = offset_format{3};
  expect_invalid(encode_batch_async(base, source, slots, 1, default_stream));
}

TEST(encode_arguments, rows_bring_address_and_outermost_dim_and_nothing_else) {
  const ragged_rows<std::int32_t> source{0x1000, 16, at<const std::int32_t>(0x20000), offset_format::ends, nullptr, 0};
  EXPECT_TRUE(check_source(rank_2(patch_address | patch_dim(1)), source).has_value());
  for (const patch_fields more : {patch_dim(0), patch_stride(0), patch_box(1)}) {
    expect_invalid(check_source(rank_2(patch_address | patch_dim(1) | more), source));
  }
}

TEST(encode_arguments, columns_of_every_axis_are_looked_at) {
  map_template base = rank_2(0);
  base.spec.rank = max_rank;
  base.fields = patch_extents(max_rank);
  patch_columns whole{};
  whole.global_address = at<const std::uint64_t>(0x20000);
  for (auto& column : whole.global_dim) column = whole.global_address;
  for (auto& column : whole.global_stride_bytes) column = whole.global_address;
  EXPECT_TRUE(check_source(base, whole).has_value());
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    patch_columns lacks = whole;
    lacks.global_dim[axis] = nullptr;
    expect_invalid(check_source(base, lacks));
    if (axis + 1 == max_rank) continue;
    lacks = whole;
    lacks.global_stride_bytes[axis] = nullptr;
    expect_invalid(check_source(base, lacks));
  }
}

TEST(encode_arguments, workspace_sizes) {
  EXPECT_EQ(ragged_workspace_bytes(0, 4).value(), 0u);
  EXPECT_EQ(ragged_workspace_bytes(max_batch + 1, 4).error().code, status::invalid_argument);
  EXPECT_EQ(ragged_workspace_bytes(1, 2).error().code, status::invalid_argument);
}

TEST(encode_arguments, workspaces_have_room_for_a_number_of_64_bits_each) {
  for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{33}, std::uint64_t{100'000}, max_batch}) {
    const std::uint64_t needed = count * 8 + kernels::inclusive_sum_scratch(count);
    EXPECT_GE(ragged_workspace_bytes(count, 4).value(), needed);
    EXPECT_GE(ragged_workspace_bytes(count, 8).value(), needed);
  }
}

TEST(encode_arguments, a_workspace_of_just_the_bytes_is_enough) {
  EXPECT_TRUE(check_workspace(slots, 512, 512).has_value());
  expect_invalid(check_workspace(slots, 511, 512));
}

}  // namespace
}  // namespace tmap::testing
