// SPDX-License-Identifier: Apache-2.0
// Tests the limits of a product's checks. A value that is just legal passes, and one step less does
// not. The cases use the smallest counts in each layout. Every other number is as large as the
// later checks allow.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "gemm/api_arguments.hpp"
#include "lib/gemm/checks.hpp"
#include "support/refusal.hpp"

namespace tmap::gemm::testing {
namespace {

constexpr std::uint64_t far = std::uint64_t{1} << 20;

using tmap::testing::expect_refused;

template <class Problem>
result<void> check(const Problem& problem) {
  support::arguments given;
  check_problem(given, problem);
  return given.outcome();
}

template <class Problem>
Problem with_groups(Problem made, std::uint32_t groups) {
  made.groups = groups;
  return made;
}

TEST(grouped_tight_sizes, two_groups_are_enough_to_overlap) {
  for (const std::uint32_t groups : {2u, 3u, max_groups}) {
    EXPECT_TRUE(check(with_groups(rows(), groups)).has_value()) << groups;
    EXPECT_TRUE(check(with_groups(weights(), groups)).has_value()) << groups;
    row_problem product = with_groups(rows(), groups);
    product.b_group_pitch_bytes = 4080;
    expect_refused(check(product), "problem.b_group_pitch_bytes", 4080, 4096, "groups of b overlap");
    product.b_group_pitch_bytes = far + 8;
    expect_refused(check(product), "problem.b_group_pitch_bytes", far + 8, 16, "groups of b misaligned");
    weight_problem gradient = with_groups(weights(), groups);
    gradient.c_group_pitch_bytes = 4080;
    expect_refused(check(gradient), "problem.c_group_pitch_bytes", 4080, 4096, "groups of c overlap");
    gradient.c_group_pitch_bytes = far + 8;
    expect_refused(check(gradient), "problem.c_group_pitch_bytes", far + 8, 16, "groups of c misaligned");
  }
}

/// Calls the checks themselves, because a workspace for too many groups would be refused, too.
TEST(grouped_tight_sizes, groups_are_counted_by_themselves) {
  expect_refused(check(with_groups(rows(), max_groups + 1)), "problem.groups", max_groups + 1, max_groups, "rows");
  expect_refused(check(with_groups(weights(), max_groups + 1)), "problem.groups", max_groups + 1, max_groups,
                 "weights");
  pointer_problem pointers;
  pointers.groups = max_groups + 1;
  expect_refused(check(pointers), "problem.groups", max_groups + 1, max_groups, "pointers");
}

TEST(grouped_tight_sizes, one_group_has_no_next_one) {
  row_problem product = with_groups(rows(), 1);
  weight_problem gradient = with_groups(weights(), 1);
  for (const std::uint64_t pitch : {0, 8, 4080}) {
    product.b_group_pitch_bytes = gradient.c_group_pitch_bytes = pitch;
    EXPECT_TRUE(check(product).has_value()) << pitch;
    EXPECT_TRUE(check(gradient).has_value()) << pitch;
  }
}

TEST(grouped_tight_sizes, the_last_group_may_end_with_all_addresses) {
  constexpr std::uint64_t all_addresses = std::uint64_t{1} << 57;
  for (const std::uint32_t groups : {1u, 2u, 10u}) {
    row_problem product = with_groups(rows(), groups);
    product.b.address = all_addresses - groups * 4096;
    EXPECT_TRUE(check(product).has_value()) << groups;
    product.b.address += 16;
    expect_refused(check(product), "problem.b.address", all_addresses - 4096 + 16, all_addresses, "b");
    weight_problem gradient = with_groups(weights(), groups);
    gradient.c.address = all_addresses - groups * 4096;
    EXPECT_TRUE(check(gradient).has_value()) << groups;
    gradient.c.address += 16;
    expect_refused(check(gradient), "problem.c.address", all_addresses - 4096 + 16, all_addresses, "c");
  }
}

TEST(grouped_tight_sizes, pitches_reach_as_far_as_a_map_does) {
  constexpr std::uint64_t most = (std::uint64_t{1} << 40) - 16;
  row_problem product = with_groups(rows(), 2);
  product.b_group_pitch_bytes = most;
  EXPECT_TRUE(check(product).has_value());
  product.b_group_pitch_bytes = most + 16;
  expect_refused(check(product), "problem.b_group_pitch_bytes", most + 16, most, "group pitch");
  product = with_groups(rows(), 2);
  product.b.pitch_bytes = far * far / 16;
  product.b_group_pitch_bytes = most;
  expect_refused(check(product), "problem.b.pitch_bytes", far * far / 16, most / 64, "64 rows of a group lead further");
  product.groups = 1;
  EXPECT_TRUE(check(product).has_value());
}

TEST(grouped_tight_sizes, of_b_by_ka_group_has_k_rows_of_n_columns) {
  row_problem product = with_groups(rows(), 2);
  product.b_layout = b_layout::k_by_n;
  product.b = {0x20000, 128};
  product.b_group_pitch_bytes = 32 * 128;
  EXPECT_TRUE(check(product).has_value());
  product.b_group_pitch_bytes -= 16;
  expect_refused(check(product), "problem.b_group_pitch_bytes", 4080, 4096, "groups overlap");
  product.b = {0x20000, 112};
  product.b_group_pitch_bytes = far;
  expect_refused(check(product), "problem.b.pitch_bytes", 112, 128, "rows overlap");
}

TEST(grouped_tight_sizes, of_a_by_ka_line_has_all_rows) {
  row_problem product = with_groups(rows(), 2);
  product.a_layout = a_layout::k_by_m;
  product.a.pitch_bytes = 208;
  EXPECT_TRUE(check(product).has_value()) << "100 rows of 2 bytes";
  product.a.pitch_bytes = 192;
  expect_refused(check(product), "problem.a.pitch_bytes", 192, 200, "lines overlap");
}

TEST(grouped_tight_sizes, gates_leave_half_of_the_columns) {
  row_problem product = with_groups(rows(), 2);
  product.epilogue.gate.function = gate_function::silu;
  product.c.pitch_bytes = 64;
  EXPECT_TRUE(check(product).has_value()) << "n / 2 columns of 2 bytes";
  product.c.pitch_bytes = 48;
  expect_refused(check(product), "problem.c.pitch_bytes", 48, 64, "columns of c");
  product = with_groups(rows(), 2);
  product.accumulate = true;
  product.c.pitch_bytes = 112;
  expect_refused(check(product), "problem.c.pitch_bytes", 112, 128, "any other keeps them all");
}

/// Rows of C take whole units. So do rows of B, if N is their inner dim.
TEST(grouped_tight_sizes, of_columns_follows_the_results) {
  const auto check_n = [](std::uint64_t n, result_type c_type, b_layout layout) {
    row_problem product = with_groups(rows(), 1);
    product.a.pitch_bytes = product.b.pitch_bytes = product.c.pitch_bytes = far;
    product.n = n;
    product.c_type = c_type;
    product.c_scales.values = reinterpret_cast<float*>(0x10000);
    product.b_layout = layout;
    return check(product);
  };
  for (const auto& [c_type, unit] :
       {std::pair{result_type::like_operands, 8u}, {result_type::f32, 4u}, {result_type::f8_e4m3, 16u}}) {
    EXPECT_TRUE(check_n(unit, c_type, b_layout::n_by_k).has_value()) << unit;
    EXPECT_TRUE(check_n(5 * unit, c_type, b_layout::n_by_k).has_value()) << unit;
    expect_refused(check_n(unit + unit / 2, c_type, b_layout::n_by_k), "problem.n", unit + unit / 2, unit, "C");
  }
  expect_refused(check_n(12, result_type::f32, b_layout::k_by_n), "problem.n", 12, 8, "B");
  weight_problem gradient = with_groups(weights(), 1);
  gradient.c_type = result_type::f32;
  gradient.c.pitch_bytes = 128;
  EXPECT_TRUE(check(gradient).has_value());
  gradient.n = 12;
  expect_refused(check(gradient), "problem.n", 12, 8, "rows of B");
}

TEST(grouped_tight_sizes, extents_are_one_unit_at_least) {
  const auto refuses = [](std::uint64_t row_problem::*extent, std::uint64_t value, operand_type type) {
    row_problem product = with_groups(rows(), 1);  // with one group, nothing is divided by its rows
    product.type = type;
    product.a.pitch_bytes = product.b.pitch_bytes = product.c.pitch_bytes = far;
    product.*extent = value;
    return check(product);
  };
  for (const auto& [name, extent] : {std::pair{"problem.n", &row_problem::n}, {"problem.k", &row_problem::k}}) {
    EXPECT_TRUE(refuses(extent, 8, operand_type::bf16).has_value());
    EXPECT_TRUE(refuses(extent, 16, operand_type::f8_e4m3).has_value());
    if (extent == &row_problem::n) {
      EXPECT_TRUE(refuses(extent, 8, operand_type::f8_e4m3).has_value()) << "C has 16 bits";
    } else {
      expect_refused(refuses(extent, 8, operand_type::f8_e4m3), name, 8, 16, "half a unit");
    }
    expect_refused(refuses(extent, 0, operand_type::bf16), name, 0, 8, "no columns");
    expect_refused(refuses(extent, 7, operand_type::f16), name, 7, 8, "less than a unit");
    expect_refused(refuses(extent, 12, operand_type::bf16), name, 12, 8, "part of a unit");
    expect_refused(refuses(extent, max_extent + 8, operand_type::bf16), name, max_extent + 8, max_extent, "too many");
  }
  weight_problem gradient = with_groups(weights(), 1);
  gradient.n = 0;
  expect_refused(check(gradient), "problem.n", 0, 8, "no columns");
  gradient = with_groups(weights(), 1);
  gradient.m = 0;
  expect_refused(check(gradient), "problem.m", 0, 1, "no rows");
}

TEST(grouped_tight_sizes, without_rows_only_the_result_is_looked_at) {
  row_problem product = with_groups(rows(), 2);
  product.rows = 0;
  product.a = product.b = product.c = {};
  EXPECT_TRUE(check(product).has_value());
  weight_problem gradient = with_groups(weights(), 2);
  gradient.rows = 0;
  gradient.a = gradient.b = {};
  EXPECT_TRUE(check(gradient).has_value());
  gradient.c.pitch_bytes = 48;
  expect_refused(check(gradient), "problem.c.pitch_bytes", 48, 64, "gradients of nothing are zeros, which are written");
}

}  // namespace
}  // namespace tmap::gemm::testing
