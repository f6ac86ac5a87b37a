// SPDX-License-Identifier: Apache-2.0
// Tests that every patch source and offset format yields the maps that a host loop over the same
// numbers describes.
#include <tmap/encode_batch.hpp>

#include <memory>

#include "device/gpu_fixture.hpp"
#include "device/safe_map.hpp"
#include "support/random_spec.hpp"

namespace tmap::testing {
namespace {

const cuda::stream_ref default_stream{cudaStream_t{}};

/// Returns a spec of `rank` whose inner dims and strides are ordinary and whose outermost dim is 1.
tensor_spec slice_spec(std::uint32_t rank) {
  const std::uint64_t dims[] = {64, 6, 5, 4, 3};
  const std::uint32_t box[] = {16, 2, 2, 2, 2};
  tensor_spec spec = packed_spec(element_type::f16, 1 << 20, {dims, rank}, {box, rank});
  spec.global_dim[rank - 1] = 1;
  return spec;
}

tensor_map expected_map(const map_template& base, std::uint64_t address, std::uint64_t outer_dim) {
  tensor_map map = base.map;
  map.words[0] = address;
  const std::uint32_t axis = base.spec.rank - 1;
  const auto stored = static_cast<std::uint32_t>(outer_dim - 1);
  std::memcpy(reinterpret_cast<unsigned char*>(map.words) + 32 + 4 * axis, &stored, sizeof(stored));
  return map;
}

/// Returns the rows of each tensor. Many are 0 and some large, like batches of experts or
/// sequences.
template <class Offset>
std::vector<Offset> random_sizes(std::uint64_t count, random_source& random) {
  std::vector<Offset> sizes(count);
  for (Offset& size : sizes) size = random.one_in(3) ? 0 : static_cast<Offset>(random.of_random_length(9));
  return sizes;
}

template <class Offset>
std::vector<Offset> offsets_of(const std::vector<Offset>& sizes, offset_format format) {
  std::vector<Offset> offsets;
  Offset sum = 0;
  if (format == offset_format::prefix) offsets.push_back(0);
  for (const Offset size : sizes) {
    sum = static_cast<Offset>(sum + size);
    offsets.push_back(format == offset_format::sizes ? size : sum);
  }
  return offsets;
}

template <class Offset>
void check_ragged(std::uint64_t count, std::uint32_t rank, offset_format format, random_source& random) {
  const std::vector<Offset> sizes = random_sizes<Offset>(count, random);
  const device_array<Offset> offsets(offsets_of(sizes, format));
  const result<std::uint64_t> workspace_bytes = ragged_workspace_bytes(count, sizeof(Offset));
  TMAP_ASSERT_OK(workspace_bytes);
  const device_array<unsigned char> workspace(*workspace_bytes);
  const result<map_template> base = make_template(slice_spec(rank), patch_address | patch_dim(rank - 1));
  TMAP_ASSERT_OK(base);
  const ragged_rows source{1 << 20, 4096, {offsets.data(), format, sizeof(Offset)}};
  const on_stream where{default_stream, {workspace.data(), workspace.bytes()}};
  const device_array<tensor_map> slots(count);
  const device_array<tensor_map> copied(count);
  TMAP_ASSERT_OK(encode_batch(*base, source, slots.data(), count, {where}));
  TMAP_ASSERT_OK(encode_batch(*base, source, copied.data(), count,
                              {.where = where, .choices = {.published_by = publish::copy_fence}}));
  const std::vector<tensor_map> maps = slots.download();
  ASSERT_TRUE(copied.download() == maps) << count << " maps published by copies";
  const tensor_map empty = safe_map(*base);
  std::uint64_t row = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto rows = static_cast<std::uint64_t>(sizes[i]);
    const tensor_map expected = rows == 0 ? empty : expected_map(*base, (1 << 20) + row * 4096, rows);
    ASSERT_EQ(maps[i], expected) << i << " of " << count;
    row += rows;
  }
}

using patch_source = gpu_test;

/// Returns every way to judge and to publish.
std::vector<encode_choices> all_ways() {
  std::vector<encode_choices> ways;
  for (const bool trusted : {false, true}) {
    for (const publish how : {publish::stores, publish::copy_fence}) {
      ways.push_back({.trusted = trusted, .published_by = how});
    }
  }
  return ways;
}

TEST_F(patch_source, ragged_rows_of_every_format_rank_and_offset_type) {
  random_source random(3);
  for (const offset_format format : {offset_format::ends, offset_format::prefix, offset_format::sizes}) {
    for (std::uint32_t rank = 1; rank <= max_rank; ++rank) {
      for (const std::uint64_t count : {1ull, 31ull, 32ull, 33ull, 255ull, 5000ull}) {
        check_ragged<std::int32_t>(count, rank, format, random);
        check_ragged<std::int64_t>(count, rank, format, random);
      }
    }
  }
}

// A trusted batch stores the dim that it is given. The hardware reads a dim of 0 as 2^32 rows.
TEST_F(patch_source, no_rows_are_the_empty_map_unless_trusted) {
  const device_array<std::int32_t> offsets(std::vector<std::int32_t>{0, 4, 4});
  const result<map_template> base = make_template(slice_spec(2), patch_address | patch_dim(1));
  TMAP_ASSERT_OK(base);
  const device_array<tensor_map> slots(3);
  const ragged_rows source{1 << 20, 4096, {offsets.data(), offset_format::ends}};
  TMAP_ASSERT_OK(encode_batch(*base, source, slots.data(), 3, {default_stream}));
  std::vector<tensor_map> maps = slots.download();
  EXPECT_EQ(maps[0], safe_map(*base));
  EXPECT_EQ(maps[1], expected_map(*base, 1 << 20, 4));
  EXPECT_EQ(maps[2], safe_map(*base));
  TMAP_ASSERT_OK(
      encode_batch(*base, source, slots.data(), 3, {.where = {default_stream}, .choices = {.trusted = true}}));
  maps = slots.download();
  EXPECT_EQ(maps[0], expected_map(*base, 1 << 20, 0));
  EXPECT_EQ(maps[2], expected_map(*base, (1 << 20) + 4 * 4096, 0));
}

template <class Offset>
void expect_refused(offset_format format, const std::vector<Offset>& values, std::uint32_t bad_index) {
  const device_array<Offset> offsets(values);
  const std::uint64_t count = values.size() - (format == offset_format::prefix ? 1 : 0);
  const device_array<unsigned char> workspace(ragged_workspace_bytes(count, sizeof(Offset)).value_or(0));
  const result<map_template> base = make_template(slice_spec(2), patch_address | patch_dim(1));
  TMAP_ASSERT_OK(base);
  const ragged_rows source{1 << 20, 4096, {offsets.data(), format, sizeof(Offset)}};
  const on_stream where{default_stream, {workspace.data(), workspace.bytes()}};
  const device_array<tensor_map> slots(count);
  const device_array<map_status> statuses(count);
  const device_array<batch_header> header(1);
  TMAP_ASSERT_OK(encode_batch(*base, source, slots.data(), count,
                              {.where = where, .statuses = statuses.data(), .header = header.data()}));
  EXPECT_EQ(slots.download()[bad_index], safe_map(*base));
  EXPECT_TRUE(rules_of(statuses.download()[bad_index]).contains(rule::t09_global_dim_range));
  EXPECT_EQ(header.download()[0].bad_count, 1u);
  EXPECT_EQ(header.download()[0].first_bad, bad_index);
}

TEST_F(patch_source, negative_sizes_and_decreasing_ends_are_refused) {
  expect_refused<std::int32_t>(offset_format::ends, {9, 12, 7, 20}, 2);
  expect_refused<std::int64_t>(offset_format::ends, {9, 12, 7, 20}, 2);
  expect_refused<std::int32_t>(offset_format::ends, {-1, 12, 20}, 0);
  expect_refused<std::int32_t>(offset_format::prefix, {0, 12, 7, 20}, 1);
  expect_refused<std::int64_t>(offset_format::prefix, {0, 12, INT64_MIN, INT64_MIN + 4}, 1);
  expect_refused<std::int32_t>(offset_format::sizes, {9, -2, 20}, 1);
  expect_refused<std::int64_t>(offset_format::sizes, {9, INT64_MIN, 4}, 1);
}

// Tensor 0 ends with the last row, and tensor 1 has one more row. Tensor 2 begins past the end,
// tensor 3 is empty there, and tensor 4 ends before it begins.
TEST_F(patch_source, rows_that_do_not_exist_are_refused) {
  const device_array<std::int64_t> offsets(std::vector<std::int64_t>{8, 9, 12, 12, 2});
  const result<map_template> base = make_template(slice_spec(2), patch_address | patch_dim(1));
  TMAP_ASSERT_OK(base);
  const device_array<tensor_map> slots(5);
  const device_array<map_status> statuses(5);
  const ragged_rows source{1 << 20, 4096, {offsets.data(), offset_format::ends, 8}, 8};
  TMAP_ASSERT_OK(
      encode_batch(*base, source, slots.data(), 5, {.where = {default_stream}, .statuses = statuses.data()}));
  const std::vector<tensor_map> maps = slots.download();
  const std::vector<map_status> found = statuses.download();
  EXPECT_EQ(maps[0], expected_map(*base, 1 << 20, 8));
  EXPECT_TRUE(found[0].is_good() && found[3].is_empty());
  for (const std::uint32_t i : {1, 2, 3, 4}) EXPECT_EQ(maps[i], safe_map(*base)) << i;
  for (const std::uint32_t i : {1, 2, 4}) {
    EXPECT_TRUE(rules_of(found[i]).contains(rule::t05_address_null)) << i;
  }
}

// The sum of 2^20 sizes of 2^16 rows is 2^36, more than the offset type can hold.
TEST_F(patch_source, sums_of_32_bit_sizes_are_64_bits_wide) {
  const std::uint64_t count = scaled(1 << 20);
  const device_array<std::int32_t> sizes(std::vector<std::int32_t>(count, 1 << 16));
  const device_array<unsigned char> workspace(*ragged_workspace_bytes(count, 4));
  const result<map_template> base = make_template(slice_spec(2), patch_address | patch_dim(1));
  TMAP_ASSERT_OK(base);
  const ragged_rows source{1 << 20, 16, {sizes.data(), offset_format::sizes}};
  const device_array<tensor_map> slots(count);
  TMAP_ASSERT_OK(
      encode_batch(*base, source, slots.data(), count, {{default_stream, {workspace.data(), workspace.bytes()}}}));
  const std::vector<tensor_map> maps = slots.download();
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    wrong += maps[i] != expected_map(*base, (1 << 20) + (i << 16) * 16, 1 << 16) ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0u);
}

TEST_F(patch_source, sizes_need_their_workspace) {
  const device_array<std::int32_t> sizes(std::vector<std::int32_t>(100, 1));
  const result<map_template> base = make_template(slice_spec(2), patch_address | patch_dim(1));
  TMAP_ASSERT_OK(base);
  const device_array<tensor_map> slots(100);
  const std::uint64_t bytes = ragged_workspace_bytes(100, 4).value_or(0);
  const device_array<unsigned char> workspace(bytes);
  const ragged_rows source{1 << 20, 16, {sizes.data(), offset_format::sizes}};
  encode_run run{{default_stream, {workspace.data(), bytes - 1}}};
  const result<void> small = encode_batch(*base, source, slots.data(), 100, run);
  ASSERT_FALSE(small.has_value());
  EXPECT_EQ(small.error().code, status::invalid_argument);
  EXPECT_EQ(small.error().allowed, bytes);
  run.where.scratch = {nullptr, bytes};
  EXPECT_EQ(encode_batch(*base, source, slots.data(), 100, run).error().code, status::invalid_argument);
  for (const tensor_map& map : slots.download()) EXPECT_TRUE(is_poison(map));
}

TEST_F(patch_source, sizes_are_summed_whatever_error_was_pending) {
  random_source random(8);
  EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
  check_ragged<std::int32_t>(100, 2, offset_format::sizes, random);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

/// Makes one array for each field from specs. `columns` points into them.
struct column_arrays {
  std::vector<std::unique_ptr<device_array<std::uint64_t>>> arrays;
  patch_columns columns{};

  const std::uint64_t* add(const std::vector<tensor_spec>& specs, std::uint64_t (*field)(const tensor_spec&, int),
                           int index) {
    std::vector<std::uint64_t> values;
    for (const tensor_spec& spec : specs) values.push_back(field(spec, index));
    arrays.push_back(std::make_unique<device_array<std::uint64_t>>(values));
    return arrays.back()->data();
  }
};

column_arrays columns_of(const std::vector<tensor_spec>& specs, std::uint32_t rank) {
  column_arrays made;
  made.columns.global_address = made.add(
      specs, [](const tensor_spec& spec, int) { return spec.global_address.value(); }, 0);
  for (std::uint32_t axis = 0; axis < rank; ++axis) {
    const auto index = static_cast<int>(axis);
    made.columns.global_dim[axis] = made.add(
        specs, [](const tensor_spec& spec, int at) { return spec.global_dim[at]; }, index);
    if (axis + 1 == rank) break;
    made.columns.global_stride_bytes[axis] = made.add(
        specs, [](const tensor_spec& spec, int at) { return spec.global_stride_bytes[at]; }, index);
  }
  return made;
}

TEST_F(patch_source, columns_of_every_rank_equal_an_array_of_patches) {
  random_source random(9);
  for (std::uint32_t rank = 1; rank <= max_rank; ++rank) {
    std::vector<tensor_spec> specs(1000, slice_spec(rank));
    std::vector<map_patch> patches(specs.size());
    for (std::uint64_t i = 0; i < specs.size(); ++i) {
      specs[i].global_address = patches[i].global_address = 16 * random.of_random_length(40);
      for (std::uint32_t axis = 0; axis < rank; ++axis) {
        specs[i].global_dim[axis] = patches[i].global_dim[axis] = 1 + random.of_random_length(31);
        if (axis + 1 == rank) break;
        specs[i].global_stride_bytes[axis] = patches[i].global_stride_bytes[axis] = 16 * random.of_random_length(36);
      }
    }
    const result<map_template> base = make_template(slice_spec(rank), patch_extents(rank));
    TMAP_ASSERT_OK(base);
    const column_arrays columns = columns_of(specs, rank);
    const device_array<map_patch> array(patches);
    for (const encode_choices& way : all_ways()) {
      const device_array<tensor_map> by_columns(specs.size());
      const device_array<tensor_map> by_array(specs.size());
      const encode_run by_way{.where = {default_stream}, .choices = way};
      const encode_run by_stores{.where = {default_stream}, .choices = {.trusted = way.trusted}};
      TMAP_ASSERT_OK(encode_batch(*base, columns.columns, by_columns.data(), specs.size(), by_way));
      TMAP_ASSERT_OK(encode_batch(*base, patch_array{array.data()}, by_array.data(), specs.size(), by_stores));
      EXPECT_TRUE(by_columns.download() == by_array.download()) << "rank " << rank;
    }
  }
}

/// Holds one array of 32 bits for each field.
struct compact_arrays {
  std::vector<std::unique_ptr<device_array<std::uint32_t>>> arrays;
  compact_columns columns{};

  const std::uint32_t* add(const std::vector<std::uint32_t>& values) {
    arrays.push_back(std::make_unique<device_array<std::uint32_t>>(values));
    return arrays.back()->data();
  }
};

/// Fills one field of every patch from 32 random bits, and returns the equivalent column.
template <class Write>
std::vector<std::uint32_t> random_column(std::vector<map_patch>& patches, random_source& random, const Write& write) {
  std::vector<std::uint32_t> column(patches.size());
  for (std::uint64_t i = 0; i < patches.size(); ++i) {
    column[i] = static_cast<std::uint32_t>(random.of_random_length(32));
    write(patches[i], column[i]);
  }
  return column;
}

TEST_F(patch_source, compact_columns_of_every_rank_equal_an_array_of_patches) {
  random_source random(10);
  constexpr std::uint64_t base_address = 0x7f0000000000;
  for (std::uint32_t rank = 1; rank <= max_rank; ++rank) {
    std::vector<map_patch> patches(1000);
    compact_arrays compact;
    compact.columns.base_address = base_address;
    compact.columns.address_units =
        compact.add(random_column(patches, random, [](map_patch& patch, std::uint64_t units) {
          patch.global_address = base_address + 16 * units;
        }));
    for (std::uint32_t axis = 0; axis < rank; ++axis) {
      compact.columns.global_dim[axis] = compact.add(
          random_column(patches, random, [=](map_patch& patch, std::uint64_t dim) { patch.global_dim[axis] = dim; }));
      if (axis + 1 == rank) break;
      compact.columns.global_stride_units[axis] =
          compact.add(random_column(patches, random, [=](map_patch& patch, std::uint64_t units) {
            patch.global_stride_bytes[axis] = 16 * units;
          }));
    }
    const result<map_template> base = make_template(slice_spec(rank), patch_extents(rank));
    TMAP_ASSERT_OK(base);
    const device_array<map_patch> array(patches);
    for (const encode_choices& way : all_ways()) {
      const device_array<tensor_map> by_columns(patches.size());
      const device_array<tensor_map> by_array(patches.size());
      const encode_run by_way{.where = {default_stream}, .choices = way};
      const encode_run by_stores{.where = {default_stream}, .choices = {.trusted = way.trusted}};
      TMAP_ASSERT_OK(encode_batch(*base, compact.columns, by_columns.data(), patches.size(), by_way));
      TMAP_ASSERT_OK(encode_batch(*base, patch_array{array.data()}, by_array.data(), patches.size(), by_stores));
      EXPECT_TRUE(by_columns.download() == by_array.download()) << "rank " << rank;
    }
  }
}

}  // namespace
}  // namespace tmap::testing
