// SPDX-License-Identifier: Apache-2.0
// Tests that invalid arguments are refused before any CUDA call, so these cases need no GPU.
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

// These addresses are checked, but never read.
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

result<void> encode_one(const map_template& base, const tensor_source& source,
                        const encode_run& run = {default_stream}) {
  return encode_batch(base, source, slots, 1, run);
}

result<void> checked_source(const map_template& base, const tensor_source& source) {
  support::arguments given;
  check_source(given, base, source);
  return given.outcome();
}

TEST(encode_arguments, no_maps_are_no_error) {
  EXPECT_TRUE(encode_batch(rank_2(patch_address), patch_array{}, nullptr, 0, {default_stream}).has_value());
}

TEST(encode_arguments, slots_and_count) {
  const map_template base = rank_2(patch_address);
  expect_refused(encode_batch(base, patches, nullptr, 1, {default_stream}), "slots", 0, 128, "null");
  expect_refused(encode_batch(base, patches, at<tensor_map>(0x10040), 1, {default_stream}), "slots");
  expect_refused(encode_batch(base, patches, slots, max_batch + 1, {default_stream}), "count", max_batch + 1, max_batch,
                 "too many");
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

TEST(encode_arguments, run) {
  const auto refused = [](const std::string& member, const auto& change) {
    encode_run run{default_stream};
    change(run);
    expect_refused(encode_one(rank_2(patch_address), patches, run), member);
  };
  refused("statuses", [](encode_run& r) { r.statuses = at<map_status>(0x30004); });
  refused("header", [](encode_run& r) { r.header = at<batch_header>(0x30008); });
  refused("check", [](encode_run& r) { r.check = static_cast<fault_check>(3); });
  refused("choices.published_by", [](encode_run& r) { r.choices.published_by = static_cast<publish>(2); });
  refused("windows", [](encode_run& r) { r.windows = {at<const address_window>(0), 1}; });
  refused("windows", [](encode_run& r) { r.windows = {at<const address_window>(0x30008), 1}; });
  refused("windows", [](encode_run& r) { r.windows = {at<const address_window>(0x30000), std::size_t{1} << 32}; });
  const auto trusted_beside = [&](const auto& change) {
    refused("choices.trusted", [&](encode_run& r) {
      r.choices.trusted = true;
      change(r);
    });
  };
  trusted_beside([](encode_run& r) { r.statuses = at<map_status>(0x30000); });
  trusted_beside([](encode_run& r) { r.header = at<batch_header>(0x30000); });
  trusted_beside([](encode_run& r) { r.windows = {at<const address_window>(0x30000), 1}; });
}

TEST(encode_arguments, owners) {
  const auto with = [](const auto& change) {
    encode_run run{default_stream};
    run.choices.owners.ranks = at<const std::uint32_t>(0x50000);
    run.choices.owners.memory.ranks = 2;
    run.choices.owners.memory.windows[0] = run.choices.owners.memory.windows[1] = 1 << 20;
    change(run);
    return run;
  };
  const auto refused = [&](const std::string& member, const auto& change) {
    expect_refused(encode_one(rank_2(patch_address), patches, with(change)), member);
  };
  refused("choices.owners.ranks", [](encode_run& r) { r.choices.owners.ranks = at<const std::uint32_t>(0x50002); });
  refused("choices.owners.memory.ranks", [](encode_run& r) { r.choices.owners.memory.ranks = 0; });
  refused("choices.owners.memory.ranks", [](encode_run& r) { r.choices.owners.memory.ranks = max_group_ranks + 1; });
  refused("choices.owners.memory.rank", [](encode_run& r) { r.choices.owners.memory.rank = 2; });
  refused("windows", [](encode_run& r) { r.windows = {at<const address_window>(0x30000), 1}; });
  refused("choices.trusted", [](encode_run& r) { r.choices.trusted = true; });
  refused("choices.published_by", [](encode_run& r) { r.choices.published_by = publish::copy_fence; });
  expect_refused(encode_one(rank_2(patch_dim(1)), patches, with([](encode_run&) {})), "base.fields");
  const auto unreached =
      encode_one(rank_2(patch_address), patches, with([](encode_run& r) { r.choices.owners.memory.windows[1] = 0; }));
  EXPECT_EQ(unreached.error().code, status::no_peer_access);
  EXPECT_EQ(to_string(unreached.error()),
            "`choices.owners.memory` does not reach the window of rank 1; maps with "
            "owners need a window of `allocate`");
}

TEST(encode_arguments, ragged_rows) {
  const map_template base = rank_2(patch_address | patch_dim(1));
  ragged_rows source{0x1000, 16, {at<const std::int32_t>(0x20000), offset_format::ends}};
  expect_refused(encode_one(rank_2(patch_address), source), "base.fields");
  source.offsets.values = nullptr;
  expect_refused(encode_one(base, source), "source.offsets.values");
  source.offsets.values = at<const std::int32_t>(0x20002);
  expect_refused(encode_one(base, source), "source.offsets.values");
  source.offsets.values = at<const std::int32_t>(0x20004);
  source.offsets.bytes = 8;
  expect_refused(encode_one(base, source), "source.offsets.values", 0x20004, 8, "good for 4 bytes alone");
  source.offsets.values = at<const std::int32_t>(0x20000);
  for (const std::uint32_t bytes : {0u, 2u, 16u, ~0u}) {
    source.offsets.bytes = bytes;
    expect_refused(encode_one(base, source), "source.offsets.bytes", bytes, 8, "neither 4 nor 8");
  }
  source.offsets.bytes = 4;
  source.offsets.format = offset_format::labels;
  expect_refused(encode_one(base, source), "source.offsets.format");
  source.offsets.format = offset_format::begins_and_counts;
  expect_refused(encode_one(base, source), "source.offsets.counts");
  source.offsets.format = offset_format::slots;
  expect_refused(encode_one(base, source), "source.offsets.slot_rows");
  source.offsets.format = offset_format::sizes;
  const std::uint64_t needed = ragged_workspace_bytes(1, 4).value();
  encode_run run{{default_stream, {at<void>(0x30000), needed - 1}}};
  expect_refused(encode_one(base, source, run), "scratch.bytes", needed - 1, needed, "a byte less");
  run.where.scratch.bytes = needed;
  for (const std::uintptr_t address : {0, 0x30080}) {
    run.where.scratch.memory = at<void>(address);
    expect_refused(encode_one(base, source, run), "scratch.memory");
  }
}

TEST(encode_arguments, rows_bring_address_and_outermost_dim_and_nothing_else) {
  const ragged_rows source{0x1000, 16, {at<const std::int32_t>(0x20000), offset_format::ends}};
  EXPECT_TRUE(checked_source(rank_2(patch_address | patch_dim(1)), source).has_value());
  for (const patch_fields more : {patch_dim(0), patch_stride(0), patch_box(1)}) {
    expect_refused(checked_source(rank_2(patch_address | patch_dim(1) | more), source), "base.fields");
  }
}

TEST(encode_arguments, columns_of_every_axis_are_looked_at) {
  map_template base = rank_2({});
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
