// SPDX-License-Identifier: Apache-2.0
// Reads offsets in each format and width and expects the same rows, including negative sizes.
#include <tmap/detail/row_offsets.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace tmap::testing {
namespace {

using detail::offset_reader;
using detail::reader_of;
using detail::too_many_rows;

struct offset_rows {
  std::int64_t begin;
  std::uint64_t count;
};

template <class Integer>
void expect_rows(const offset_reader<Integer>& offsets, const std::vector<offset_rows>& expected,
                 const std::int64_t* begins = nullptr) {
  for (std::uint64_t i = 0; i < expected.size(); ++i) {
    const std::int64_t begin = offsets.begin(i, begins);
    EXPECT_EQ(begin, expected[i].begin) << "item " << i;
    EXPECT_EQ(offsets.count(i, static_cast<std::uint64_t>(begin)), expected[i].count) << "item " << i;
  }
}

/// Reads with a reader that knows the type, and with one that gets the width as an argument.
template <class Offset>
void expect_both(const std::vector<Offset>& values, offset_format format, const std::vector<offset_rows>& expected,
                 const std::int64_t* begins = nullptr) {
  expect_rows(offset_reader<Offset>{{values.data()}, format, {}, 0}, expected, begins);
  expect_rows(offset_reader<void>{{values.data(), sizeof(Offset)}, format, {}, 0}, expected, begins);
}

template <class Offset>
class row_offsets_reading : public ::testing::Test {};
using offset_types = ::testing::Types<std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(row_offsets_reading, offset_types);

TYPED_TEST(row_offsets_reading, every_format_says_the_same_rows) {
  const std::vector<offset_rows> rows = {{0, 3}, {3, 0}, {3, 4}};
  const std::vector<std::int64_t> begins = {0, 3, 3};
  expect_both<TypeParam>({3, 3, 7}, offset_format::ends, rows);
  expect_both<TypeParam>({0, 3, 3, 7}, offset_format::prefix, rows);
  expect_both<TypeParam>({3, 0, 4}, offset_format::sizes, rows, begins.data());
}

TYPED_TEST(row_offsets_reading, begins_and_counts_are_read_as_they_are) {
  const std::vector<TypeParam> begins = {7, 0, -4};
  const std::vector<TypeParam> counts = {2, 0, -1};
  const std::vector<offset_rows> expected = {{7, 2}, {0, 0}, {-4, ~std::uint64_t{0}}};
  row_offsets of{begins.data(), offset_format::begins_and_counts, sizeof(TypeParam), counts.data()};
  expect_rows(reader_of(of), expected);
  expect_rows(offset_reader<TypeParam>{{begins.data()}, of.format, {counts.data()}, 0}, expected);
}

TYPED_TEST(row_offsets_reading, slots_have_no_more_rows_than_fit) {
  const std::vector<TypeParam> counts = {0, 10, 11, -1};
  row_offsets of{counts.data(), offset_format::slots, sizeof(TypeParam), nullptr, 10};
  expect_rows(reader_of(of), {{0, 0}, {10, 10}, {20, too_many_rows}, {30, too_many_rows}});
}

TYPED_TEST(row_offsets_reading, a_prefix_may_begin_anywhere) {
  expect_both<TypeParam>({5, 8}, offset_format::prefix, {{5, 3}});
}

TYPED_TEST(row_offsets_reading, negative_sizes_wrap) {
  constexpr std::uint64_t minus_two = 0 - std::uint64_t{2};
  const std::vector<std::int64_t> begins = {4};
  expect_both<TypeParam>({4, 2}, offset_format::ends, {{0, 4}, {4, minus_two}});
  expect_both<TypeParam>({4, 2}, offset_format::prefix, {{4, minus_two}});
  expect_both<TypeParam>({-2}, offset_format::sizes, {{4, minus_two}}, begins.data());
}

TYPED_TEST(row_offsets_reading, the_ends_of_the_type) {
  constexpr TypeParam least = std::numeric_limits<TypeParam>::min();
  constexpr TypeParam most = std::numeric_limits<TypeParam>::max();
  constexpr std::uint64_t between =
      static_cast<std::uint64_t>(std::int64_t{most}) - static_cast<std::uint64_t>(std::int64_t{least});
  expect_both<TypeParam>({least, most}, offset_format::prefix, {{least, between}});
}

}  // namespace
}  // namespace tmap::testing
