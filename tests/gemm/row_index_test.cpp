// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/gemm_group.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace tmap::kernels {
namespace {

TEST(row_index, without_rows_names_each_row_itself) {
  const row_index index{};
  for (const std::uint32_t row : {0u, 7u, 1u << 31}) EXPECT_EQ(index.source(row), row);
}

TEST(row_index, names_rows_of_a_and_no_others) {
  constexpr std::int32_t lowest = std::numeric_limits<std::int32_t>::min();
  constexpr std::int32_t highest = std::numeric_limits<std::int32_t>::max();
  const std::vector<std::int32_t> rows{0, 6, 6, 7, -1, -2, lowest, highest};
  const std::vector<std::uint32_t> want{0, 6, 6, no_row, no_row, no_row, no_row, no_row};
  row_index index{};
  index.rows = rows.data();
  index.count = 7;
  for (std::uint32_t i = 0; i < rows.size(); ++i) EXPECT_EQ(index.source(i), want[i]) << rows[i];
  // The most rows that A may have: every number that is not negative names one.
  index.count = std::uint32_t{1} << 31;
  EXPECT_EQ(index.source(7), static_cast<std::uint32_t>(highest));
  EXPECT_EQ(index.source(4), no_row);
  EXPECT_EQ(index.source(6), no_row);
}

}  // namespace
}  // namespace tmap::kernels
