// SPDX-License-Identifier: Apache-2.0
// Checks that the smallest legal size passes and that one less is refused by the intended check.
// All other numbers are large enough for the later checks to pass. Covers the smallest counts, too.
#include <tmap/encode_batch.hpp>
#include <tmap/ragged.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <type_traits>

#include "lib/batch/ragged_arguments.hpp"
#include "lib/ragged/workspace.hpp"
#include "support/refusal.hpp"

namespace tmap::ragged::testing {
namespace {

constexpr std::uint64_t far = std::uint64_t{1} << 20;
constexpr std::uint64_t most_reach = std::uint64_t{1} << 47;

tensor_batch batch_of(std::uint64_t count, std::uint32_t rank, std::uint32_t element_bytes = 4) {
  tensor_batch batch;
  batch.count = count;
  batch.rank = rank;
  batch.element_bytes = element_bytes;
  return batch;
}

/// Returns 8 x 4 x 3 elements of 4 bytes, with each level as tight as possible.
dense_batch tight() {
  dense_batch dense;
  dense.address = 0x20000;
  dense.dim[0] = 8;
  dense.dim[1] = 4;
  dense.dim[2] = 3;
  dense.stride_bytes[0] = 32;
  dense.stride_bytes[1] = 128;
  dense.tensor_pitch_bytes = 384;
  return dense;
}

using tmap::testing::expect_refused;

result<void> check_dense(const dense_batch& dense, const tensor_batch& batch, bool is_destination) {
  support::arguments given;
  ragged::check_dense(given, dense, batch, is_destination, "dense");
  return given.outcome();
}

result<void> check_equal_sides(const tensor_batch& source, const tensor_batch& destination) {
  support::arguments given;
  ragged::check_equal_sides(given, {source, "source"}, {destination, "destination"});
  return given.outcome();
}

result<void> check_batch(const tensor_batch& batch) {
  support::arguments given;
  check_tensors(given, batch, "batch");
  return given.outcome();
}

TEST(ragged_tight_sizes, of_a_dense_destination_each_level_is_checked_alone) {
  for (const std::uint64_t count : {1, 2, 10}) {
    const tensor_batch batch = batch_of(count, 3);
    EXPECT_TRUE(check_dense(tight(), batch, true).has_value()) << count;
    dense_batch dense = tight();
    dense.stride_bytes[0] = 28;
    dense.stride_bytes[1] = dense.tensor_pitch_bytes = far;
    expect_refused(check_dense(dense, batch, true), "dense.stride_bytes[0]", 28, 32, "rows");
    dense = tight();
    dense.stride_bytes[1] = 124;
    dense.tensor_pitch_bytes = far;
    expect_refused(check_dense(dense, batch, true), "dense.stride_bytes[1]", 124, 128, "planes");
  }
  dense_batch dense = tight();
  dense.tensor_pitch_bytes = 380;
  EXPECT_TRUE(check_dense(dense, batch_of(1, 3), true).has_value()) << "one tensor has no next one";
  expect_refused(check_dense(dense, batch_of(2, 3), true), "dense.tensor_pitch_bytes", 380, 384, "tensors");
}

TEST(ragged_tight_sizes, a_dense_source_may_overlap) {
  dense_batch dense = tight();
  dense.stride_bytes[0] = dense.stride_bytes[1] = dense.tensor_pitch_bytes = 4;
  EXPECT_TRUE(check_dense(dense, batch_of(2, 3), false).has_value());
}

TEST(ragged_tight_sizes, steps_of_dims_of_one_are_not_looked_at) {
  dense_batch dense = tight();
  dense.dim[1] = dense.dim[2] = 1;
  dense.stride_bytes[0] = dense.stride_bytes[1] = 2;
  dense.tensor_pitch_bytes = 32;
  EXPECT_TRUE(check_dense(dense, batch_of(2, 3), true).has_value());
}

TEST(ragged_tight_sizes, of_rank_1_the_pitch_is_all_there_is) {
  dense_batch dense = tight();
  dense.tensor_pitch_bytes = 32;
  EXPECT_TRUE(check_dense(dense, batch_of(2, 1), true).has_value());
  dense.tensor_pitch_bytes = 28;
  expect_refused(check_dense(dense, batch_of(2, 1), true), "dense.tensor_pitch_bytes", 28, 32, "tensors of rank 1");
}

TEST(ragged_tight_sizes, alignment_is_that_of_the_element) {
  dense_batch dense = tight();
  dense.stride_bytes[1] = 130;
  dense.tensor_pitch_bytes = far;
  expect_refused(check_dense(dense, batch_of(1, 3), false), "dense.stride_bytes[1]", 130, 4, "planes");
  dense = tight();
  dense.tensor_pitch_bytes = far + 2;
  expect_refused(check_dense(dense, batch_of(1, 3), false), "dense.tensor_pitch_bytes", far + 2, 4, "pitch");
  EXPECT_TRUE(check_dense(dense, batch_of(2, 3, 3), false).has_value()) << "elements of 3 bytes need no alignment";
}

TEST(ragged_tight_sizes, a_dense_batch_reaches_2_to_the_47_and_no_further) {
  dense_batch dense = tight();
  dense.dim[1] = 2;
  dense.stride_bytes[0] = most_reach - 32;
  dense.tensor_pitch_bytes = 0;
  EXPECT_TRUE(check_dense(dense, batch_of(1, 2), false).has_value());
  dense.stride_bytes[0] += 4;
  expect_refused(check_dense(dense, batch_of(1, 2), false), "dense", most_reach + 4, most_reach, "one tensor");
  dense = tight();
  dense.tensor_pitch_bytes = most_reach - 384;
  EXPECT_TRUE(check_dense(dense, batch_of(2, 3), true).has_value());
  dense.tensor_pitch_bytes += 4;
  expect_refused(check_dense(dense, batch_of(2, 3), true), "dense", most_reach + 4, most_reach, "both tensors");
}

TEST(ragged_tight_sizes, strides_of_zero_mean_packed_where_all_are) {
  dense_batch dense = tight();
  dense.stride_bytes[0] = dense.stride_bytes[1] = dense.tensor_pitch_bytes = 0;
  const dense_batch packed = with_strides(dense, batch_of(2, 3));
  EXPECT_EQ(packed.stride_bytes[0], 32u);
  EXPECT_EQ(packed.stride_bytes[1], 128u);
  EXPECT_EQ(packed.tensor_pitch_bytes, 384u);
  dense.stride_bytes[1] = 512;
  expect_refused(check_dense(with_strides(dense, batch_of(1, 3)), batch_of(1, 3), true), "dense.stride_bytes[0]", 0, 32,
                 "a row stride of 0");
  EXPECT_EQ(with_strides(tight(), batch_of(2, 1)).stride_bytes[0], 32u) << "rank 1 has no stride to fill in";
}

/// Larger row strides lead to a larger tensor pitch.
TEST(ragged_tight_sizes, a_pitch_of_zero_follows_from_the_strides) {
  dense_batch dense = tight();
  dense.stride_bytes[0] = 64;
  dense.tensor_pitch_bytes = 0;
  EXPECT_EQ(with_strides(dense, batch_of(2, 2)).tensor_pitch_bytes, 256u);
  dense.stride_bytes[1] = 512;
  EXPECT_EQ(with_strides(dense, batch_of(2, 3)).tensor_pitch_bytes, 1536u);
}

/// Calls the checks directly, because a workspace for too many tensors would be refused, too.
TEST(ragged_tight_sizes, the_numbers_of_a_batch_are_checked_alone) {
  tensor_batch batch = batch_of(max_batch, max_rank, 16);
  batch.tensors = patch_array{reinterpret_cast<const map_patch*>(0x10000)};
  EXPECT_TRUE(check_batch(batch).has_value());
  const auto refused = [&](auto tensor_batch::*number, std::uint64_t found, std::uint64_t allowed, const char* name) {
    tensor_batch bad = batch;
    bad.*number = static_cast<std::decay_t<decltype(bad.*number)>>(found);
    expect_refused(check_batch(bad), name, found, allowed, name);
  };
  refused(&tensor_batch::count, max_batch + 1, max_batch, "batch.count");
  refused(&tensor_batch::rank, max_rank + 1, max_rank, "batch.rank");
  refused(&tensor_batch::rank, 0, 1, "batch.rank");
  refused(&tensor_batch::element_bytes, 17, 16, "batch.element_bytes");
  refused(&tensor_batch::element_bytes, 0, 1, "batch.element_bytes");
}

TEST(ragged_tight_sizes, sides_differ_in_both_directions) {
  tensor_batch small = batch_of(2, 2);
  small.tensors = patch_array{reinterpret_cast<const map_patch*>(0x10000)};
  tensor_batch large = small;
  large.rank = 3;
  expect_refused(check_equal_sides(small, large), "destination.rank", 3, 2, "rank above");
  expect_refused(check_equal_sides(large, small), "destination.rank", 2, 3, "rank below");
  large = small;
  large.count = 3;
  expect_refused(check_equal_sides(small, large), "destination.count", 3, 2, "count above");
  expect_refused(check_equal_sides(large, small), "destination.count", 2, 3, "count below");
  large = small;
  large.element_bytes = 8;
  expect_refused(check_equal_sides(small, large), "destination.element_bytes", 8, 4, "element above");
  expect_refused(check_equal_sides(large, small), "destination.element_bytes", 4, 8, "element below");
  large.element_bytes = 2;
  support::arguments given;
  ragged::check_values(given, {small, "source"}, 4, {large, "destination"}, 2);
  EXPECT_TRUE(given.outcome().has_value()) << "they may differ";
}

TEST(ragged_tight_sizes, a_workspace_of_just_the_bytes_is_enough) {
  const tensor_batch batch = batch_of(10, 2);
  const std::uint64_t needed = workspace_bytes(10, 2).value();
  void* const memory = reinterpret_cast<void*>(0x10000);
  EXPECT_TRUE(check_workspace_of(batch, {memory, needed}).has_value());
  expect_refused(check_workspace_of(batch, {memory, needed - 1}), "scratch.bytes", needed - 1, needed, "a byte less");
}

const cuda::stream_ref default_stream{cudaStream_t{}};

/// Without indices nothing is enqueued, but everything else is checked.
result<void> checked_matrices(const row_matrix& source, const row_matrix& destination) {
  return gather_rows(source, {nullptr, 0, 4}, destination, {on_stream{default_stream}});
}

TEST(ragged_tight_sizes, of_matrices_two_rows_are_enough_to_overlap) {
  const row_matrix two{0x20000, 2, 64, 64};
  EXPECT_TRUE(checked_matrices(two, two).has_value());
  expect_refused(checked_matrices(two, {0x20000, 2, 64, 63}), "destination.pitch_bytes", 63, 64, "destination");
  EXPECT_TRUE(checked_matrices({0x20000, 2, 64, 63}, two).has_value()) << "rows of a source may overlap";
  EXPECT_TRUE(checked_matrices({0x20000, 1, 64, 0}, {0x20000, 1, 64, 0}).has_value()) << "one row has no next one";
  EXPECT_TRUE(checked_matrices({0x20000, 2, 64, most_reach}, {0x20000, 2, 64, most_reach}).has_value());
  expect_refused(checked_matrices(two, {0x20000, 2, 64, most_reach + 1}), "destination.pitch_bytes", most_reach + 1,
                 most_reach, "reach");
}

TEST(ragged_tight_sizes, rows_reach_2_to_the_47_and_no_further) {
  for (const std::uint64_t rows : {1, 2}) {
    const row_matrix longest{0x20000, rows, most_reach, most_reach};
    EXPECT_TRUE(checked_matrices(longest, longest).has_value()) << rows;
    const row_matrix longer{0x20000, rows, most_reach + 1, most_reach};
    expect_refused(checked_matrices(longer, longest), "source.row_bytes", most_reach + 1, most_reach, "source");
    expect_refused(checked_matrices(longest, longer), "destination.row_bytes", most_reach + 1, most_reach,
                   "destination");
  }
}

/// An index of 3 bytes is refused last, so its refusal shows that all earlier checks passed.
TEST(ragged_tight_sizes, indices_are_counted_by_the_matrix_that_they_walk) {
  const row_matrix many{0x20000, 100, 64, 64};
  const row_matrix four{0x20000, 4, 64, 64};
  const row_index five{reinterpret_cast<const void*>(0x10000), 5, 3};
  expect_refused(gather_rows(four, five, many, {on_stream{default_stream}}), "index.bytes", 3, 8,
                 "gathers into many rows");
  expect_refused(gather_rows(many, five, four, {on_stream{default_stream}}), "destination.rows", 4, 5,
                 "gathers into four rows");
  expect_refused(scatter_rows(many, five, four, {on_stream{default_stream}}), "index.bytes", 3, 8,
                 "scatters many rows");
  expect_refused(scatter_rows(four, five, many, {on_stream{default_stream}}), "source.rows", 4, 5,
                 "scatters four rows");
}

}  // namespace
}  // namespace tmap::ragged::testing
