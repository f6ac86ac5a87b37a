// SPDX-License-Identifier: Apache-2.0
// Every argument that an operation refuses, before it asks for a device: these run anywhere.
#include <tmap/encode_batch.hpp>
#include <tmap/ragged.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "kernels/ragged_launch.hpp"
#include "lib/ragged/operation.hpp"
#include "lib/ragged/workspace.hpp"

namespace tmap::ragged::testing {
namespace {

const cuda::stream_ref no_stream{cudaStream_t{}};

template <class T>
const T* somewhere(std::uint64_t offset = 0) {
  return reinterpret_cast<const T*>(0x10000 + offset);
}

void expect_refused(const result<void>& answer, const std::string& what) {
  ASSERT_FALSE(answer.has_value()) << what;
  EXPECT_EQ(answer.error().code, status::invalid_argument) << what << ": " << to_string(answer.error());
}

tensor_batch columns_batch(std::uint32_t rank = 2, std::uint32_t element_bytes = 4) {
  patch_columns columns{};
  columns.global_address = somewhere<std::uint64_t>();
  for (std::uint32_t axis = 0; axis < rank; ++axis) columns.global_dim[axis] = somewhere<std::uint64_t>();
  tensor_batch batch;
  batch.tensors = columns;
  batch.count = 10;
  batch.element_bytes = element_bytes;
  batch.rank = rank;
  return batch;
}

workspace enough(std::uint32_t rank = 2) {
  return {reinterpret_cast<void*>(0x10000), workspace_bytes(10, rank).value()};
}

dense_batch some_dense() {
  dense_batch dense;
  dense.address = 0x20000;
  dense.dim[0] = 8;
  dense.dim[1] = 4;
  return dense;
}

packed_buffer some_packed() {
  packed_buffer packed;
  packed.memory = reinterpret_cast<void*>(0x20000);
  packed.bytes = 4096;
  return packed;
}

/// A call that is legal but for what `spoil` does to one of its batches, in turn.
void expect_both_sides_refuse(const std::string& what, const std::function<void(tensor_batch&)>& spoil) {
  tensor_batch bad = columns_batch();
  spoil(bad);
  const tensor_batch good = columns_batch();
  expect_refused(copy_async(bad, good, enough(), no_stream), what + ", source");
  expect_refused(copy_async(good, bad, enough(), no_stream), what + ", destination");
  expect_refused(pack_async(bad, some_packed(), enough(), no_stream), what + ", pack");
  expect_refused(unpack_async(some_packed(), bad, enough(), no_stream), what + ", unpack");
  expect_refused(pad_async(bad, some_dense(), {}, enough(), no_stream), what + ", pad");
  expect_refused(unpad_async(some_dense(), bad, enough(), no_stream), what + ", unpad");
  expect_refused(transpose_async(bad, good, enough(), no_stream), what + ", transpose");
  expect_refused(saxpy_async(1, bad, good, enough(), no_stream), what + ", saxpy");
}

TEST(ragged_arguments, numbers_of_a_batch) {
  expect_both_sides_refuse("rank 0", [](tensor_batch& b) { b.rank = 0; });
  expect_both_sides_refuse("rank 6", [](tensor_batch& b) { b.rank = 6; });
  expect_both_sides_refuse("no element", [](tensor_batch& b) { b.element_bytes = 0; });
  expect_both_sides_refuse("element of 17 bytes", [](tensor_batch& b) { b.element_bytes = 17; });
  expect_both_sides_refuse("too many", [](tensor_batch& b) { b.count = max_batch + 1; });
  expect_both_sides_refuse("side", [](tensor_batch& b) { b.side = static_cast<array_side>(2); });
}

TEST(ragged_arguments, arrays_of_columns) {
  const auto columns = [](tensor_batch& b) -> patch_columns& { return std::get<patch_columns>(b.tensors); };
  expect_both_sides_refuse("no addresses", [&](tensor_batch& b) { columns(b).global_address = nullptr; });
  expect_both_sides_refuse("odd addresses",
                           [&](tensor_batch& b) { columns(b).global_address = somewhere<std::uint64_t>(4); });
  expect_both_sides_refuse("no dim 1", [&](tensor_batch& b) { columns(b).global_dim[1] = nullptr; });
  expect_both_sides_refuse("odd dim 0",
                           [&](tensor_batch& b) { columns(b).global_dim[0] = somewhere<std::uint64_t>(2); });
  expect_both_sides_refuse("odd strides",
                           [&](tensor_batch& b) { columns(b).global_stride_bytes[0] = somewhere<std::uint64_t>(4); });
}

TEST(ragged_arguments, arrays_of_other_sources) {
  expect_both_sides_refuse("no patches", [](tensor_batch& b) { b.tensors = patch_array{nullptr}; });
  expect_both_sides_refuse("odd patches", [](tensor_batch& b) { b.tensors = patch_array{somewhere<map_patch>(8)}; });
  expect_both_sides_refuse("no compact columns", [](tensor_batch& b) { b.tensors = compact_columns{}; });
  expect_both_sides_refuse("no offsets", [](tensor_batch& b) { b.tensors = ragged_rows<std::int32_t>{}; });
  expect_both_sides_refuse("odd offsets", [](tensor_batch& b) {
    b.tensors = ragged_rows<std::int64_t>{0x20000, 64, somewhere<std::int64_t>(4), offset_format::ends, nullptr, 0};
  });
  expect_both_sides_refuse("offset format", [](tensor_batch& b) {
    b.tensors =
        ragged_rows<std::int64_t>{0x20000, 64, somewhere<std::int64_t>(), static_cast<offset_format>(3), nullptr, 0};
  });
}

TEST(ragged_arguments, rows_of_rank_1_are_elements) {
  tensor_batch rows = columns_batch(1);
  rows.tensors = ragged_rows<std::int32_t>{0x20000, 8, somewhere<std::int32_t>(), offset_format::ends, nullptr, 0};
  expect_refused(copy_async(rows, columns_batch(1), enough(1), no_stream), "pitch of 8 for elements of 4");
}

TEST(ragged_arguments, sides_that_differ) {
  tensor_batch fewer = columns_batch();
  fewer.count = 9;
  expect_refused(copy_async(columns_batch(), fewer, enough(), no_stream), "counts");
  expect_refused(copy_async(columns_batch(2), columns_batch(3), enough(3), no_stream), "ranks");
  expect_refused(copy_async(columns_batch(2, 4), columns_batch(2, 8), enough(), no_stream), "elements");
  fewer.count = 0;
  expect_refused(copy_async(columns_batch(), fewer, enough(), no_stream), "a count of 0 on one side");
}

TEST(ragged_arguments, workspace) {
  const tensor_batch batch = columns_batch();
  workspace small = enough();
  --small.bytes;
  const result<void> refused = copy_async(batch, batch, small, no_stream);
  expect_refused(refused, "too small");
  EXPECT_EQ(refused.error().allowed, enough().bytes);
  workspace odd = enough();
  odd.memory = reinterpret_cast<void*>(0x10080);
  expect_refused(copy_async(batch, batch, odd, no_stream), "misaligned");
  odd.memory = nullptr;
  expect_refused(saxpy_async(1, batch, batch, odd, no_stream), "null");
}

TEST(ragged_arguments, workspace_bytes) {
  EXPECT_EQ(workspace_bytes(0, 1).value(), 0u);
  EXPECT_GT(workspace_bytes(1, 1).value(), 0u);
  EXPECT_GT(workspace_bytes(max_batch, 5).value(), workspace_bytes(max_batch, 4).value());
  EXPECT_EQ(workspace_bytes(max_batch + 1, 1).error().code, status::invalid_argument);
  EXPECT_EQ(workspace_bytes(1, 0).error().code, status::invalid_argument);
  EXPECT_EQ(workspace_bytes(1, 6).error().code, status::invalid_argument);
}

/// Each part ends before the next one begins.
TEST(ragged_arguments, a_workspace_has_room_for_every_part) {
  for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{31}, std::uint64_t{32}, std::uint64_t{1000}}) {
    for (std::uint32_t rank = 1; rank <= max_rank; ++rank) {
      const std::uint64_t padded = count * (1 + rank);  // a tensor and the boxes that are filled beside it
      const std::uint64_t sums = count * sizeof(std::int64_t);
      const workspace_layout l = lay_out_workspace(count, rank);
      EXPECT_GE(l.ends - l.tensors, padded * sizeof(kernels::planned_tensor));
      EXPECT_GE(l.maps - l.ends, padded * sizeof(std::uint64_t));
      EXPECT_GE(l.begins - l.maps, 2 * count * sizeof(tensor_map));
      EXPECT_GE(l.row_begins[0] - l.begins, sums + sizeof(std::int64_t)) << count;
      EXPECT_GE(l.row_begins[1] - l.row_begins[0], sums);
      EXPECT_GE(l.arrays[0] - l.row_begins[1], sums);
      EXPECT_GE(l.arrays[1] - l.arrays[0], count * sizeof(map_patch));
      EXPECT_GE(l.partials - l.arrays[1], count * sizeof(map_patch));
      EXPECT_GE(l.queue - l.partials, kernels::reduce_partials * sizeof(float));
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

TEST(ragged_arguments, options) {
  const tensor_batch batch = columns_batch();
  const auto refused = [&](const options& with, const char* what) {
    expect_refused(copy_async(batch, batch, enough(), no_stream, with), what);
    expect_refused(transpose_async(batch, batch, enough(), no_stream, with), what);
    expect_refused(max_pool_1d_async(batch, batch, 1, enough(), no_stream, with), what);
  };
  options with;
  with.policy = static_cast<route_policy>(3);
  refused(with, "policy");
  with = {};
  with.statuses = reinterpret_cast<tensor_status*>(0x10002);
  refused(with, "statuses");
  with = {};
  with.header = reinterpret_cast<batch_header*>(0x10008);
  refused(with, "header");
  with = {};
  with.check = static_cast<fault_check>(3);
  refused(with, "check");
  with = {};
  with.window_count = 1;
  refused(with, "windows");
}

TEST(ragged_arguments, packed_buffers) {
  const tensor_batch batch = columns_batch();
  const auto refused = [&](const char* what, const std::function<void(packed_buffer&)>& spoil) {
    packed_buffer packed = some_packed();
    spoil(packed);
    expect_refused(pack_async(batch, packed, enough(), no_stream), what);
    expect_refused(unpack_async(packed, batch, enough(), no_stream), what);
  };
  refused("null", [](packed_buffer& p) { p.memory = nullptr; });
  refused("against the element", [](packed_buffer& p) { p.memory = reinterpret_cast<void*>(0x20002); });
  refused("alignment 0", [](packed_buffer& p) { p.alignment = 0; });
  refused("alignment 48", [](packed_buffer& p) { p.alignment = 48; });
  refused("alignment 2^21", [](packed_buffer& p) { p.alignment = 1 << 21; });
  refused("begins", [](packed_buffer& p) { p.begins = reinterpret_cast<std::int64_t*>(0x10004); });
  refused("bytes", [](packed_buffer& p) { p.bytes = ~std::uint64_t{0}; });
  refused("bytes beyond 2^47", [](packed_buffer& p) { p.bytes = (std::uint64_t{1} << 47) + 1; });
}

TEST(ragged_arguments, dense_batches) {
  const tensor_batch batch = columns_batch();
  const auto refused = [&](const char* what, const std::function<void(dense_batch&)>& spoil) {
    dense_batch dense = some_dense();
    spoil(dense);
    expect_refused(pad_async(batch, dense, {}, enough(), no_stream), what);
    expect_refused(unpad_async(dense, batch, enough(), no_stream), what);
  };
  refused("null", [](dense_batch& d) { d.address = 0; });
  refused("against the element", [](dense_batch& d) { d.address += 2; });
  refused("dim", [](dense_batch& d) { d.dim[1] = (std::uint64_t{1} << 40) + 1; });
  refused("stride", [](dense_batch& d) { d.stride_bytes[0] = 34; });
  refused("pitch", [](dense_batch& d) { d.tensor_pitch_bytes = 129; });
  refused("reach", [](dense_batch& d) { d.tensor_pitch_bytes = std::uint64_t{1} << 46; });
  refused("reach of 2^64", [](dense_batch& d) { d.stride_bytes[0] = std::uint64_t{1} << 63; });
  dense_batch overlapping = some_dense();
  overlapping.stride_bytes[0] = 28;
  expect_refused(pad_async(batch, overlapping, {}, enough(), no_stream), "rows that overlap");
  overlapping = some_dense();
  overlapping.tensor_pitch_bytes = 124;
  expect_refused(pad_async(batch, overlapping, {}, enough(), no_stream), "tensors that overlap");
}

/// The policy is asked for after the arguments: one that the environment misspells says that these were good.
class misspelt_policy {
 public:
  misspelt_policy() { setenv("TMAP_POLICY", "no such policy", 1); }
  ~misspelt_policy() { unsetenv("TMAP_POLICY"); }
  static bool was_asked(const result<void>& answer) { return !answer && answer.error().allowed == 0; }
};

TEST(ragged_arguments, unpad_reads_a_row_for_all_rows) {
  const misspelt_policy policy;
  dense_batch broadcast = some_dense();
  broadcast.dim[2] = 5;
  broadcast.stride_bytes[1] = 32;
  const tensor_batch batch = columns_batch(3);
  EXPECT_TRUE(policy.was_asked(unpad_async(broadcast, batch, enough(3), no_stream)));
  EXPECT_FALSE(policy.was_asked(pad_async(batch, broadcast, {}, enough(3), no_stream)));
}

TEST(ragged_arguments, rows_by_index) {
  const row_matrix good{0x20000, 100, 64, 64};
  const row_index index{somewhere<void>(), 50, 4};
  const auto refused = [&](const row_matrix& source, const row_index& rows, const row_matrix& destination,
                           const char* what) {
    expect_refused(gather_rows_async(source, rows, destination, no_stream), what);
    expect_refused(scatter_rows_async(source, rows, destination, no_stream), what);
  };
  refused({0, 100, 64, 64}, index, good, "null source");
  refused(good, index, {0, 100, 64, 64}, "null destination");
  refused({0x20000, 100, 32, 64}, index, good, "rows of other bytes");
  refused(good, index, {0x20000, 100, 64, 63}, "rows that overlap");
  refused({0x20000, 100, 64, std::uint64_t{1} << 60}, index, good, "reach");
  refused(good, {somewhere<void>(), 50, 2}, good, "index bytes");
  refused(good, {nullptr, 50, 4}, good, "null index");
  refused(good, {somewhere<void>(4), 50, 8}, good, "misaligned index");
  refused(good, {somewhere<void>(), 101, 4}, good, "more indices than rows");
}

TEST(ragged_arguments, values) {
  const tensor_batch four = columns_batch(2, 4);
  const tensor_batch two = columns_batch(2, 2);
  expect_refused(transpose_async(columns_batch(1), columns_batch(1), enough(1), no_stream), "transpose of rank 1");
  expect_refused(cast_async(four, four, {value_type::f32, value_type::f16}, enough(), no_stream), "f16 of 4 bytes");
  expect_refused(cast_async(two, two, {value_type::f32, value_type::f16}, enough(), no_stream), "f32 of 2 bytes");
  const tensor_batch one = columns_batch(2, 1);
  constexpr auto unknown = static_cast<value_type>(6);  // that of one byte, if of any
  expect_refused(cast_async(four, one, {value_type::f32, unknown}, enough(), no_stream), "to no type");
  expect_refused(cast_async(one, four, {unknown, value_type::f32}, enough(), no_stream), "from no type");
  cast_values odd{value_type::f32, value_type::f16};
  odd.scales = somewhere<float>(2);
  expect_refused(cast_async(four, two, odd, enough(), no_stream), "misaligned factors");
  odd.scales = nullptr;
  odd.shifts = somewhere<float>(2);
  expect_refused(cast_async(four, two, odd, enough(), no_stream), "misaligned shifts");
  expect_refused(saxpy_async(1, two, two, enough(), no_stream), "saxpy of 2 bytes");
  expect_refused(max_pool_1d_async(two, two, 1, enough(), no_stream), "pooling of 2 bytes");
  const auto reduced = [&](value_type type, row_reduction how, const tensor_batch& source, const tensor_batch& to) {
    return reduce_rows_async(source, type, how, to, enough(), no_stream);
  };
  expect_refused(reduced(value_type::u8, row_reduction::sum, columns_batch(2, 1), four), "sums of u8");
  expect_refused(reduced(value_type::f8_e4m3, row_reduction::sum, columns_batch(2, 1), four), "sums of f8");
  expect_refused(reduced(value_type::f16, row_reduction::sum, two, two), "sums that are no f32");
  expect_refused(reduced(value_type::f16, static_cast<row_reduction>(2), two, four), "no reduction");
}

TEST(ragged_arguments, nothing_to_do_needs_nothing) {
  tensor_batch none = columns_batch();
  none.count = 0;
  none.tensors = patch_array{nullptr};
  EXPECT_TRUE(copy_async(none, none, {}, no_stream).has_value());
  EXPECT_TRUE(pack_async(none, some_packed(), {}, no_stream).has_value());
  EXPECT_TRUE(unpack_async(some_packed(), none, {}, no_stream).has_value());
  EXPECT_TRUE(pad_async(none, some_dense(), {}, {}, no_stream).has_value());
  EXPECT_TRUE(unpad_async(some_dense(), none, {}, no_stream).has_value());
  EXPECT_TRUE(transpose_async(none, none, {}, no_stream).has_value());
  EXPECT_TRUE(saxpy_async(1, none, none, {}, no_stream).has_value());
  EXPECT_TRUE(max_pool_1d_async(none, none, 15, {}, no_stream).has_value());
  EXPECT_TRUE(cast_async(none, none, {value_type::f32, value_type::f32}, {}, no_stream).has_value());
  EXPECT_TRUE(reduce_rows_async(none, value_type::f32, row_reduction::sum, none, {}, no_stream).has_value());
  EXPECT_TRUE(gather_rows_async({0, 0, 64, 64}, {nullptr, 0, 4}, {0, 0, 64, 64}, no_stream).has_value());
}

}  // namespace
}  // namespace tmap::ragged::testing
