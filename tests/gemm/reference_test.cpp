// SPDX-License-Identifier: Apache-2.0
// The judge of all other tests of products, before the court itself: right results pass, each seeded fault is found.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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

/// As tensor cores sum up 8-bit products: of each term what lies more than 13 bits below the largest is cut off.
double cut_sum(const row_case& of, std::uint64_t row, std::uint64_t b_row, std::uint64_t begin, std::uint64_t end) {
  constexpr std::uint64_t step = 32;
  double sum = 0;
  for (std::uint64_t first = begin; first < end; first += step) {
    std::vector<double> terms{sum};
    for (std::uint64_t i = first; i < std::min(first + step, end); ++i) {
      terms.push_back(static_cast<double>(of.a().at(row, i)) * of.b().at(b_row, i));
    }
    double largest = 0;
    for (const double term : terms) largest = std::max(largest, std::abs(term));
    const double unit = std::ldexp(1, std::ilogb(largest) - 13);
    sum = 0;
    for (const double term : terms) sum += std::trunc(term / unit) * unit;
  }
  return sum;
}

/// `at_once` elements of K are summed up so, their sums in f32.
host_matrix multiplied_in_8_bits(const row_case& of, std::uint64_t at_once) {
  host_matrix c = of.c();
  const std::uint64_t k = of.settings().k;
  for (std::uint64_t row = 0; row < of.settings().used_rows(); ++row) {
    for (std::uint64_t column = 0; column < of.settings().n; ++column) {
      float sum = 0;
      for (std::uint64_t i = 0; i < k; i += at_once) {
        sum += static_cast<float>(cut_sum(of, row, column, i, std::min(i + at_once, k)));
      }
      c.set(row, column, sum);
    }
  }
  return c;
}

row_settings long_sums(input_kind kind) {
  row_settings with;
  with.type = operand_type::f8_e4m3;
  with.kind = kind;
  with.sizes = {20};
  with.n = 64;
  with.k = 7168;
  return with;
}

TEST(EightBits, SumsOf13BitsErrByMoreThanTheirRounding) {
  const row_case made(long_sums(input_kind::normal));
  const host_matrix promoted = multiplied_in_8_bits(made, promoted_elements);
  const host_matrix fast = multiplied_in_8_bits(made, made.settings().k);
  EXPECT_EQ(made.expected().fault_of(promoted, false), "");
  EXPECT_LT(made.expected().error_against_rounding(promoted), 1.1);
  EXPECT_GT(made.expected().error_against_rounding(fast), 1.1);
}

TEST(EightBits, WhatALargeTermHidIsFound) {
  const row_case made(long_sums(input_kind::outweighed));
  EXPECT_EQ(made.expected().fault_of(multiplied_in_8_bits(made, promoted_elements), true), "");
  EXPECT_NE(made.expected().fault_of(multiplied_in_8_bits(made, made.settings().k), true), "");
  EXPECT_NE(made.expected().fault_of(multiplied_in_8_bits(made, made.settings().k), false), "");
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
