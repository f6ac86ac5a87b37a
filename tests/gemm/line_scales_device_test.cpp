// SPDX-License-Identifier: Apache-2.0
// Tests sums over rows of 8-bit operands, with a scale for each 128 rows of each line of both. Rows
// that belong to no group are NaN, and so are the gaps between scales, so that a read of one shows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "gemm/on_device.hpp"

namespace tmap::gemm::testing {
namespace {

void run_every_plan(const weight_settings& with, const std::string& what) {
  const weight_case made(with);
  const weights_on_device device(made);
  const expected_output want = made.expected();
  for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
    device.reset_output();
    TMAP_ASSERT_OK(device.enqueue(nullptr, plan));
    device.expect(made, want, std::string(plan_name(plan)) + ", " + what);
  }
}

class scaled_weights : public gemm_test, public ::testing::WithParamInterface<std::tuple<operand_type, input_kind>> {
 protected:
  static weight_settings settings(const std::vector<std::int64_t>& sizes) {
    weight_settings with = eight_bit_weights(std::get<0>(GetParam()), sizes);
    with.kind = std::get<1>(GetParam());
    return with;
  }
};

// One to twelve blocks of K: turns of four stages, and what they leave. Groups end in blocks of any
// size, and begin at any multiple of 16.
TEST_P(scaled_weights, every_plan_with_any_number_of_blocks) {
  weight_settings with = settings({16, 128, 144, 256, 0, 384, 512, 528, 640, 896, 1040, 1408, 1});
  with.m = 264;
  with.n = 520;
  run_every_plan(with, "all numbers of blocks");
}

// Groups end before the next begins, by any number of rows.
TEST_P(scaled_weights, every_plan_with_last_blocks_of_any_size) {
  const std::vector<std::int64_t> sizes{1, 15, 17, 31, 33, 127, 129, 255, 257, 511, 513, 700};
  weight_settings with = settings(sizes);
  with.sizes.back() = 704;
  with.format = offset_format::begins_and_counts;
  weight_case made(with);
  std::vector<std::int64_t> offsets = made.offsets();
  std::copy(sizes.begin(), sizes.end(), offsets.begin() + static_cast<std::ptrdiff_t>(sizes.size()));
  made.set_offsets(offsets);
  const weights_on_device device(made);
  const expected_output want = made.expected();
  for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
    device.reset_output();
    TMAP_ASSERT_OK(device.enqueue(nullptr, plan));
    device.expect(made, want, plan_name(plan));
  }
}

TEST_P(scaled_weights, tails_of_both_sides) {
  for (const std::uint64_t m : {1, 63, 72, 128, 136, 264}) {
    for (const std::uint64_t n : {8, 72, 120, 256, 264, 392}) {
      weight_settings with = settings({3, 0, 130});
      with.m = m;
      with.n = n;
      with.number = m + n;
      run_every_plan(with, "m " + std::to_string(m) + ", n " + std::to_string(n));
    }
  }
}

// Of f32, rows of C end at multiples of four columns.
TEST_P(scaled_weights, results_in_f32) {
  for (const bool accumulate : {false, true}) {
    for (const std::uint64_t n : {4, 260, 268}) {
      weight_settings with = settings({200, 0, 65});
      with.c_type = result_type::f32;
      with.accumulate = accumulate;
      with.n = n;
      run_every_plan(with, "n " + std::to_string(n));
    }
  }
}

TEST_P(scaled_weights, accumulate) {
  weight_settings with = settings({200, 0, 65});
  with.accumulate = true;
  run_every_plan(with, "accumulate");
}

TEST_P(scaled_weights, every_format_of_offsets) {
  for (const auto format : every_format) {
    for (const std::uint32_t bytes : {4u, 8u}) {
      weight_settings with = settings({3, 0, 130, 272});
      with.format = format;
      with.offset_bytes = bytes;
      run_every_plan(with, "format " + std::to_string(static_cast<int>(format)));
    }
  }
}

TEST_P(scaled_weights, groups_of_whole_blocks_need_no_stride) {
  weight_settings with = settings({128, 0, 384, 256, 100});
  with.joined_scales = true;
  run_every_plan(with, "joined scales");
}

TEST_P(scaled_weights, scales_of_a_line_may_follow_each_other) {
  weight_settings with = settings({300, 16, 130});
  with.lines_of_a_scales = true;
  run_every_plan(with, "lines of scales");
}

TEST_P(scaled_weights, outputs_by_a_list_of_addresses) {
  weight_settings with = settings({300, 0, 130});
  with.lists_c = true;
  run_every_plan(with, "a list");
}

TEST_P(scaled_weights, empty_groups_are_zero) {
  for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{0, 0, 5}, {16, 0, 0}, {0, 0, 0}, {0}}) {
    run_every_plan(settings(sizes), "empty groups");
  }
}

TEST_P(scaled_weights, groups_may_share_rows) {
  weight_settings with = settings({112, 112, 112});
  with.format = offset_format::begins_and_counts;
  weight_case made(with);
  const std::int64_t first = made.offsets()[1];
  made.set_offsets({first, first + 16, first + 96, 60, 90, 1});
  const weights_on_device device(made);
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  device.expect(made, "three groups of the same rows");
}

// Set-up works in rounds, and its blocks share the groups.
TEST_P(scaled_weights, many_small_groups) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t g = 0; g < 600; ++g) sizes.push_back(g % 7 * 16);
  weight_settings with = settings(sizes);
  with.m = 64;
  with.n = 72;
  run_every_plan(with, "600 groups");
}

// No copy begins at any other row, so such a group is bad.
TEST_P(scaled_weights, groups_that_begin_elsewhere_are_bad) {
  weight_settings with = settings({48, 48, 48, 48});
  weight_case made(with);
  const weights_on_device device(made);
  for (const std::vector<std::int64_t>& values : {std::vector<std::int64_t>{40, 64, 72, 160},
                                                  {16, 17, 32, 33},
                                                  {48, 32, 96, 144},
                                                  {-16, 16, 32, 48},
                                                  {16, 1 << 30, 32, 48},
                                                  {16, 32, 32, 10000}}) {
    device.set_offsets(made, values);
    TMAP_ASSERT_OK(device.enqueue(nullptr));
    device.expect(made, "first value " + std::to_string(values[0]));
  }
}

INSTANTIATE_TEST_SUITE_P(types, scaled_weights,
                         ::testing::Combine(::testing::Values(operand_type::f8_e4m3, operand_type::f8_e5m2),
                                            ::testing::Values(input_kind::normal, input_kind::integers)));

class scaled_weight_sums : public gemm_test {};

TEST_F(scaled_weight_sums, of_many_rows_err_by_little_more_than_their_rounding) {
  constexpr double limit = 1.1;
  for (const operand_type type : {operand_type::f8_e4m3, operand_type::f8_e5m2}) {
    const weight_case made(eight_bit_weights(type, {7168, 16}));
    const weights_on_device device(made);
    const expected_output want = made.expected();
    for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
      device.reset_output();
      TMAP_ASSERT_OK(device.enqueue(nullptr, plan));
      device.expect(made, want, plan_name(plan));
      EXPECT_LE(want.error_against_rounding(device.output()), limit) << plan_name(plan);
    }
  }
}

/// Expects each result to be the promised one, NaNs and infinities too. Returns how many are
/// finite.
std::uint64_t expect_promised(const weight_case& made, const host_matrix& got, const char* plan) {
  const std::vector<judged_group> groups = made.judged();
  std::uint64_t finite = 0;
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    for (std::uint64_t row = 0; row < made.settings().m; ++row) {
      for (std::uint64_t column = 0; column < made.settings().n; ++column) {
        const float want = promised(made, g, groups[g], row, column);
        const float found = got.at(g * made.c_group_rows() + row, column);
        EXPECT_TRUE(want == found || (std::isnan(want) && std::isnan(found)))
            << plan << ", group " << g << ", row " << row << ", column " << column << ": " << found << " instead of "
            << want;
        if (::testing::Test::HasFailure()) return finite;
        finite += std::isfinite(found) ? 1 : 0;
      }
    }
  }
  return finite;
}

// A bad scale spoils the row or column that it belongs to, and nothing else.
TEST_F(scaled_weight_sums, scales_may_be_any_numbers) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float hostile[] = {
      0.0f,     -0.0f,           infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), 0x1p-149f, -0x1p-127f,
      0x1p127f, 0x1.fffffep127f, -1.0f,    3e-30f};
  weight_settings with = eight_bit_weights(operand_type::f8_e4m3, {656, 16, 270});
  with.kind = input_kind::integers;
  with.c_type = result_type::f32;
  with.m = 200;
  with.n = 404;
  weight_case made(with);
  const std::vector<judged_group> groups = made.judged();
  std::uint64_t at = 0;
  for (const float value : hostile) {
    for (const std::uint32_t g : {0u, 2u}) {
      const std::uint64_t block = at % (g == 0 ? 6 : 3);
      made.a_scales().set(g, groups[g].begin, (5 + 17 * at) % with.m, block, value);
      made.b_scales().set(g, groups[g].begin, (3 + 37 * at) % with.n, block, value);
      ++at;
    }
  }
  const weights_on_device device(made);
  for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
    device.reset_output();
    TMAP_ASSERT_OK(device.enqueue(nullptr, plan));
    EXPECT_GT(expect_promised(made, device.output(), plan_name(plan)), 3 * with.m * with.n / 2);
  }
}

// Scales that are no powers of two show a product that is not rounded, and another order of sums.
TEST_F(scaled_weight_sums, follow_the_promised_order) {
  weight_settings with = eight_bit_weights(operand_type::f8_e4m3, {1300, 0});
  with.sizes[0] = 1296;
  with.kind = input_kind::integers;
  with.c_type = result_type::f32;
  with.m = 136;
  with.n = 264;
  weight_case made(with);
  std::uint32_t state = 1;
  const auto next = [&] { return 0.5f + static_cast<float>((state = state * 1664525 + 1013904223) >> 8) * 0x1p-24f; };
  for (std::uint64_t block = 0; block < 11; ++block) {
    for (std::uint64_t line = 0; line < with.m; ++line) made.a_scales().set(0, 0, line, block, next());
    for (std::uint64_t line = 0; line < with.n; ++line) made.b_scales().set(0, 0, line, block, next());
  }
  const weights_on_device device(made);
  for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
    device.reset_output();
    TMAP_ASSERT_OK(device.enqueue(nullptr, plan));
    EXPECT_EQ(expect_promised(made, device.output(), plan_name(plan)), 2 * with.m * with.n);
  }
}

}  // namespace
}  // namespace tmap::gemm::testing
