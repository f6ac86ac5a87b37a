// SPDX-License-Identifier: Apache-2.0
// Tests results of e4m3 with scales on the GPU. They must have the bits that the host makes of the
// same product's results in f32, which other tests compare with the reference.
#include <tmap/detail/quantization.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gemm/row_runs.hpp"

namespace tmap::gemm::testing {
namespace {

/// The scales of C, with gaps between rows and columns.
struct scale_array {
  std::uint64_t row_stride;
  std::uint64_t column_stride;
  std::vector<float> values;
};
constexpr float untouched = -77;

scale_array scales_for(std::uint64_t rows, std::uint64_t columns, bool by_columns) {
  const std::uint64_t blocks = (columns + scaled_results - 1) / scaled_results;
  const std::uint64_t row_stride = by_columns ? 1 : blocks + 3;
  const std::uint64_t column_stride = by_columns ? rows + 5 : 1;
  return {row_stride, column_stride, std::vector<float>(rows * row_stride + blocks * column_stride, untouched)};
}

/// The results of a row, [first, end), that share a scale.
struct result_block {
  std::uint64_t row;
  std::uint64_t first;
  std::uint64_t end;
};

/// Rounds the results of good groups to e4m3. `factor_of` returns what those of a block are
/// multiplied by.
template <class FactorOf>
void round_results(const row_case& of, const host_matrix& from, host_matrix& to, const FactorOf& factor_of) {
  for (const judged_group& group : of.judged()) {
    if (!group.status.is_good()) continue;
    for (std::uint64_t row = group.begin; row < group.end; ++row) {
      for (std::uint64_t first = 0; first < from.columns(); first += scaled_results) {
        const result_block block{row, first, std::min<std::uint64_t>(first + scaled_results, from.columns())};
        const float factor = factor_of(block);
        for (std::uint64_t column = first; column < block.end; ++column) {
          to.set(row, column, static_cast<double>(from.at(row, column) * factor));
        }
      }
    }
  }
}

/// Quantizes the results of good groups.
void quantize(const row_case& of, const host_matrix& from, host_matrix& to, scale_array& scales,
              bool are_powers_of_two) {
  round_results(of, from, to, [&](const result_block& block) {
    float largest = 0;
    for (std::uint64_t column = block.first; column < block.end; ++column) {
      largest = std::max(largest, std::abs(from.at(block.row, column)));
    }
    const tmap::detail::block_scale scale = tmap::detail::scale_of(largest, 448, are_powers_of_two);
    scales.values[block.row * scales.row_stride + block.first / scaled_results * scales.column_stride] = scale.scale;
    return scale.inverse;
  });
}

/// Returns the results in f32, which are compared with the reference.
host_matrix results_in_f32(row_settings with) {
  with.c_type = result_type::f32;
  const row_case plain(with);
  const rows_on_device in_f32(plain);
  EXPECT_TRUE(in_f32.enqueue(nullptr).has_value()) << text_of(with);
  in_f32.expect(plain, text_of(with));
  return in_f32.output();
}

void expect_scaled(row_settings with, bool by_columns, bool are_powers_of_two) {
  const host_matrix in_f32 = results_in_f32(with);
  with.c_type = result_type::f8_e4m3;
  const row_case made(with);
  rows_on_device device(made);
  host_matrix want = made.c();
  scale_array scales = scales_for(made.rows(), with.c_columns(), by_columns);
  const device_array<float> on_device(scales.values);
  const std::vector<float> before = scales.values;
  quantize(made, in_f32, want, scales, are_powers_of_two);
  device.set_scales({on_device.data(), scales.row_stride, scales.column_stride, are_powers_of_two});
  std::vector<unsigned char> kept;
  for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
    if (!is_legal(with, plan)) continue;
    device.reset_output();
    device.reset_kept();
    on_device.upload(before);
    TMAP_ASSERT_OK(device.enqueue(nullptr, plan));
    EXPECT_EQ(device.output().bytes(), want.bytes()) << plan_name(plan) << ": " << text_of(with);
    EXPECT_EQ(on_device.download(), scales.values) << plan_name(plan) << ": " << text_of(with);
    if (plan == 0) kept = device.kept().bytes();
    EXPECT_EQ(device.kept().bytes(), kept) << plan_name(plan) << ": " << text_of(with);
    EXPECT_EQ(kept != made.kept().bytes(), with.kept) << text_of(with);
  }
  device.reset_output();
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  EXPECT_EQ(device.output().bytes(), want.bytes()) << text_of(with);
}

/// Expects results that are divided by scales that are there before. Some are so small that results
/// are cut to 448.
void expect_given(row_settings with, std::uint64_t row_stride, std::uint64_t column_stride) {
  const host_matrix in_f32 = results_in_f32(with);
  with.c_type = result_type::f8_e4m3;
  const row_case made(with);
  rows_on_device device(made);
  const std::uint64_t blocks = (with.c_columns() + scaled_results - 1) / scaled_results;
  std::vector<float> scales(made.rows() * row_stride + blocks * column_stride + 1);
  for (std::size_t i = 0; i < scales.size(); ++i)
    scales[i] = std::ldexp(1 + static_cast<float>(i % 7) / 7, static_cast<int>(i % 5) - 4);
  const device_array<float> on_device(scales);
  host_matrix want = made.c();
  std::uint64_t cut = 0;
  round_results(made, in_f32, want, [&](const result_block& block) {
    const float factor = 1 / scales[block.row * row_stride + block.first / scaled_results * column_stride];
    for (std::uint64_t column = block.first; column < block.end; ++column) {
      cut += std::abs(in_f32.at(block.row, column) * factor) > 448;
    }
    return factor;
  });
  EXPECT_NE(cut, 0u) << text_of(with);
  device.set_scales(
      {.values = on_device.data(), .row_stride = row_stride, .column_stride = column_stride, .are_given = true});
  for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
    if (!is_legal(with, plan)) continue;
    device.reset_output();
    TMAP_ASSERT_OK(device.enqueue(nullptr, plan));
    EXPECT_EQ(device.output().bytes(), want.bytes()) << plan_name(plan) << ": " << text_of(with);
    EXPECT_EQ(on_device.download(), scales) << plan_name(plan) << ": " << text_of(with);
  }
}

class grouped_scaled_results : public gemm_test, public ::testing::WithParamInterface<operand_type> {
 protected:
  static row_settings settings() {
    row_settings with;
    with.type = GetParam();
    with.sizes = {70, 0, 1, 130, 300};
    return with;
  }
};

TEST_P(grouped_scaled_results, have_the_bits_of_the_formula) {
  for (const std::uint64_t n : {16, 112, 128, 144, 528, 1024}) {
    for (const bool by_columns : {false, true}) {
      for (const bool are_powers : {false, true}) {
        row_settings with = settings();
        with.n = n;
        with.bias = true;
        expect_scaled(with, by_columns, are_powers);
      }
    }
  }
}

TEST_P(grouped_scaled_results, of_gates) {
  for (const auto columns : {gate_columns::halves, gate_columns::interleaved}) {
    for (const std::uint64_t n : {32, 224, 256, 544, 1056}) {
      row_settings with = settings();
      with.n = n;
      with.gates.function = gate_function::silu;
      with.gates.columns = columns;
      with.column_scales = true;
      expect_scaled(with, true, n % 64 == 0);
    }
  }
}

/// Two consumers have the same rows of a tile of 64 rows, and share scales. Groups end at each row
/// of such a tile and around its end. Each block takes several tiles. The columns leave both
/// consumers, or one of them, a part of the last block of results that share a scale.
TEST_P(grouped_scaled_results, of_gates_with_any_number_of_rows) {
  std::vector<std::int64_t> sizes{0, 127, 128, 129, 0, 191, 193};
  for (std::int64_t rows = 66; rows > 0; --rows) sizes.push_back(rows);
  for (const auto columns : {gate_columns::halves, gate_columns::interleaved}) {
    for (const std::uint64_t n : {288, 416, 640}) {
      row_settings with = settings();
      with.sizes = sizes;
      with.n = n;
      with.k = 64;
      with.gates.function = gate_function::silu;
      with.gates.columns = columns;
      with.kept = n != 416;
      expect_scaled(with, n == 288, n == 640);
    }
  }
}

/// Blocks of zeros have the scale 1: few results are one sum of few integers.
TEST_P(grouped_scaled_results, of_zeros) {
  row_settings with = settings();
  with.kind = input_kind::integers;
  with.n = 16;
  with.k = 16;
  with.row_scales = true;
  with.sizes = {2000};
  expect_scaled(with, false, false);
}

TEST_P(grouped_scaled_results, of_scales_that_are_given) {
  for (const std::uint64_t n : {16, 144, 544}) {
    row_settings with = settings();
    with.n = n;
    with.kind = input_kind::integers;
    expect_given(with, 1, 0);  // one for each row
    expect_given(with, 0, 0);  // one for all
    expect_given(with, 5, 1);
    if (n % 32 != 0) continue;
    with.kind = input_kind::normal;  // results of a gate are not exact
    with.gates.function = gate_function::silu;
    expect_given(with, 1, 0);
  }
}

/// A NaN takes all results that share its scale, and no others.
TEST_P(grouped_scaled_results, of_nan) {
  row_settings with = settings();
  with.c_type = result_type::f8_e4m3;
  with.sizes = {20};
  with.column_scales = true;
  const row_case made(with);
  rows_on_device device(made);
  std::vector<float> factors = made.column_scales();
  factors[130] = std::numeric_limits<float>::quiet_NaN();
  const device_array<float> spoiled(factors);
  const device_array<float> scales(std::vector<float>(made.rows() * 2, untouched));
  device.set_scales({scales.data(), 2, 1, false});
  row_problem problem = device.problem();
  problem.epilogue.column_scales = spoiled.data();
  for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
    TMAP_ASSERT_OK(multiply(problem, device.memory().on(nullptr, plan)));
    const host_matrix got = device.output();
    const std::vector<float> found = scales.download();
    for (std::uint64_t row = 0; row < 20; ++row) {
      EXPECT_TRUE(std::isfinite(found[row * 2]) && std::isnan(found[row * 2 + 1])) << row;
      for (std::uint64_t column = 0; column < with.n; ++column) {
        EXPECT_EQ(std::isnan(got.at(row, column)), column >= scaled_results) << row << ", " << column;
      }
    }
  }
}

/// The results that share a scale come from two consumers in tiles of 64 rows. Both see what is not
/// finite in either half, and nothing else of it.
TEST_P(grouped_scaled_results, of_gates_of_nan_and_infinity) {
  for (const auto columns : {gate_columns::halves, gate_columns::interleaved}) {
    row_settings with = settings();
    with.c_type = result_type::f8_e4m3;
    with.sizes = {20, 1};
    with.n = 4 * 2 * scaled_results;
    with.column_scales = true;
    with.gates.function = gate_function::silu;
    with.gates.columns = columns;
    const row_case made(with);
    rows_on_device device(made);
    std::vector<float> factors = made.column_scales();
    for (std::uint64_t group = 0; group < 2; ++group) {
      float* const of_group = factors.data() + group * with.n;
      of_group[with.gate_column(10)] = std::numeric_limits<float>::quiet_NaN();
      of_group[with.value_column(scaled_results + 70)] = std::numeric_limits<float>::infinity();
      of_group[with.gate_column(3 * scaled_results + 64)] = std::numeric_limits<float>::quiet_NaN();
    }
    const device_array<float> spoiled(factors);
    const std::vector<float> before(made.rows() * 4, untouched);
    const device_array<float> scales(before);
    device.set_scales({scales.data(), 4, 1, false});
    row_problem problem = device.problem();
    problem.epilogue.column_scales = spoiled.data();
    for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
      if (!is_legal(with, plan)) continue;
      device.reset_output();
      scales.upload(before);
      TMAP_ASSERT_OK(multiply(problem, device.memory().on(nullptr, plan)));
      const host_matrix got = device.output();
      const std::vector<float> found = scales.download();
      for (std::uint64_t row = 0; row < 21; ++row) {
        for (std::uint64_t column = 0; column < with.c_columns(); ++column) {
          const std::uint64_t block = column / scaled_results;
          EXPECT_EQ(std::isnan(got.at(row, column)), block != 2) << plan_name(plan) << " " << row << ", " << column;
          EXPECT_EQ(std::isnan(found[row * 4 + block]), block != 2) << plan_name(plan) << " " << row << ", " << block;
        }
        EXPECT_TRUE(found[row * 4 + 2] > 0) << plan_name(plan) << " " << row;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(types, grouped_scaled_results,
                         ::testing::Values(operand_type::bf16, operand_type::f16, operand_type::f8_e4m3));

}  // namespace
}  // namespace tmap::gemm::testing
