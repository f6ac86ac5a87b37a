// SPDX-License-Identifier: Apache-2.0
// Arguments outside the contract are answered before any CUDA call, so these cases need no GPU.
#include <tmap/encode_batch.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "kernels/launch.hpp"
#include "lib/encode/encode_arguments.hpp"
#include "support/refusal.hpp"

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

template <class Source>
result<void> encode_one(const map_template& base, const Source& source, const encode_options& options = {}) {
  return encode_batch_async(base, source, slots, 1, default_stream, options);
}

template <class Source>
result<void> checked_source(const map_template& base, const Source& source) {
  support::arguments given;
  check_source(given, base, source);
  return given.outcome();
}

TEST(encode_arguments, no_maps_are_no_error) {
  EXPECT_TRUE(encode_batch_async(rank_2(patch_address), patch_array{}, nullptr, 0, default_stream).has_value());
}

TEST(encode_arguments, slots_and_count) {
  const map_template base = rank_2(patch_address);
  expect_refused(encode_batch_async(base, patches, nullptr, 1, default_stream), "slots", 0, 128, "null");
  expect_refused(encode_batch_async(base, patches, at<tensor_map>(0x10040), 1, default_stream), "slots");
  expect_refused(encode_batch_async(base, patches, slots, max_batch + 1, default_stream), "count", max_batch + 1,
                 max_batch, "too many");
}

TEST(encode_arguments, templates) {
  map_template no_rank = rank_2(patch_address);
  for (const std::uint32_t rank : {0u, 6u}) {
    no_rank.spec.rank = rank;
    expect_refused(encode_one(no_rank, patches), "base.spec.rank");
  }
  expect_refused(encode_one(rank_2(patch_dim(2)), patches), "base.fields");
  expect_refused(encode_one(rank_2(patch_stride(1)), patches), "base.fields");
}

TEST(encode_arguments, patch_array) {
  expect_refused(encode_one(rank_2(patch_address), patch_array{nullptr}), "source.patches");
  expect_refused(encode_one(rank_2(patch_address), patch_array{at<const map_patch>(0x20008)}), "source.patches");
}

TEST(encode_arguments, patch_columns_need_every_changed_field) {
  patch_columns columns{};
  expect_refused(encode_one(rank_2(patch_address), columns), "source.global_address");
  columns.global_address = at<const std::uint64_t>(0x20000);
  expect_refused(encode_one(rank_2(patch_address | patch_dim(1)), columns), "source.global_dim[1]");
  expect_refused(encode_one(rank_2(patch_address | patch_stride(0)), columns), "source.global_stride_bytes[0]");
  expect_refused(encode_one(rank_2(patch_address | patch_box(0)), columns), "base.fields");
}

TEST(encode_arguments, compact_columns_need_every_changed_field) {
  compact_columns columns{};
  expect_refused(encode_one(rank_2(patch_address), columns), "source.address_units");
  columns.address_units = at<const std::uint32_t>(0x20002);
  expect_refused(encode_one(rank_2(patch_address), columns), "source.address_units");
  columns.address_units = at<const std::uint32_t>(0x20004);
  expect_refused(encode_one(rank_2(patch_address | patch_dim(1)), columns), "source.global_dim[1]");
  expect_refused(encode_one(rank_2(patch_address | patch_stride(0)), columns), "source.global_stride_units[0]");
  expect_refused(encode_one(rank_2(patch_address | patch_box(0)), columns), "base.fields");
}

TEST(encode_arguments, options) {
  const auto refused = [](const std::string& member, const encode_options& options) {
    expect_refused(encode_one(rank_2(patch_address), patches, options), "options." + member);
  };
  refused("statuses", {.statuses = at<map_status>(0x30004)});
  refused("header", {.header = at<batch_header>(0x30008)});
  refused("totals", {.totals = at<batch_totals>(0x30008)});
  refused("check", {.check = static_cast<fault_check>(3)});
  refused("windows", {.window_count = 1});
  refused("windows", {.windows = at<const address_window>(0x30008), .window_count = 1});
  refused("trusted", {.statuses = at<map_status>(0x30000), .trusted = true});
  refused("trusted", {.header = at<batch_header>(0x30000), .trusted = true});
  refused("trusted", {.totals = at<batch_totals>(0x30000), .trusted = true});
  refused("trusted", {.windows = at<const address_window>(0x30000), .window_count = 1, .trusted = true});
}

TEST(encode_arguments, ragged_rows) {
  const map_template base = rank_2(patch_address | patch_dim(1));
  ragged_rows<std::int32_t> source{0x1000, 16, at<const std::int32_t>(0x20000), offset_format::ends, nullptr, 0};
  expect_refused(encode_one(rank_2(patch_address), source), "base.fields");
  source.offsets = nullptr;
  expect_refused(encode_one(base, source), "source.offsets");
  source.offsets = at<const std::int32_t>(0x20002);
  expect_refused(encode_one(base, source), "source.offsets");
  source.offsets = at<const std::int32_t>(0x20000);
  source.format = offset_format{3};
  expect_refused(encode_one(base, source), "source.format");
  source.format = offset_format::sizes;
  const std::uint64_t needed = ragged_workspace_bytes(1, 4).value();
  source.workspace = at<void>(0x30000);
  source.workspace_bytes = needed - 1;
  expect_refused(encode_one(base, source), "source.workspace_bytes", needed - 1, needed, "a byte less");
  source.workspace_bytes = needed;
  for (const std::uintptr_t address : {0, 0x30080}) {
    source.workspace = at<void>(address);
    expect_refused(encode_one(base, source), "source.workspace");
  }
}

TEST(encode_arguments, rows_bring_address_and_outermost_dim_and_nothing_else) {
  const ragged_rows<std::int32_t> source{0x1000, 16, at<const std::int32_t>(0x20000), offset_format::ends, nullptr, 0};
  EXPECT_TRUE(checked_source(rank_2(patch_address | patch_dim(1)), source).has_value());
  for (const patch_fields more : {patch_dim(0), patch_stride(0), patch_box(1)}) {
    expect_refused(checked_source(rank_2(patch_address | patch_dim(1) | more), source), "base.fields");
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
  EXPECT_TRUE(checked_source(base, whole).has_value());
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    const std::string index = "[" + std::to_string(axis) + "]";
    patch_columns lacks = whole;
    lacks.global_dim[axis] = nullptr;
    expect_refused(checked_source(base, lacks), "source.global_dim" + index);
    if (axis + 1 == max_rank) continue;
    lacks = whole;
    lacks.global_stride_bytes[axis] = nullptr;
    expect_refused(checked_source(base, lacks), "source.global_stride_bytes" + index);
  }
}

TEST(encode_arguments, workspace_sizes) {
  EXPECT_EQ(ragged_workspace_bytes(0, 4).value(), 0u);
  expect_refused(ragged_workspace_bytes(max_batch + 1, 4), "count");
  expect_refused(ragged_workspace_bytes(1, 2), "offset_bytes");
}

TEST(encode_arguments, workspaces_have_room_for_a_number_of_64_bits_each) {
  for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{33}, std::uint64_t{100'000}, max_batch}) {
    const std::uint64_t needed = count * 8 + kernels::inclusive_sum_scratch(count);
    EXPECT_GE(ragged_workspace_bytes(count, 4).value(), needed);
    EXPECT_GE(ragged_workspace_bytes(count, 8).value(), needed);
  }
}

TEST(encode_arguments, a_workspace_of_just_the_bytes_is_enough) {
  const auto checked = [](std::uint64_t bytes) {
    support::arguments given;
    check_workspace(given, slots, bytes, 512, {"memory", "bytes"});
    return given.outcome();
  };
  EXPECT_TRUE(checked(512).has_value());
  expect_refused(checked(511), "bytes", 511, 512, "a byte less");
}

}  // namespace
}  // namespace tmap::testing
