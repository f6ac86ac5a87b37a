// SPDX-License-Identifier: Apache-2.0
// Tests that operations refuse every bad argument of a side, a run and its workspace before they
// ask for a device, so the tests need none. The GPU and the host refuse it with the same message.
#include <tmap/encode_batch.hpp>
#include <tmap/ragged.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>

#include "kernels/ragged_launch.hpp"
#include "lib/ragged/operation.hpp"
#include "lib/ragged/workspace.hpp"
#include "ragged/api_arguments.hpp"

namespace tmap::ragged::testing {
namespace {

/// Spoils one batch of a legal call, first on one side and then on the other, and expects that the
/// side's `member` is refused.
void expect_both_sides_refuse(const std::string& member, const std::function<void(tensor_batch&)>& spoil) {
  tensor_batch bad = columns_batch();
  spoil(bad);
  const tensor_batch good = columns_batch();
  const std::string source = "source." + member;
  const std::string destination = "destination." + member;
  const cast_values same{value_type::f32, value_type::f32};
  const auto sum = row_reduction::sum;
  expect_both_refuse([&](auto& with) { return copy(bad, good, with); }, source, "copy");
  expect_both_refuse([&](auto& with) { return copy(good, bad, with); }, destination, "copy");
  expect_both_refuse([&](auto& with) { return pack(bad, some_packed(), with); }, source, "pack");
  expect_both_refuse([&](auto& with) { return unpack(some_packed(), bad, with); }, destination, "unpack");
  expect_both_refuse([&](auto& with) { return pad(bad, some_dense(), {}, with); }, source, "pad");
  expect_both_refuse([&](auto& with) { return unpad(some_dense(), bad, with); }, destination, "unpad");
  expect_both_refuse([&](auto& with) { return transpose(bad, good, with); }, source, "transpose");
  expect_both_refuse([&](auto& with) { return transpose(good, bad, with); }, destination, "transpose");
  expect_both_refuse([&](auto& with) { return cast(bad, good, same, with); }, source, "cast");
  expect_both_refuse([&](auto& with) { return cast(good, bad, same, with); }, destination, "cast");
  expect_both_refuse([&](auto& with) { return saxpy(1, bad, good, with); }, "x." + member, "saxpy");
  expect_both_refuse([&](auto& with) { return saxpy(1, good, bad, with); }, "y." + member, "saxpy");
  expect_both_refuse([&](auto& with) { return max_pool_1d(bad, good, 1, with); }, source, "pooling");
  expect_both_refuse([&](auto& with) { return max_pool_1d(good, bad, 1, with); }, destination, "pooling");
  expect_both_refuse([&](auto& with) { return reduce_rows(bad, value_type::f32, sum, good, with); }, source,
                     "reduction");
  expect_both_refuse([&](auto& with) { return reduce_rows(good, value_type::f32, sum, bad, with); }, destination,
                     "reduction");
}

TEST(ragged_arguments, numbers_of_a_batch) {
  expect_both_sides_refuse("rank", [](tensor_batch& b) { b.rank = 0; });
  expect_both_sides_refuse("rank", [](tensor_batch& b) { b.rank = 6; });
  expect_both_sides_refuse("element_bytes", [](tensor_batch& b) { b.element_bytes = 0; });
  expect_both_sides_refuse("element_bytes", [](tensor_batch& b) { b.element_bytes = 17; });
  expect_both_sides_refuse("count", [](tensor_batch& b) { b.count = max_batch + 1; });
  expect_both_sides_refuse("side", [](tensor_batch& b) { b.side = static_cast<array_side>(2); });
}

TEST(ragged_arguments, arrays_of_columns) {
  const auto columns = [](tensor_batch& b) -> patch_columns& { return std::get<patch_columns>(b.tensors); };
  for (const std::uint64_t* const bad : {static_cast<const std::uint64_t*>(nullptr), somewhere<std::uint64_t>(4)}) {
    expect_both_sides_refuse("tensors.global_address", [&](tensor_batch& b) { columns(b).global_address = bad; });
    expect_both_sides_refuse("tensors.global_dim[0]", [&](tensor_batch& b) { columns(b).global_dim[0] = bad; });
    expect_both_sides_refuse("tensors.global_dim[1]", [&](tensor_batch& b) { columns(b).global_dim[1] = bad; });
  }
  expect_both_sides_refuse("tensors.global_stride_bytes[0]",
                           [&](tensor_batch& b) { columns(b).global_stride_bytes[0] = somewhere<std::uint64_t>(4); });
}

TEST(ragged_arguments, arrays_of_compact_columns) {
  compact_columns good{};
  good.address_units = good.global_dim[0] = good.global_dim[1] = somewhere<std::uint32_t>();
  for (const std::uint32_t* const bad : {static_cast<const std::uint32_t*>(nullptr), somewhere<std::uint32_t>(2)}) {
    const auto refuse = [&](const std::string& member, const std::function<void(compact_columns&)>& spoil) {
      compact_columns columns = good;
      spoil(columns);
      expect_both_sides_refuse("tensors." + member, [&](tensor_batch& b) { b.tensors = columns; });
    };
    refuse("address_units", [&](auto& c) { c.address_units = bad; });
    refuse("global_dim[0]", [&](auto& c) { c.global_dim[0] = bad; });
    refuse("global_dim[1]", [&](auto& c) { c.global_dim[1] = bad; });
    if (bad != nullptr) refuse("global_stride_units[0]", [&](auto& c) { c.global_stride_units[0] = bad; });
  }
}

TEST(ragged_arguments, arrays_of_other_sources) {
  const auto rows = [](const std::int64_t* offsets, offset_format format, std::uint32_t bytes = 8) {
    return [=](tensor_batch& b) { b.tensors = ragged_rows{0x20000, 64, {offsets, format, bytes}}; };
  };
  expect_both_sides_refuse("tensors.patches", [](tensor_batch& b) { b.tensors = patch_array{nullptr}; });
  expect_both_sides_refuse("tensors.patches",
                           [](tensor_batch& b) { b.tensors = patch_array{somewhere<map_patch>(8)}; });
  expect_both_sides_refuse("tensors.offsets.values", [](tensor_batch& b) { b.tensors = ragged_rows{}; });
  expect_both_sides_refuse("tensors.offsets.values", rows(somewhere<std::int64_t>(4), offset_format::ends));
  expect_both_sides_refuse("tensors.offsets.format", rows(somewhere<std::int64_t>(), offset_format::labels));
  expect_both_sides_refuse("tensors.offsets.counts", rows(somewhere<std::int64_t>(), offset_format::begins_and_counts));
  expect_both_sides_refuse("tensors.offsets.slot_rows", rows(somewhere<std::int64_t>(), offset_format::slots));
  for (const std::uint32_t bytes : {0u, 2u, 5u, 16u}) {
    expect_both_sides_refuse("tensors.offsets.bytes", rows(somewhere<std::int64_t>(), offset_format::ends, bytes));
  }
}

TEST(ragged_arguments, rows_of_rank_1_are_elements) {
  tensor_batch rows = columns_batch(1);
  rows.tensors = ragged_rows{0x20000, 8, {somewhere<std::int32_t>(), offset_format::ends}};
  expect_both_refuse([&](auto& with) { return copy(rows, columns_batch(1), with); }, "source.tensors.row_pitch_bytes");
}

TEST(ragged_arguments, sides_that_differ) {
  const auto refuse = [](const tensor_batch& source, const tensor_batch& destination, const std::string& name) {
    expect_both_refuse([&](auto& with) { return copy(source, destination, with); }, name);
  };
  tensor_batch fewer = columns_batch();
  fewer.count = 9;
  refuse(columns_batch(), fewer, "destination.count");
  refuse(columns_batch(2), columns_batch(3), "destination.rank");
  refuse(columns_batch(2, 4), columns_batch(2, 8), "destination.element_bytes");
  fewer.count = 0;
  refuse(columns_batch(), fewer, "destination.count");
}

TEST(ragged_arguments, workspace) {
  const tensor_batch batch = columns_batch();
  workspace small = enough();
  --small.bytes;
  expect_refused(copy(batch, batch, on_a_stream(small)), "scratch.bytes", small.bytes, enough().bytes, "too small");
  workspace odd = enough();
  odd.memory = reinterpret_cast<void*>(0x10080);
  expect_refused(copy(batch, batch, on_a_stream(odd)), "scratch.memory", "misaligned");
  odd.memory = nullptr;
  expect_refused(saxpy(1, batch, batch, on_a_stream(odd)), "scratch.memory", "null");
}

TEST(ragged_arguments, workspace_bytes) {
  EXPECT_EQ(workspace_bytes(0, 1).value(), 0u);
  EXPECT_GT(workspace_bytes(1, 1).value(), 0u);
  EXPECT_GT(workspace_bytes(max_batch, 5).value(), workspace_bytes(max_batch, 4).value());
  expect_refused(workspace_bytes(max_batch + 1, 1), "count", max_batch + 1, max_batch, "too many");
  expect_refused(workspace_bytes(1, 0), "rank", 0, 1, "none");
  expect_refused(workspace_bytes(1, 6), "rank", 6, 5, "too many dims");
}

/// Each part ends before the next one begins.
TEST(ragged_arguments, a_workspace_has_room_for_every_part) {
  for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{31}, std::uint64_t{32}, std::uint64_t{1000}}) {
    for (std::uint32_t rank = 1; rank <= max_rank; ++rank) {
      const std::uint64_t padded = count * (1 + rank);  // a tensor and its padding boxes
      const std::uint64_t sums = count * sizeof(std::int64_t);
      const workspace_layout l = lay_out_workspace(count, rank);
      EXPECT_GE(l.ends - l.tensors, padded * sizeof(kernels::planned_tensor));
      EXPECT_GE(l.maps - l.ends, padded * sizeof(std::uint64_t));
      EXPECT_GE(l.begins - l.maps, 2 * count * sizeof(tensor_map));
      EXPECT_GE(l.row_begins[0] - l.begins, sums + sizeof(std::int64_t)) << count;
      EXPECT_GE(l.row_begins[1] - l.row_begins[0], sums);
      EXPECT_GE(l.row_begins[2] - l.row_begins[1], sums);
      EXPECT_GE(l.arrays[0] - l.row_begins[2], sums);
      EXPECT_GE(l.arrays[1] - l.arrays[0], count * sizeof(map_patch));
      EXPECT_GE(l.arrays[2] - l.arrays[1], count * sizeof(map_patch));
      EXPECT_GE(l.scales - l.arrays[2], count * sizeof(map_patch));
      EXPECT_GE(l.partials - l.scales, count * sizeof(kernels::planned_scales));
      EXPECT_GE(l.queue - l.partials, kernels::reduce_partials * sizeof(float));
      EXPECT_GE(l.queue - l.partials, kernels::column_partials * sizeof(float));
      EXPECT_GE(l.scratch - l.queue, kernels::queue_counter_bytes);
      EXPECT_GE(l.scratch_bytes, kernels::plan_scratch_bytes(padded));
      EXPECT_GE(l.bytes - l.scratch, l.scratch_bytes);
    }
  }
}

TEST(ragged_arguments, maps_have_elements_of_the_batches_width) {
  const kernels::piece_rule rule{.piece_elements = 64, .box_dim = {16, 4}, .tile = 0, .map_rank = 2};
  for (const std::uint32_t bytes : {1u, 2u, 4u, 8u}) {
    const std::optional<tensor_spec> spec = map_of(rule, bytes, 2);
    ASSERT_TRUE(spec.has_value());
    EXPECT_EQ(element_bytes(spec->type), bytes);
    EXPECT_FALSE(is_floating_point(spec->type)) << "copied as bits";
    EXPECT_EQ(spec->box_dim[1], 4u);
  }
  EXPECT_FALSE(map_of(rule, 3, 2).has_value());
  EXPECT_FALSE(map_of({}, 4, 2).has_value());
}

TEST(ragged_arguments, of_every_run) {
  const tensor_batch batch = columns_batch();
  const row_matrix matrix{0x20000, 100, 64, 64};
  const row_index index{somewhere<void>(), 50, 4};
  const auto refused = [&](const std::string& name, const std::function<void(run&)>& spoil) {
    const auto refuse = [&](const auto& call) {
      const auto spoilt_call = [&](run with) {
        spoil(with);
        return call(with);
      };
      expect_both_refuse(spoilt_call, name);
    };
    refuse([&](auto& with) { return copy(batch, batch, with); });
    refuse([&](auto& with) { return pack(batch, some_packed(), with); });
    refuse([&](auto& with) { return unpack(some_packed(), batch, with); });
    refuse([&](auto& with) { return pad(batch, some_dense(), {}, with); });
    refuse([&](auto& with) { return unpad(some_dense(), batch, with); });
    refuse([&](auto& with) { return transpose(batch, batch, with); });
    refuse([&](auto& with) { return max_pool_1d(batch, batch, 1, with); });
    refuse([&](auto& with) { return gather_rows(matrix, index, matrix, with); });
    refuse([&](auto& with) { return scatter_rows(matrix, index, matrix, with); });
  };
  refused("choices.policy", [](run& r) { r.choices.policy = static_cast<route_policy>(3); });
  refused("statuses", [](run& r) { r.statuses = reinterpret_cast<tensor_status*>(0x10002); });
  refused("header", [](run& r) { r.header = reinterpret_cast<batch_header*>(0x10008); });
  refused("check", [](run& r) { r.check = static_cast<fault_check>(3); });
  const auto* const nowhere = static_cast<const address_window*>(nullptr);
  refused("windows", [=](run& r) { r.windows = {nowhere, 1}; });
  refused("windows", [](run& r) { r.windows = {somewhere<address_window>(8), 1}; });
  refused("windows", [](run& r) { r.windows = {somewhere<address_window>(), std::uint64_t{1} << 32}; });
}

TEST(ragged_arguments, packed_buffers) {
  const tensor_batch batch = columns_batch();
  const auto refused = [&](const std::string& member, const std::function<void(packed_buffer&)>& spoil) {
    packed_buffer packed = some_packed();
    spoil(packed);
    expect_both_refuse([&](auto& with) { return pack(batch, packed, with); }, "destination." + member);
    expect_both_refuse([&](auto& with) { return unpack(packed, batch, with); }, "source." + member);
  };
  refused("memory", [](packed_buffer& p) { p.memory = nullptr; });
  refused("memory", [](packed_buffer& p) { p.memory = reinterpret_cast<void*>(0x20002); });
  for (const std::uint64_t alignment : {0, 48, 1 << 21}) {
    refused("alignment", [=](packed_buffer& p) { p.alignment = alignment; });
  }
  refused("begins", [](packed_buffer& p) { p.begins = reinterpret_cast<std::int64_t*>(0x10004); });
  refused("bytes", [](packed_buffer& p) { p.bytes = ~std::uint64_t{0}; });
  refused("bytes", [](packed_buffer& p) { p.bytes = (std::uint64_t{1} << 47) + 1; });
}

TEST(ragged_arguments, dense_batches) {
  const tensor_batch batch = columns_batch();
  const auto refused = [&](const std::string& member, const std::function<void(dense_batch&)>& spoil) {
    dense_batch dense = some_dense();
    spoil(dense);
    expect_both_refuse([&](auto& with) { return pad(batch, dense, {}, with); }, "destination" + member);
    expect_both_refuse([&](auto& with) { return unpad(dense, batch, with); }, "source" + member);
  };
  refused(".address", [](dense_batch& d) { d.address = 0; });
  refused(".address", [](dense_batch& d) { d.address += 2; });
  refused(".dim[1]", [](dense_batch& d) { d.dim[1] = (std::uint64_t{1} << 40) + 1; });
  refused(".stride_bytes[0]", [](dense_batch& d) { d.stride_bytes[0] = 34; });
  refused(".tensor_pitch_bytes", [](dense_batch& d) { d.tensor_pitch_bytes = 129; });
  refused("", [](dense_batch& d) { d.tensor_pitch_bytes = std::uint64_t{1} << 46; });
  refused("", [](dense_batch& d) { d.stride_bytes[0] = std::uint64_t{1} << 63; });
  const auto overlapping = [&](const std::string& name, const std::function<void(dense_batch&)>& spoil) {
    dense_batch dense = some_dense();
    spoil(dense);
    expect_both_refuse([&](auto& with) { return pad(batch, dense, {}, with); }, name);
  };
  overlapping("destination.stride_bytes[0]", [](dense_batch& d) { d.stride_bytes[0] = 28; });
  overlapping("destination.tensor_pitch_bytes", [](dense_batch& d) { d.tensor_pitch_bytes = 124; });
}

/// Sets a policy with a spelling mistake in the environment: it stops a call with good arguments
/// before anything is enqueued.
class misspelt_policy {
 public:
  misspelt_policy() { setenv("TMAP_POLICY", "no such policy", 1); }
  ~misspelt_policy() { unsetenv("TMAP_POLICY"); }
  /// Without a GPU, the call stops before it reads the policy.
  static bool was_asked(const result<void>& answer) {
    const std::string refused = tmap::testing::refused_argument(answer);
    return !answer && (refused.empty() || refused == "TMAP_POLICY");
  }
};

TEST(ragged_arguments, unpad_reads_a_row_for_all_rows) {
  const misspelt_policy policy;
  dense_batch broadcast = some_dense();
  broadcast.dim[2] = 5;
  broadcast.stride_bytes[1] = 32;
  const tensor_batch batch = columns_batch(3);
  EXPECT_TRUE(policy.was_asked(unpad(broadcast, batch, on_a_stream(enough(3)))));
  expect_refused(pad(batch, broadcast, {}, on_a_stream(enough(3))), "destination.stride_bytes[0]", 0, 32,
                 "a row for all rows");
}

}  // namespace
}  // namespace tmap::ragged::testing
