// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>

#include "kernels/ragged/row_part.hpp"

namespace tmap::testing {
namespace {

using kernels::cut_at_lines;
using kernels::line_bytes;
using kernels::row_part;

constexpr std::uint32_t each = 1024;

void expect_whole(std::uint64_t length, std::uint64_t destination, std::uint32_t element_bytes) {
  const std::uint64_t parts = (length + each - 1) / each;
  std::uint64_t reached = 0;
  for (std::uint64_t part = 0; part < parts; ++part) {
    const row_part cut = cut_at_lines(length, part, each, destination, element_bytes);
    ASSERT_EQ(cut.first, reached) << "length " << length << ", part " << part << " at " << destination;
    ASSERT_LT(cut.elements * element_bytes, each * element_bytes + line_bytes);
    reached += cut.elements;
  }
  ASSERT_EQ(reached, length) << "at " << destination << ", elements of " << element_bytes;
}

TEST(row_part, pieces_follow_each_other_to_the_end) {
  for (const std::uint32_t element_bytes : {1u, 2u, 3u, 4u, 8u, 12u, 16u}) {
    for (std::uint64_t destination = 4096; destination < 4096 + line_bytes; ++destination) {
      for (std::uint64_t length = each + 1; length < each + 2 * line_bytes; ++length) {
        expect_whole(length, destination, element_bytes);
      }
      for (const std::uint64_t length : {2 * each, 2 * each + 1, 3 * each - 1, 9 * each + 5}) {
        expect_whole(length, destination, element_bytes);
      }
    }
  }
}

TEST(row_part, pieces_begin_at_lines) {
  for (const std::uint32_t element_bytes : {1u, 2u, 4u, 8u, 16u}) {
    for (std::uint64_t destination = 0; destination < line_bytes; destination += element_bytes) {
      for (std::uint64_t part = 1; part < 9; ++part) {
        const row_part cut = cut_at_lines(10 * each, part, each, destination, element_bytes);
        EXPECT_EQ((destination + cut.first * element_bytes) % line_bytes, 0u) << destination << ", part " << part;
      }
    }
  }
}

TEST(row_part, pieces_keep_to_units_of_bulk_copies) {
  for (const std::uint32_t element_bytes : {1u, 2u, 3u, 4u, 5u, 8u, 12u, 16u}) {
    for (std::uint64_t destination = 0; destination < line_bytes; destination += 16) {
      for (std::uint64_t part = 1; part < 9; ++part) {
        const row_part cut = cut_at_lines(10 * each, part, each, destination, element_bytes);
        EXPECT_EQ(cut.first * element_bytes % 16, 0u) << element_bytes << " bytes at " << destination;
      }
    }
  }
}

TEST(row_part, a_longer_first_piece_may_leave_nothing_for_the_last) {
  EXPECT_EQ(cut_at_lines(each + 1, 0, each, line_bytes - 1, 1).elements, each + 1);
  EXPECT_EQ(cut_at_lines(each + 1, 1, each, line_bytes - 1, 1).elements, 0u);
  EXPECT_EQ(cut_at_lines(each + 1, 0, each, line_bytes, 1).elements, each);
  EXPECT_EQ(cut_at_lines(each + 1, 1, each, line_bytes, 1).elements, 1u);
}

TEST(row_part, the_longest_rows) {
  constexpr std::uint64_t length = std::uint64_t{1} << 47;
  const row_part last = cut_at_lines(length, length / each - 1, each, 1, 1);
  EXPECT_EQ(last.first, length - each + line_bytes - 1);
  EXPECT_EQ(last.elements, each - line_bytes + 1);
}

}  // namespace
}  // namespace tmap::testing
