// SPDX-License-Identifier: Apache-2.0
// Tests the reference that judges all other tests of products. It must accept right results and
// find each seeded fault.
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

/// Sums products as tensor cores do. They truncate each term of a step, including the sum so far,
/// far below the largest term.
float cut_sum(operand_type type, const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t first = 0; first < a.size(); first += step_elements(type)) {
    std::vector<double> terms{sum};
    for (std::size_t i = first; i < std::min<std::size_t>(first + step_elements(type), a.size()); ++i) {
      terms.push_back(static_cast<double>(a[i]) * b[i]);
    }
    double largest = 0;
    for (const double term : terms) largest = std::max(largest, std::abs(term));
    if (largest == 0) continue;
    const double unit = std::ldexp(least_kept(type), std::ilogb(largest));
    sum = 0;
    for (const double term : terms) sum += std::trunc(term / unit) * unit;
    sum = static_cast<float>(sum);
  }
  return static_cast<float>(sum);
}

/// Multiplies the first `k` elements. Tensor cores sum up `at_once` of them, and f32 adds those
/// sums.
host_matrix multiplied(const row_case& of, std::uint64_t k, std::uint64_t at_once) {
  host_matrix c = of.c();
  const std::vector<judged_group> groups = of.judged();
  std::vector<float> a;
  std::vector<float> b;
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    for (std::uint64_t row = groups[g].begin; row < groups[g].end; ++row) {
      for (std::uint64_t column = 0; column < of.settings().n; ++column) {
        float sum = 0;
        for (std::uint64_t first = 0; first < k; first += at_once) {
          a.clear();
          b.clear();
          for (std::uint64_t i = first; i < std::min(first + at_once, k); ++i) {
            a.push_back(of.a().at(row, i));
            b.push_back(of.b().at(g * of.b_group_rows() + column, i));
          }
          sum += cut_sum(of.settings().type, a, b);
        }
        c.set(row, column, sum);
      }
    }
  }
  return c;
}

/// Multiplies all of K at once, as for 16-bit operands.
host_matrix multiplied(const row_case& of) {
  return multiplied(of, of.settings().k, of.settings().k);
}

class seeded_faults : public ::testing::TestWithParam<input_kind> {
 protected:
  bool is_exact() const { return GetParam() == input_kind::integers; }
  std::string fault_of(const host_matrix& after) const { return case_.expected().fault_of(after, is_exact()); }

  std::uint64_t column_of_largest(std::uint64_t row) const {
    std::uint64_t found = 0;
    for (std::uint64_t column = 0; column < right_.columns(); ++column) {
      if (std::abs(right_.at(row, column)) > std::abs(right_.at(row, found))) found = column;
    }
    return found;
  }

  row_case case_{small_settings(GetParam())};
  host_matrix right_{multiplied(case_)};
};

TEST_P(seeded_faults, a_right_result_passes) {
  EXPECT_EQ(fault_of(right_), "");
}

TEST_P(seeded_faults, an_element_that_was_not_written_is_found) {
  // Uses the largest element, because others may be close to the value before.
  const std::uint64_t column = column_of_largest(4);
  right_.bytes()[right_.place_of(4, column)] = poison_byte;
  right_.bytes()[right_.place_of(4, column) + 1] = poison_byte;
  EXPECT_NE(fault_of(right_), "");
}

TEST_P(seeded_faults, products_without_their_last_eight_elements_are_found) {
  const std::uint64_t k = case_.settings().k;
  EXPECT_NE(fault_of(multiplied(case_, k - 8, k)), "");
}

TEST_P(seeded_faults, a_write_behind_the_last_group_is_found) {
  right_.set(8, 0, 1);
  EXPECT_NE(fault_of(right_), "");
}

TEST_P(seeded_faults, a_write_between_two_rows_is_found) {
  right_.bytes()[right_.place_of(2, 31) + 2] = 0;
  EXPECT_NE(fault_of(right_), "");
}

TEST_P(seeded_faults, a_write_before_and_behind_the_matrix_is_found) {
  for (const std::uint64_t place : {std::uint64_t{0}, right_.bytes().size() - 1}) {
    host_matrix wrong = right_;
    wrong.bytes()[place] = 0;
    EXPECT_NE(fault_of(wrong), "") << place;
  }
}

TEST_P(seeded_faults, a_row_of_the_next_groups_product_is_found) {
  for (std::uint64_t column = 0; column < case_.settings().n; ++column) {
    right_.set(2, column, right_.at(3, column));
  }
  EXPECT_NE(fault_of(right_), "");
}

TEST_P(seeded_faults, what_is_read_outside_an_operand_is_found) {
  right_.set(0, 0, right_.at(0, 0) + 0 * case_.a().at(9, 0));
  EXPECT_NE(fault_of(right_), "");
}

TEST(bounds, hold_for_random_sums_as_tensor_cores_make_them) {
  for (const operand_type type : {operand_type::bf16, operand_type::f16, operand_type::f8_e4m3}) {
    for (const bool is_fast : {false, true}) {
      for (const std::uint64_t k : {16, 48, 400, 2064}) {
        row_settings with = small_settings(input_kind::normal);
        with.type = type;
        with.fast_accumulation = is_fast;
        with.k = k;
        const row_case made(with);
        const bool is_promoted = type == operand_type::f8_e4m3 && !is_fast;
        const host_matrix got = multiplied(made, k, is_promoted ? promoted_elements : k);
        EXPECT_EQ(made.expected().fault_of(got, false), "") << static_cast<int>(type) << ", K " << k;
      }
    }
  }
}

/// Tests a step of large terms that cancel out and small ones that just vanish.
TEST(bounds, hold_where_every_small_term_is_lost) {
  for (const operand_type type : {operand_type::bf16, operand_type::f8_e4m3}) {
    const auto small = static_cast<float>(0.99 * least_kept(type));
    operands of{1, 1, step_elements(type), {1, -1}, std::vector<float>(step_elements(type), 1)};
    of.a.resize(of.k, small);
    EXPECT_EQ(cut_sum(type, of.a, of.b), 0);
    const bounded sum = dot(of, type, 0, 0);
    EXPECT_GT(sum.value, 0);
    EXPECT_LT(sum.value, sum.error);
    EXPECT_LT(sum.error, 2 * sum.value) << "wider than necessary";
  }
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

TEST(eight_bits, sums_of13_bits_err_by_more_than_their_rounding) {
  const row_case made(long_sums(input_kind::normal));
  const host_matrix promoted = multiplied(made, made.settings().k, promoted_elements);
  const host_matrix fast = multiplied(made);
  EXPECT_EQ(made.expected().fault_of(promoted, false), "");
  EXPECT_LT(made.expected().error_against_rounding(promoted), 1.1);
  EXPECT_GT(made.expected().error_against_rounding(fast), 1.1);
}

TEST(eight_bits, what_a_large_term_hid_is_found) {
  const row_case made(long_sums(input_kind::outweighed));
  EXPECT_EQ(made.expected().fault_of(multiplied(made, made.settings().k, promoted_elements), true), "");
  EXPECT_NE(made.expected().fault_of(multiplied(made), true), "");
  EXPECT_NE(made.expected().fault_of(multiplied(made), false), "");
}

gate some_gate(gate_function function) {
  gate made;
  made.function = function;
  made.alpha = 1.702f;
  made.limit = 2;
  made.value_shift = 1;
  return made;
}

TEST(gates, have_the_slopes_of_their_differences) {
  constexpr double step = 1e-6;
  for (const auto function : {gate_function::silu, gate_function::gelu, gate_function::gelu_tanh}) {
    const gate with = some_gate(function);
    for (const double g : {-9.0, -1.5, -0.1, 0.0, 0.3, 1.9, 2.1, 5.0}) {
      for (const double value : {-2.5, -1.0, 0.5, 1.9, 2.5}) {
        const auto at = [&](double x, double y) { return gated({x}, {y}, with).value; };
        const gate_gradients made = differentiated({3}, g, value, with);
        EXPECT_NEAR(made.of_gate.value, 3 * (at(g + step, value) - at(g - step, value)) / (2 * step), 1e-5) << g;
        EXPECT_NEAR(made.of_value.value, 3 * (at(g, value + step) - at(g, value - step)) / (2 * step), 1e-5) << g;
      }
    }
  }
}

TEST(gates, are_those_of_their_definitions) {
  gate with;
  with.function = gate_function::silu;
  EXPECT_NEAR(gated({1}, {2}, with).value, 2 / (1 + std::exp(-1.0)), 1e-12);
  with.alpha = 2;
  EXPECT_NEAR(gated({1}, {2}, with).value, 2 / (1 + std::exp(-2.0)), 1e-12);
  with.value_shift = 1;
  with.limit = 0.5f;
  EXPECT_NEAR(gated({1}, {2}, with).value, 0.5 / (1 + std::exp(-1.0)) * 1.5, 1e-12);
  EXPECT_NEAR(gated({-1}, {-2}, with).value, -1 / (1 + std::exp(2.0)) * 0.5, 1e-12);
  with.function = gate_function::gelu;
  EXPECT_NEAR(gated({0.5}, {0}, with).value, 0.5 * 0.6914624612740131, 1e-12);
  with.function = gate_function::gelu_tanh;
  EXPECT_NEAR(gated({0.5}, {0}, with).value, 0.5 * 0.6914624612740131, 1e-3) << "close to gelu";
}

/// The bounds must be narrower than the difference between the two arrangements.
TEST(gates, in_another_arrangement_are_found) {
  row_settings with = small_settings(input_kind::normal);
  with.n = 64;
  with.c_type = result_type::f32;
  with.gates = some_gate(gate_function::silu);
  const row_case halves(with);
  with.gates.columns = gate_columns::interleaved;
  const row_case interleaved(with);
  const auto fault = [](const row_case& made, const row_case& by) {
    host_matrix c = made.c();
    const expected_output want = by.expected();
    for (std::uint64_t row = 0; row < 8; ++row) {
      for (std::uint64_t column = 0; column < c.columns(); ++column) c.set(row, column, want.at(row, column).value);
    }
    return made.expected().fault_of(c, false);
  };
  EXPECT_EQ(fault(halves, halves), "");
  EXPECT_EQ(fault(interleaved, interleaved), "");
  EXPECT_NE(fault(halves, interleaved), "");
}

INSTANTIATE_TEST_SUITE_P(both, seeded_faults, ::testing::Values(input_kind::normal, input_kind::integers));

std::vector<std::uint32_t> bits_of(const std::vector<judged_group>& judged) {
  std::vector<std::uint32_t> bits;
  for (const judged_group& group : judged) bits.push_back(group.status.bits);
  return bits;
}

constexpr std::uint32_t bad = static_cast<std::uint32_t>(fault::rows);
constexpr std::uint32_t empty = group_status::empty_bit;

TEST(judge, ends_that_decrease_are_bad_until_they_are_beyond_all_before) {
  EXPECT_EQ(bits_of(judge({{10, 5, 20, 20, 25}, offset_format::ends, 5, 30})),
            (std::vector<std::uint32_t>{0, bad, bad, empty, 0}));
}

TEST(judge, negative_and_far_offsets_are_bad) {
  EXPECT_EQ(bits_of(judge({{-1, 4, 31, 32}, offset_format::ends, 4, 30})),
            (std::vector<std::uint32_t>{bad, bad, bad, bad}));
  EXPECT_EQ(bits_of(judge({{3, 5, 9}, offset_format::prefix, 2, 9})), (std::vector<std::uint32_t>{0, 0}));
}

TEST(judge, sizes_add_up_and_may_be_wrong) {
  EXPECT_EQ(bits_of(judge({{4, -1, 1, 2, 0}, offset_format::sizes, 5, 6})),
            (std::vector<std::uint32_t>{0, bad, bad, 0, empty}));
}

TEST(judge, groups_that_share_rows_are_bad_from_the_second_on) {
  group_offsets of{{10, 0, 5, 12, 0, 3, 10, 2}, offset_format::begins_and_counts, 4, 30};
  EXPECT_EQ(bits_of(judge(of)), (std::vector<std::uint32_t>{empty, 0, 0, bad}));
  of.has_common_output = false;
  EXPECT_EQ(bits_of(judge(of)), (std::vector<std::uint32_t>{empty, 0, 0, 0}));
}

TEST(judge, slots_hold_so_many_rows_and_no_more) {
  EXPECT_EQ(bits_of(judge({{10, 11, 0, -1, 3}, offset_format::slots, 5, 42, 10})),
            (std::vector<std::uint32_t>{0, bad, empty, bad, bad}));
}

TEST(judge, rows_of_a_label_follow_each_other) {
  EXPECT_EQ(bits_of(judge({{0, 0, -1, 2, 7, 3, 2}, offset_format::labels, 4, 7})),
            (std::vector<std::uint32_t>{0, empty, bad, 0}));
}

TEST(weight_reference, a_group_without_rows_is_zero) {
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

/// Expects that all groups are good or empty, and that the reference has the promised sums.
void expect_promised_sums(weight_settings with) {
  with.kind = input_kind::integers;
  with.c_type = result_type::f32;
  with.m = 12;
  with.n = 20;
  const weight_case made(with);
  const expected_output want = made.expected();
  const std::vector<judged_group> groups = made.judged();
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    EXPECT_EQ(groups[g].status.is_empty(), with.sizes[g] == 0) << g;
    ASSERT_FALSE(groups[g].status.is_bad()) << g;
    for (std::uint64_t row = 0; row < with.m; ++row) {
      for (std::uint64_t column = 0; column < with.n; ++column) {
        const double found = want.at(g * made.c_group_rows() + row, column).value;
        ASSERT_EQ(found, promised(made, g, groups[g], row, column)) << "group " << g << ", row " << row;
      }
    }
  }
}

TEST(weight_reference, has_the_scales_of_its_groups) {
  for (const operand_type type : {operand_type::f8_e4m3, operand_type::f8_e5m2}) {
    for (const auto format : every_format) {
      weight_settings with = eight_bit_weights(type, {3, 0, 130, 272});
      with.format = format;
      expect_promised_sums(with);
    }
    weight_settings joined = eight_bit_weights(type, {128, 0, 384, 100});
    joined.joined_scales = true;
    expect_promised_sums(joined);
    weight_settings in_lines = eight_bit_weights(type, {300, 16, 130});
    in_lines.lines_of_a_scales = true;
    expect_promised_sums(in_lines);
  }
}

TEST(weight_reference, finds_a_group_that_begins_between_copies) {
  weight_case made(eight_bit_weights(operand_type::f8_e4m3, {48, 48}));
  made.set_offsets({40, 96});
  EXPECT_EQ(bits_of(made.judged()), (std::vector<std::uint32_t>{0, static_cast<std::uint32_t>(fault::alignment)}));
}

}  // namespace
}  // namespace tmap::gemm::testing
