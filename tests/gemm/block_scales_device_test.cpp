// SPDX-License-Identifier: Apache-2.0
// Tests products of 8-bit operands with a scale for each 128 elements of K, of a row of A and of
// 128 columns of B.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

#include "gemm/row_runs.hpp"

namespace tmap::gemm::testing {
namespace {

row_settings scaled(operand_type type) {
  row_settings with;
  with.type = type;
  with.block_scales = true;
  with.sizes = plan_sizes;
  with.n = 784;
  with.k = 528;
  return with;
}

class scaled_products : public gemm_test, public ::testing::WithParamInterface<std::tuple<operand_type, bool>> {
 protected:
  static row_settings settings() {
    row_settings with = scaled(std::get<0>(GetParam()));
    with.turned_scales = std::get<1>(GetParam());
    return with;
  }
};

// One to eleven blocks of K: turns of four stages, and what they leave.
TEST_P(scaled_products, every_plan_with_any_number_of_blocks) {
  row_settings with = settings();
  with.sizes = {130, 0, 65, 257};
  for (const std::uint64_t k : {16, 128, 144, 384, 512, 640, 896, 1040, 1408}) {
    with.k = k;
    run_every_plan(with);
  }
}

TEST_P(scaled_products, every_plan_with_groups_of_any_size) {
  run_every_plan(settings());
}

TEST_P(scaled_products, gates_in_both_orders) {
  for (const gate_columns columns : {gate_columns::halves, gate_columns::interleaved}) {
    row_settings with = settings();
    with.gates.function = gate_function::silu;
    with.gates.columns = columns;
    with.n = 768;
    with.kept = true;
    run_every_plan(with);
  }
}

TEST_P(scaled_products, other_factors_bias_and_sums_before) {
  row_settings with = settings();
  with.row_scales = with.column_scales = with.bias = with.accumulate = true;
  with.c_type = result_type::f32;
  run_every_plan(with);
}

TEST_P(scaled_products, groups_with_gaps_and_lists) {
  row_settings with = settings();
  with.format = offset_format::begins_and_counts;
  with.lists_b = with.lists_c = true;
  run(with);
}

TEST_P(scaled_products, a_long_k_errs_by_little_more_than_its_rounding) {
  constexpr double limit = 1.1;
  row_settings with = settings();
  with.sizes = {130, 5};
  with.k = 7168;
  run_every_plan(with, [&](const row_case& made, const rows_on_device& device, std::uint32_t plan) {
    EXPECT_LE(made.expected().error_against_rounding(device.output()), limit) << plan_name(plan);
  });
}

INSTANTIATE_TEST_SUITE_P(types, scaled_products,
                         ::testing::Combine(::testing::Values(operand_type::f8_e4m3, operand_type::f8_e5m2),
                                            ::testing::Bool()));

TEST_F(grouped_rows, gradients_in_eight_bits_need_no_block_scales) {
  row_settings with = scaled(operand_type::f8_e5m2);
  with.block_scales = false;
  with.row_scales = with.column_scales = true;
  run_every_plan(with);
}

/// Returns the value of an element of C in f32: sums of integers, which are exact, in the order
/// that is promised.
float promised(const row_case& made, std::uint32_t group, std::uint64_t row, std::uint64_t column) {
  const row_settings& with = made.settings();
  float sum = 0;
  for (std::uint64_t block = 0; block * scaled_elements < with.k; ++block) {
    float part = 0;
    for (std::uint64_t i = block * scaled_elements; i < std::min((block + 1) * scaled_elements, with.k); ++i) {
      part += made.a().at(row, i) * made.b().at(group * made.b_group_rows() + column, i);
    }
    sum = std::fma(made.a_scales().at(0, row, block) * made.b_scales().at(group, column, block), part, sum);
  }
  return sum;
}

/// Expects each result to be the promised one, NaNs and infinities too.
void expect_promised(const row_case& made, const host_matrix& got, const char* plan) {
  const std::vector<judged_group> groups = made.judged();
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    for (std::uint64_t row = groups[g].begin; row < groups[g].end; ++row) {
      for (std::uint64_t column = 0; column < made.settings().n; ++column) {
        const float want = promised(made, g, row, column);
        const float found = got.at(row, column);
        ASSERT_TRUE(want == found || (std::isnan(want) && std::isnan(found)))
            << plan << ", row " << row << ", column " << column << ": " << found << " instead of " << want;
      }
    }
  }
}

// A bad scale spoils the row or columns that it belongs to, and nothing else.
TEST_F(grouped_rows, scales_may_be_any_numbers) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float hostile[] = {
      0.0f,     -0.0f,           infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), 0x1p-149f, -0x1p-127f,
      0x1p127f, 0x1.fffffep127f, -1.0f,    3e-30f};
  row_settings with = scaled(operand_type::f8_e4m3);
  with.kind = input_kind::integers;
  with.c_type = result_type::f32;
  with.sizes = {70, 129, 3};
  with.n = 272;
  with.k = 656;
  row_case made(with);
  std::uint64_t at = 0;
  for (const float value : hostile) {
    made.a_scales().set(0, 5 + 17 * at, at % 6, value);
    made.b_scales().set(at % 3, 128 * (at % 3), at % 6, at % 2 == 0 ? 1.0f : value);
    ++at;
  }
  const rows_on_device device(made);
  for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
    device.reset_output();
    TMAP_ASSERT_OK(device.enqueue(nullptr, plan));
    expect_promised(made, device.output(), plan_name(plan));
  }
}

}  // namespace
}  // namespace tmap::gemm::testing
