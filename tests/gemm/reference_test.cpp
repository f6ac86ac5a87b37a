// SPDX-License-Identifier: Apache-2.0
// The judge of all other tests of products, before the court itself: right results pass, each seeded fault is found.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gemm/group_rows.hpp"
#include "gemm/row_case.hpp"
#include "gemm/weight_case.hpp"

namespace tmap::gemm::testing {
namespace {

row_settings small_settings(input_kind kind) {
  row_settings with;
  with.kind = kind;
  with.sizes = {3, 0, 5};
  with.spare_rows = 4;
  with.n = 32;
  with.k = 40;
  return with;
}

/// As a slow kernel would: sums in f32, in order.
host_matrix multiplied(const row_case& of) {
  host_matrix c = of.c();
  const std::vector<judged_group> groups = of.judged();
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    if (!groups[g].status.is_good()) continue;
    for (std::uint64_t row = groups[g].begin; row < groups[g].end; ++row) {
      for (std::uint64_t column = 0; column < of.settings().n; ++column) {
        float sum = 0;
        for (std::uint64_t i = 0; i < of.settings().k; ++i) {
          sum += of.a().at(row, i) * of.b().at(g * of.b_group_rows() + column, i);
        }
        c.set(row, column, sum);
      }
    }
  }
  return c;
}

class SeededFaults : public ::testing::TestWithParam<input_kind> {
 protected:
  bool is_exact() const { return GetParam() == input_kind::integers; }
  std::string fault_of(const host_matrix& after) const { return case_.expected().fault_of(after, is_exact()); }

  row_case case_{small_settings(GetParam())};
  host_matrix right_{multiplied(case_)};
};

TEST_P(SeededFaults, ARightResultPasses) {
  EXPECT_EQ(fault_of(right_), "");
}

TEST_P(SeededFaults, AnElementThatWasNotWrittenIsFound) {
  right_.bytes()[right_.place_of(4, 31)] = poison_byte;
  right_.bytes()[right_.place_of(4, 31) + 1] = poison_byte;
  EXPECT_NE(fault_of(right_), "");
}

TEST_P(SeededFaults, AProductWithoutItsLastEightElementsIsFound) {
  double sum = 0;
  for (std::uint64_t i = 0; i < case_.settings().k - 8; ++i) sum += case_.a().at(3, i) * case_.b().at(2 * 35, i);
  right_.set(3, 0, sum);
  EXPECT_NE(fault_of(right_), "");
}

TEST_P(SeededFaults, AWriteBehindTheLastGroupIsFound) {
  right_.set(8, 0, 1);
  EXPECT_NE(fault_of(right_), "");
}

TEST_P(SeededFaults, AWriteBetweenTwoRowsIsFound) {
  right_.bytes()[right_.place_of(2, 31) + 2] = 0;
  EXPECT_NE(fault_of(right_), "");
}

TEST_P(SeededFaults, AWriteBeforeAndBehindTheMatrixIsFound) {
  for (const std::uint64_t place : {std::uint64_t{0}, right_.bytes().size() - 1}) {
    host_matrix wrong = right_;
    wrong.bytes()[place] = 0;
    EXPECT_NE(fault_of(wrong), "") << place;
  }
}

TEST_P(SeededFaults, ARowOfTheNextGroupsProductIsFound) {
  for (std::uint64_t column = 0; column < case_.settings().n; ++column) {
    right_.set(2, column, right_.at(3, column));
  }
  EXPECT_NE(fault_of(right_), "");
}

TEST_P(SeededFaults, WhatIsReadOutsideAnOperandIsFound) {
  right_.set(0, 0, right_.at(0, 0) + 0 * case_.a().at(9, 0));
  EXPECT_NE(fault_of(right_), "");
}

INSTANTIATE_TEST_SUITE_P(Both, SeededFaults, ::testing::Values(input_kind::normal, input_kind::integers));

std::vector<std::uint32_t> bits_of(const std::vector<judged_group>& judged) {
  std::vector<std::uint32_t> bits;
  for (const judged_group& group : judged) bits.push_back(group.status.bits);
  return bits;
}

constexpr std::uint32_t bad = static_cast<std::uint32_t>(fault::rows);
constexpr std::uint32_t empty = group_status::empty_bit;

TEST(Judge, EndsThatDecreaseAreBadUntilTheyAreBeyondAllBefore) {
  EXPECT_EQ(bits_of(judge({10, 5, 20, 20, 25}, offset_format::ends, 5, 30)),
            (std::vector<std::uint32_t>{0, bad, bad, empty, 0}));
}

TEST(Judge, NegativeAndFarOffsetsAreBad) {
  EXPECT_EQ(bits_of(judge({-1, 4, 31, 32}, offset_format::ends, 4, 30)),
            (std::vector<std::uint32_t>{bad, bad, bad, bad}));
  EXPECT_EQ(bits_of(judge({3, 5, 9}, offset_format::prefix, 2, 9)), (std::vector<std::uint32_t>{0, 0}));
}

TEST(Judge, SizesAddUpAndMayBeWrong) {
  EXPECT_EQ(bits_of(judge({4, -1, 1, 2, 0}, offset_format::sizes, 5, 6)),
            (std::vector<std::uint32_t>{0, bad, bad, 0, empty}));
}

TEST(WeightReference, AGroupWithoutRowsIsZero) {
  weight_settings with;
  with.sizes = {4, 0};
  with.m = with.n = 8;
  const weight_case made(with);
  host_matrix c = made.c();
  EXPECT_NE(made.expected().fault_of(c, false), "");
  for (std::uint64_t row = 0; row < 8; ++row) {
    for (std::uint64_t column = 0; column < 8; ++column) {
      double sum = 0;
      for (std::uint64_t i = 0; i < 4; ++i) sum += made.a().at(i, row) * made.b().at(i, column);
      c.set(row, column, sum);
      c.set(11 + row, column, 0);
    }
  }
  EXPECT_EQ(made.expected().fault_of(c, false), "");
}

}  // namespace
}  // namespace tmap::gemm::testing
