// SPDX-License-Identifier: Apache-2.0
// Tests products with block scales whose rows of A are named by an index, which names their scales
// too.
#include <gtest/gtest.h>
#include <tmap/faults.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "gemm/gathered_rows.hpp"

namespace tmap::gemm::testing {
namespace {

row_settings scaled_rows(operand_type type) {
  row_settings with;
  with.type = type;
  with.block_scales = true;
  with.sizes = plan_sizes;
  with.n = 784;
  with.k = 528;
  return with;
}

class gathered_scaled_rows : public gathered_rows, public ::testing::WithParamInterface<operand_type> {};

// One to eleven blocks of K: lanes load the scales of four.
TEST_P(gathered_scaled_rows, of_every_length_of_k) {
  row_settings with = scaled_rows(GetParam());
  with.sizes = {3, 0, 130, 64, 257};
  for (const std::uint64_t k : {16, 128, 144, 384, 512, 640, 896, 1408}) {
    with.k = k;
    with.turned_scales = !with.turned_scales;
    compare(with, true);
  }
  ASSERT_TRUE(reset_faults().has_value());
}

TEST_P(gathered_scaled_rows, with_groups_of_any_size) {
  row_settings with = scaled_rows(GetParam());
  compare(with);
  with.turned_scales = with.lists_b = with.lists_c = true;
  with.format = offset_format::begins_and_counts;
  compare(with);
}

TEST_P(gathered_scaled_rows, with_epilogues) {
  row_settings with = scaled_rows(GetParam());
  with.n = 768;
  with.row_scales = with.column_scales = with.bias = true;
  compare(with);
  with.accumulate = true;
  with.c_type = result_type::f32;
  compare(with);
  with.accumulate = false;
  with.gates.function = gate_function::silu;
  with.c_type = result_type::f8_e4m3;
  for (const gate_columns columns : {gate_columns::halves, gate_columns::interleaved}) {
    with.gates.columns = columns;
    compare(with);
  }
}

/// Sets all scales of A to NaN but those of one row.
void spoil_scales(row_case& made, std::uint64_t good) {
  const std::uint64_t blocks = (made.settings().k + scaled_elements - 1) / scaled_elements;
  for (std::uint64_t row = 0; row < made.rows(); ++row) {
    for (std::uint64_t block = 0; block < blocks; ++block) {
      if (row != good) made.a_scales().set(0, row, block, std::numeric_limits<float>::quiet_NaN());
    }
  }
}

// A missing row has no scale: whichever it read instead would show as a NaN. The numbers name rows
// far outside of A, too, where no memory is.
TEST_P(gathered_scaled_rows, that_do_not_exist_read_no_scale) {
  constexpr std::int32_t good = 5;
  row_settings with = filled(scaled_rows(GetParam()));
  with.c_type = result_type::f32;
  row_case made(with);
  spoil_scales(made, good);
  std::mt19937_64 random = tmap::testing::run_random(35);
  row_list rows = drawn_rows(random, made.rows(), true);
  for (std::int32_t& row : rows) row = is_row(row, made.rows()) ? good : row;
  const gathered_product product(made, rows);
  product.compare_every_plan();
  const host_matrix got = product.device().output();
  for (const judged_group& group : made.judged()) {
    if (!group.status.is_good()) continue;
    for (std::uint64_t row = group.begin; row < group.end; ++row) {
      for (std::uint64_t column = 0; column < with.n; ++column) {
        const float found = got.at(row, column);
        ASSERT_TRUE(rows[row] == good ? !std::isnan(found) : found == 0) << row << ", " << column << ": " << found;
      }
    }
  }
  ASSERT_TRUE(reset_faults().has_value());
}

// The scales end with the rows of A, of which there are fewer than of C.
TEST_P(gathered_scaled_rows, of_fewer_rows_than_c) {
  constexpr std::uint64_t few_rows = 7;
  row_settings with = filled(scaled_rows(GetParam()));
  const row_case made(with);
  row_list rows;
  for (std::uint64_t i = 0; i < made.rows(); ++i) rows.push_back(static_cast<std::int32_t>(i % (few_rows + 1)) - 1);
  const gathered_product product(made, rows);
  const std::uint64_t blocks = (with.k + scaled_elements - 1) / scaled_elements;
  std::vector<float> few;
  for (std::uint64_t row = 0; row < few_rows; ++row) {
    for (std::uint64_t block = 0; block < blocks; ++block) few.push_back(made.a_scales().at(0, row, block));
  }
  const device_array<float> few_on_device(few);
  for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
    product.reset();
    TMAP_ASSERT_OK(multiply(product.of_copy(), product.with_plan(plan)));
    const host_matrix want = product.device().output();
    product.reset();
    row_problem problem = product.by_index();
    problem.a_row_count = few_rows;
    problem.a_scales = {.values = few_on_device.data(), .line_stride = blocks, .k_stride = 1};
    TMAP_ASSERT_OK(multiply(problem, product.with_plan(plan)));
    EXPECT_EQ(product.device().output().bytes(), want.bytes()) << plan_name(plan);
  }
}

TEST_P(gathered_scaled_rows, have_the_same_bits_many_times) {
  std::mt19937_64 random = tmap::testing::run_random(36);
  const row_settings with = filled(scaled_rows(GetParam()));
  const row_case made(with);
  const gathered_product product(made, drawn_rows(random, made.rows(), false));
  product.reset();
  TMAP_ASSERT_OK(multiply(product.of_copy(), product.with_plan(0)));
  const host_matrix want = product.device().output();
  for (std::uint32_t i = 0; i < 300; ++i) {
    if (i % 30 == 0) product.reset();
    TMAP_ASSERT_OK(multiply(product.by_index(), product.with_plan(i % plan_count())));
    if (i % 30 != 29) continue;
    EXPECT_EQ(product.device().output().bytes(), want.bytes()) << "round " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(types, gathered_scaled_rows, ::testing::Values(operand_type::f8_e4m3, operand_type::f8_e5m2));

}  // namespace
}  // namespace tmap::gemm::testing
