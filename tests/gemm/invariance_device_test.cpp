// SPDX-License-Identifier: Apache-2.0
// Tests the promise that an element of C depends on its row of A, its column of B and K alone: it
// has the same bits in every plan, and with any other rows and groups in the call.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "gemm/row_runs.hpp"
#include "support/run_seed.hpp"

namespace tmap::gemm::testing {
namespace {

const std::vector<std::int64_t> invariance_sizes{70, 1, 200, 0, 129, 64, 300};

/// Replaces each group by random rows of it, or by none. Rows begin at multiples of `step`.
std::vector<std::int64_t> parts_of(std::mt19937_64& random, const std::vector<std::int64_t>& begins,
                                   const std::vector<std::int64_t>& sizes, std::int64_t step) {
  std::vector<std::int64_t> first;
  std::vector<std::int64_t> counts;
  for (std::size_t g = 0; g < sizes.size(); ++g) {
    const std::int64_t skipped = sizes[g] == 0 ? 0 : static_cast<std::int64_t>(random() % sizes[g]) / step * step;
    const bool is_out = random() % 4 == 0;
    first.push_back(begins[g] + skipped);
    counts.push_back(is_out ? 0 : static_cast<std::int64_t>(random() % (sizes[g] - skipped + 1)));
  }
  first.insert(first.end(), counts.begin(), counts.end());
  return first;
}

/// The rows and columns of C that a group has.
struct part {
  std::uint64_t first_row, end_row, first_column, end_column;
};

/// Returns the first row of `parts` whose bytes differ, or -1.
std::int64_t first_difference(const host_matrix& got, const host_matrix& want, const std::vector<part>& parts) {
  for (const part& of : parts) {
    for (std::uint64_t row = of.first_row; row < of.end_row; ++row) {
      const auto first = static_cast<std::ptrdiff_t>(want.place_of(row, of.first_column));
      const auto end = static_cast<std::ptrdiff_t>(want.place_of(row, of.end_column));
      if (!std::equal(want.bytes().begin() + first, want.bytes().begin() + end, got.bytes().begin() + first)) {
        return static_cast<std::int64_t>(row);
      }
    }
  }
  return -1;
}

/// Returns what groups of whole rows have of `c`.
std::vector<part> rows_of(const host_matrix& c, const std::vector<judged_group>& groups) {
  std::vector<part> parts;
  for (const judged_group& group : groups) parts.push_back({group.begin, group.end, 0, c.columns()});
  return parts;
}

/// The epilogues under test.
enum class ends_with { rounding, halves, interleaved, bias_in_f32 };

/// The ways to sum up 8-bit products. Those of 16 bits have one.
enum class sums_up { in_f32, fast, with_block_scales };

row_settings settings_of(ends_with epilogue) {
  row_settings made;
  if (epilogue == ends_with::halves || epilogue == ends_with::interleaved) {
    made.gates.function = gate_function::silu;
    if (epilogue == ends_with::interleaved) made.gates.columns = gate_columns::interleaved;
  }
  made.bias = epilogue == ends_with::interleaved || epilogue == ends_with::bias_in_f32;
  if (epilogue == ends_with::bias_in_f32) made.c_type = result_type::f32;
  return made;
}

class invariant_rows
    : public gemm_test,
      public ::testing::WithParamInterface<std::tuple<operand_type, a_layout, b_layout, sums_up, ends_with>> {};

TEST_P(invariant_rows, a_row_has_the_same_bits_with_any_other_rows_in_any_plan) {
  row_settings with = settings_of(std::get<ends_with>(GetParam()));
  std::tie(with.type, with.a_layout, with.b_layout, std::ignore, std::ignore) = GetParam();
  with.fast_accumulation = std::get<sums_up>(GetParam()) == sums_up::fast;
  with.block_scales = std::get<sums_up>(GetParam()) == sums_up::with_block_scales;
  with.row_scales = with.column_scales = with.type == operand_type::f8_e4m3;
  with.format = offset_format::begins_and_counts;
  with.sizes = with.a_layout == a_layout::m_by_k ? invariance_sizes : aligned_sizes(invariance_sizes);
  with.n = with.block_scales ? 768 : 544;
  with.k = 784;
  row_case made(with);
  const rows_on_device device(made);
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  device.expect(made, "all rows");
  const host_matrix whole = device.output();
  const std::vector<std::int64_t> begins(made.offsets().begin(), made.offsets().begin() + with.groups());
  std::mt19937_64 random = tmap::testing::run_random(21);
  for (std::uint32_t round = 0; round < 12; ++round) {
    device.set_offsets(made, parts_of(random, begins, with.sizes, with.a_layout == a_layout::m_by_k ? 1 : 8));
    const std::uint32_t plan = round % plan_count();
    TMAP_ASSERT_OK(device.enqueue(nullptr, plan));
    EXPECT_EQ(first_difference(device.output(), whole, rows_of(whole, made.judged())), -1)
        << "round " << round << ", plan " << plan_name(plan);
    device.memory().expect(made.judged());
  }
}

const auto every_end =
    ::testing::Values(ends_with::rounding, ends_with::halves, ends_with::interleaved, ends_with::bias_in_f32);

INSTANTIATE_TEST_SUITE_P(sixteen_bits, invariant_rows,
                         ::testing::Combine(::testing::Values(operand_type::bf16, operand_type::f16),
                                            ::testing::Values(a_layout::m_by_k, a_layout::k_by_m),
                                            ::testing::Values(b_layout::n_by_k, b_layout::k_by_n),
                                            ::testing::Values(sums_up::in_f32), every_end));
INSTANTIATE_TEST_SUITE_P(
    eight_bits, invariant_rows,
    ::testing::Combine(::testing::Values(operand_type::f8_e4m3), ::testing::Values(a_layout::m_by_k),
                       ::testing::Values(b_layout::n_by_k),
                       ::testing::Values(sums_up::in_f32, sums_up::fast, sums_up::with_block_scales), every_end));

class invariant_scaled_results : public gemm_test,
                                 public ::testing::WithParamInterface<std::tuple<operand_type, gate_columns>> {};

TEST_P(invariant_scaled_results, a_row_and_its_scales_have_the_same_bits_with_any_other_rows_in_any_plan) {
  row_settings with;
  std::tie(with.type, with.gates.columns) = GetParam();
  with.gates.function = gate_function::silu;
  with.c_type = result_type::f8_e4m3;
  with.block_scales = with.type == operand_type::f8_e4m3;
  with.format = offset_format::begins_and_counts;
  with.sizes = invariance_sizes;
  with.n = 768;
  with.k = 784;
  row_case made(with);
  rows_on_device device(made);
  const std::uint64_t blocks = with.c_columns() / scaled_results;
  const std::vector<float> untouched(made.rows() * blocks, -77);
  const device_array<float> scales(untouched);
  device.set_scales({scales.data(), blocks, 1});
  TMAP_ASSERT_OK(device.enqueue(nullptr, 0));
  const host_matrix whole = device.output();
  const std::vector<float> of_whole = scales.download();
  const std::vector<std::int64_t> begins(made.offsets().begin(), made.offsets().begin() + with.groups());
  std::mt19937_64 random = tmap::testing::run_random(25);
  for (std::uint32_t round = 0; round < 12; ++round) {
    device.set_offsets(made, parts_of(random, begins, with.sizes, 1));
    scales.upload(untouched);
    const std::uint32_t plan = round % plan_count();
    if (!is_legal(with, plan)) continue;
    TMAP_ASSERT_OK(device.enqueue(nullptr, plan));
    EXPECT_EQ(first_difference(device.output(), whole, rows_of(whole, made.judged())), -1)
        << "round " << round << ", plan " << plan_name(plan);
    std::vector<float> want = untouched;
    for (const judged_group& group : made.judged()) {
      const auto first = static_cast<std::ptrdiff_t>(group.begin * blocks);
      const auto end = static_cast<std::ptrdiff_t>(group.end * blocks);
      std::copy(of_whole.begin() + first, of_whole.begin() + end, want.begin() + first);
    }
    EXPECT_EQ(scales.download(), want) << "round " << round << ", plan " << plan_name(plan);
    device.memory().expect(made.judged());
  }
}

INSTANTIATE_TEST_SUITE_P(gates, invariant_scaled_results,
                         ::testing::Combine(::testing::Values(operand_type::bf16, operand_type::f16,
                                                              operand_type::f8_e4m3),
                                            ::testing::Values(gate_columns::halves, gate_columns::interleaved)));

class invariant_weights : public gemm_test,
                          public ::testing::WithParamInterface<std::tuple<operand_type, a_layout, b_layout>> {};

TEST_P(invariant_weights, a_sum_has_the_same_bits_with_any_other_groups_in_any_plan) {
  weight_settings with;
  std::tie(with.type, with.a_layout, with.b_layout) = GetParam();
  with.format = offset_format::begins_and_counts;
  with.sizes = aligned_sizes(invariance_sizes, std::max<std::int64_t>(with.begin_unit(), 8));
  weight_case made(with);
  const weights_on_device device(made);
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  device.expect(made, "all groups");
  const host_matrix whole = device.output();
  const std::vector<std::int64_t> all = made.offsets();
  std::mt19937_64 random = tmap::testing::run_random(22);
  for (std::uint32_t round = 0; round < 6; ++round) {
    std::vector<std::int64_t> values = all;
    for (std::uint32_t g = 0; g < with.groups(); ++g) {
      if (random() % 3 == 0) values[with.groups() + g] = 0;
    }
    device.set_offsets(made, values);
    const std::uint32_t plan = round % plan_count();
    TMAP_ASSERT_OK(device.enqueue(nullptr, plan));
    std::vector<judged_group> kept;
    for (std::uint32_t g = 0; g < with.groups(); ++g) {
      const std::uint64_t first = g * made.c_group_rows();
      if (values[with.groups() + g] != 0) kept.push_back({first, first + with.m, {}});
    }
    EXPECT_EQ(first_difference(device.output(), whole, rows_of(whole, kept)), -1)
        << "round " << round << ", plan " << plan_name(plan);
  }
}

INSTANTIATE_TEST_SUITE_P(layouts, invariant_weights,
                         ::testing::Combine(::testing::Values(operand_type::bf16),
                                            ::testing::Values(a_layout::k_by_m, a_layout::m_by_k),
                                            ::testing::Values(b_layout::k_by_n, b_layout::n_by_k)));
INSTANTIATE_TEST_SUITE_P(eight_bits, invariant_weights,
                         ::testing::Combine(::testing::Values(operand_type::f8_e4m3, operand_type::f8_e5m2),
                                            ::testing::Values(a_layout::m_by_k), ::testing::Values(b_layout::n_by_k)));

class invariant_columns : public gemm_test,
                          public ::testing::WithParamInterface<std::tuple<operand_type, a_layout, b_layout>> {};

TEST_P(invariant_columns, a_column_has_the_same_bits_with_any_other_columns_in_any_plan) {
  column_settings with;
  std::tie(with.type, with.a_layout, with.b_layout) = GetParam();
  const bool runs_along = with.b_layout == b_layout::k_by_n;
  with.format = offset_format::begins_and_counts;
  with.sizes = runs_along ? aligned_sizes(invariance_sizes) : invariance_sizes;
  with.m = 392;
  with.k = 784;
  column_case made(with);
  const columns_on_device device(made);
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  device.expect(made, "all columns");
  const host_matrix whole = device.output();
  const std::vector<std::int64_t> begins(made.offsets().begin(), made.offsets().begin() + with.groups());
  std::mt19937_64 random = tmap::testing::run_random(23);
  for (std::uint32_t round = 0; round < 12; ++round) {
    device.set_offsets(made, parts_of(random, begins, with.sizes, runs_along ? 8 : 1));
    const std::uint32_t plan = round % plan_count();
    TMAP_ASSERT_OK(device.enqueue(nullptr, plan));
    std::vector<part> parts;
    for (const judged_group& group : made.judged()) parts.push_back({0, with.m, group.begin, group.end});
    EXPECT_EQ(first_difference(device.output(), whole, parts), -1) << "round " << round << ", plan " << plan_name(plan);
    device.memory().expect(made.judged());
  }
}

INSTANTIATE_TEST_SUITE_P(layouts, invariant_columns,
                         ::testing::Combine(::testing::Values(operand_type::bf16, operand_type::f16),
                                            ::testing::Values(a_layout::m_by_k, a_layout::k_by_m),
                                            ::testing::Values(b_layout::n_by_k, b_layout::k_by_n)));

class invariant_pointers : public gemm_test,
                           public ::testing::WithParamInterface<std::tuple<a_layout, b_layout, result_type>> {};

/// Takes the first rows and the last columns from a product, or all its work. Returns what is left.
part cut_product(std::mt19937_64& random, const pointer_settings& with, std::size_t g, const pointer_columns& all,
                 pointer_columns& cut) {
  const product_size size = with.sizes[g];
  const auto skipped = static_cast<std::int64_t>(random() % size.m) / 8 * 8;
  const auto columns = 8 * (1 + static_cast<std::int64_t>(random() % (size.n / 8)));
  const bool is_out = random() % 4 == 0;
  const std::int64_t a_step = with.a_layout == a_layout::m_by_k ? all.a_pitch[g] : 2;
  cut.a[g] = all.a[g] + static_cast<std::uint64_t>(skipped * a_step);
  cut.c[g] = all.c[g] + static_cast<std::uint64_t>(skipped * all.c_pitch[g]);
  cut.m[g] = is_out ? 0 : size.m - skipped;
  cut.n[g] = columns;
  if (is_out) return {};
  return {static_cast<std::uint64_t>(skipped), static_cast<std::uint64_t>(size.m), 0,
          static_cast<std::uint64_t>(columns)};
}

TEST_P(invariant_pointers, a_result_has_the_same_bits_with_any_other_products_in_any_plan) {
  pointer_settings with;
  std::tie(with.a_layout, with.b_layout, with.c_type) = GetParam();
  with.sizes = {{70, 264, 200}, {1, 1000, 784}, {129, 520, 72}, {400, 256, 328}, {64, 8, 1032}, {300, 776, 64}};
  pointers_on_device device(with);
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  device.expect_all();
  const std::vector<host_matrix> whole = device.outputs();
  const pointer_columns all = device.columns();
  std::mt19937_64 random = tmap::testing::run_random(24);
  for (std::uint32_t round = 0; round < 12; ++round) {
    std::vector<part> left;
    for (std::size_t g = 0; g < whole.size(); ++g) {
      left.push_back(cut_product(random, with, g, all, device.columns()));
    }
    device.upload();
    device.reset_outputs();
    const std::uint32_t plan = round % plan_count();
    TMAP_ASSERT_OK(device.enqueue(nullptr, plan));
    const std::vector<host_matrix> got = device.outputs();
    for (std::size_t g = 0; g < got.size(); ++g) {
      EXPECT_EQ(first_difference(got[g], whole[g], {left[g]}), -1)
          << "round " << round << ", product " << g << ", plan " << plan_name(plan);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(layouts, invariant_pointers,
                         ::testing::Combine(::testing::Values(a_layout::m_by_k, a_layout::k_by_m),
                                            ::testing::Values(b_layout::n_by_k, b_layout::k_by_n),
                                            ::testing::Values(result_type::like_operands, result_type::f32)));

}  // namespace
}  // namespace tmap::gemm::testing
