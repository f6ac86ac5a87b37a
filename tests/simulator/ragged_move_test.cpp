// SPDX-License-Identifier: Apache-2.0
// Moves ragged batches on the host with every operation, route, element size and rank. Compares
// every byte of both memories.
#include <tmap/ragged.hpp>

#include <gtest/gtest.h>

#include <tuple>

#include "simulator/ragged_host_side.hpp"
#include "support/ragged_reference.hpp"

namespace tmap::testing {
namespace {

using ragged::fault;
using ragged::tensor_status;

/// Holds the rank, the bytes of an element, and the allowed routes.
using move_case = std::tuple<std::uint32_t, std::uint32_t, route_set>;

class ragged_move : public ::testing::TestWithParam<move_case> {
 protected:
  std::uint32_t rank() const { return std::get<0>(GetParam()); }
  std::uint32_t element_bytes() const { return std::get<1>(GetParam()); }

  ragged::run pinned() const {
    ragged::run with{on_host{}};
    with.choices.allowed = std::get<2>(GetParam());
    with.choices.policy = with.choices.allowed == all_routes ? route_policy::enable : route_policy::force;
    return with;
  }

  std::vector<extents> shapes(source_form form) { return random_shapes(random_, {rank(), 8, 2000, is_rows(form), 9}); }
  host_batch laid_out(const std::vector<extents>& shapes, source_form form) {
    return lay_out(random_, shapes, rank(), element_bytes(), form);
  }
  source_form any_form() { return static_cast<source_form>(random_.below32(source_forms)); }

  /// Returns dims that fit the first tensors, as many as possible while the dims stay small: cuts
  /// some tensors and pads others.
  static extents around(const std::vector<extents>& all) {
    extents shape;
    for (const extents& one : all) {
      extents larger = shape;
      for (std::uint32_t axis = 0; axis < max_rank; ++axis) larger.dim[axis] = std::max(shape.dim[axis], one.dim[axis]);
      if (larger.elements() <= 6000) shape = larger;
    }
    return shape;
  }

  random_source random_{rank() * 100 + element_bytes()};
};

TEST_P(ragged_move, copy_from_every_form_into_every_form) {
  for (std::uint32_t from = 0; from < source_forms; ++from) {
    const auto source_form_ = static_cast<source_form>(from);
    const auto all = shapes(source_form_);
    const source_form to = is_rows(source_form_) ? any_form() : static_cast<source_form>(random_.below32(4));
    host_batch source = laid_out(all, source_form_);
    host_batch destination = laid_out(all, to);
    host_batch expected = destination;
    reference::copy(source, expected);
    const std::vector<unsigned char> untouched = source.bytes;
    const auto copied =
        ragged::copy(host_side{source, source_form_}.described, host_side{destination, to}.described, pinned());
    ASSERT_TRUE(copied) << to_string(copied.error());
    expect_bytes(expected.bytes, destination.bytes);
    expect_bytes(untouched, source.bytes);
  }
}

TEST_P(ragged_move, pack_and_unpack) {
  for (const std::uint64_t alignment : {1, 16, 256}) {
    const source_form form = any_form();
    host_batch source = laid_out(shapes(form), form);
    const std::uint64_t packed_alignment = std::max<std::uint64_t>(alignment, element_alignment(element_bytes()));
    const auto begins = reference::packed_begins(source, packed_alignment);
    const auto bytes = static_cast<std::uint64_t>(begins.back());
    host_batch packed =
        reference::packed_batch(source, packed_alignment, 64, std::vector<unsigned char>(bytes + 128, 7));
    host_batch expected = packed;
    reference::copy(source, expected);

    std::vector<std::int64_t> written(source.tensors.size() + 1, -1);
    const ragged::packed_buffer buffer{packed.bytes.data() + 64, bytes, packed_alignment, written.data()};
    ASSERT_TRUE(ragged::pack(host_side{source, form}.described, buffer, pinned()));
    expect_bytes(expected.bytes, packed.bytes);
    EXPECT_EQ(written, begins);

    host_batch back = source;
    for (unsigned char& byte : back.bytes) byte = static_cast<unsigned char>(~byte);
    host_batch wanted = back;
    reference::copy(packed, wanted);
    ASSERT_TRUE(ragged::unpack(buffer, host_side{back, form}.described, pinned()));
    expect_bytes(wanted.bytes, back.bytes);
    EXPECT_EQ(written, begins);
  }
}

TEST_P(ragged_move, pad_cuts_and_fills) {
  const source_form form = any_form();
  const auto all = shapes(form);
  host_batch source = laid_out(all, form);
  const extents dense_shape = around(all);
  host_dense dense = lay_out_dense(random_, dense_shape, all.size(), rank(), element_bytes());
  host_batch expected = dense.batch;
  ragged::fill_value fill;
  for (unsigned char& byte : fill.bytes) byte = static_cast<unsigned char>(random_.bits());
  reference::pad(source, expected, fill);

  std::vector<tensor_status> statuses(all.size());
  ragged::run with = pinned();
  with.statuses = statuses.data();
  const auto address = reinterpret_cast<std::uint64_t>(dense.batch.bytes.data());
  ASSERT_TRUE(ragged::pad(host_side{source, form}.described, dense.described(address), fill, with));
  expect_bytes(expected.bytes, dense.batch.bytes);
  for (std::size_t i = 0; i < all.size(); ++i) {
    bool is_larger = false;
    for (std::uint32_t axis = 0; axis < rank(); ++axis) is_larger |= all[i].dim[axis] > dense_shape.dim[axis];
    const bool is_empty = all[i].elements() == 0;
    EXPECT_EQ(statuses[i].is_empty(), is_empty) << i;
    EXPECT_EQ(statuses[i].has(fault::truncated), is_larger && !is_empty) << i;
  }
}

TEST_P(ragged_move, pad_fills_the_places_of_bad_tensors) {
  const std::vector<extents> all = random_shapes(random_, {rank(), 12, 600, false, 0});
  host_batch source = laid_out(all, source_form::array);
  host_dense dense = lay_out_dense(random_, around(all), all.size(), rank(), element_bytes());
  ragged::fill_value fill;
  for (unsigned char& byte : fill.bytes) byte = static_cast<unsigned char>(random_.bits());
  const host_side from{source, source_form::array};
  std::vector<bool> is_bad(all.size());
  for (std::size_t i = 1; i < all.size(); i += 3) {
    is_bad[i] = true;
    if (i % 2 == 0) from.patches()[i].global_address = 0;
    if (i % 2 == 1) from.patches()[i].global_dim[random_.below(rank())] = ~std::uint64_t{0} >> random_.below(23);
  }
  host_batch expected = dense.batch;
  reference::pad(source, expected, fill, is_bad);

  std::vector<tensor_status> statuses(all.size());
  ragged::run with = pinned();
  with.statuses = statuses.data();
  const auto address = reinterpret_cast<std::uint64_t>(dense.batch.bytes.data());
  ASSERT_TRUE(ragged::pad(from.described, dense.described(address), fill, with));
  expect_bytes(expected.bytes, dense.batch.bytes);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(statuses[i].is_bad() && !statuses[i].has(fault::truncated), is_bad[i]) << i;
  }
}

TEST_P(ragged_move, unpad_leaves_tensors_that_do_not_fit) {
  const source_form form = any_form();
  const auto all = shapes(form);
  host_batch destination = laid_out(all, form);
  const extents dense_shape = around(all);
  host_dense dense = lay_out_dense(random_, dense_shape, all.size(), rank(), element_bytes());
  host_batch expected = destination;
  reference::unpad(dense.batch, expected);
  const auto address = reinterpret_cast<std::uint64_t>(dense.batch.bytes.data());
  ASSERT_TRUE(ragged::unpad(dense.described(address), host_side{destination, form}.described, pinned()));
  expect_bytes(expected.bytes, destination.bytes);
}

TEST(ragged_move_arguments, dense_tensors_that_overlap_are_refused) {
  alignas(16) unsigned char from[64] = {};
  alignas(16) unsigned char to[64] = {};
  const map_patch patches[3] = {{reinterpret_cast<std::uint64_t>(from), {}, {16, 1, 1, 1, 1}, {}, {}}};
  for (const std::uint64_t count : {2, 3}) {
    const tensor_batch batch{.tensors = patch_array{patches}, .count = count, .element_bytes = 1, .rank = 1};
    dense_batch dense{reinterpret_cast<std::uint64_t>(to), {16}, {}, 15};
    EXPECT_FALSE(ragged::pad(batch, dense, {}, {on_host{}})) << count;
    dense.tensor_pitch_bytes = 16;
    EXPECT_TRUE(ragged::pad(batch, dense, {}, {on_host{}})) << count;
  }
}

TEST(ragged_move_arguments, no_more_indices_than_rows_that_are_walked) {
  unsigned char from[4] = {1, 2, 3, 4};
  unsigned char to[4] = {};
  const std::int32_t rows[4] = {3, 2, 1, 0};
  const auto matrix = [](unsigned char* bytes, std::uint64_t count) {
    return ragged::row_matrix{reinterpret_cast<std::uint64_t>(bytes), count, 1, 1};
  };
  EXPECT_FALSE(ragged::gather_rows(matrix(from, 4), {rows, 4, 4}, matrix(to, 3), {on_host{}}));
  EXPECT_FALSE(ragged::scatter_rows(matrix(from, 3), {rows, 4, 4}, matrix(to, 4), {on_host{}}));
  EXPECT_EQ(to[3], 0);
  ASSERT_TRUE(ragged::gather_rows(matrix(from, 4), {rows, 4, 4}, matrix(to, 4), {on_host{}}));
  EXPECT_EQ(to[3], 1);
}

/// An address counts units in 32 bits, so addresses reach up to 64 GiB.
TEST(ragged_move_arguments, compact_addresses_reach_beyond32_bits) {
  alignas(16) unsigned char from[16] = {5, 6, 7};
  unsigned char to[16] = {};
  const std::uint32_t units[] = {0xffff'ffff};
  const std::uint32_t dim[] = {3};
  compact_columns columns{};
  columns.base_address = reinterpret_cast<std::uint64_t>(from) - 16 * std::uint64_t{0xffff'ffff};
  columns.address_units = units;
  columns.global_dim[0] = dim;
  const map_patch patch{reinterpret_cast<std::uint64_t>(to), {}, {3, 1, 1, 1, 1}, {}, {}};
  const tensor_batch source{.tensors = columns, .count = 1, .element_bytes = 1, .rank = 1};
  const tensor_batch destination{.tensors = patch_array{&patch}, .count = 1, .element_bytes = 1, .rank = 1};
  ragged::tensor_status status{77};
  ragged::run with{on_host{}};
  with.statuses = &status;
  ASSERT_TRUE(ragged::copy(source, destination, with));
  EXPECT_TRUE(status.is_good());
  EXPECT_EQ(to[2], 7);
}

std::string name_of(const ::testing::TestParamInfo<move_case>& info) {
  const auto& [rank, bytes, allowed] = info.param;
  std::string route_name = "mixed";
  for (std::uint32_t r = 0; r < route_count; ++r) {
    if (allowed == route_bit(static_cast<route>(r))) route_name = name(static_cast<route>(r));
  }
  return "rank" + std::to_string(rank) + "_bytes" + std::to_string(bytes) + "_" + route_name;
}

INSTANTIATE_TEST_SUITE_P(all, ragged_move,
                         ::testing::Combine(::testing::Range(1u, 6u), ::testing::Values(1u, 2u, 3u, 4u, 8u, 16u),
                                            ::testing::Values(all_routes, route_bit(route::tensor_map),
                                                              route_bit(route::bulk), route_bit(route::ldgsts),
                                                              route_bit(route::plain))),
                         name_of);

}  // namespace
}  // namespace tmap::testing
