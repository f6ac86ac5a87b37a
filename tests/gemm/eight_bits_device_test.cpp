// SPDX-License-Identifier: Apache-2.0
// Tests products of 8-bit operands in every plan, with sums in f32 and with those of the tensor
// cores.
#include <gtest/gtest.h>

#include <cstdint>

#include "gemm/row_runs.hpp"

namespace tmap::gemm::testing {
namespace {

void run_every_plan_both_ways(row_settings with) {
  with.type = operand_type::f8_e4m3;
  with.sizes = plan_sizes;
  for (const bool is_fast : {false, true}) {
    with.fast_accumulation = is_fast;
    run_every_plan(with);
  }
}

TEST_F(grouped_rows, every_plan_in_eight_bits) {
  row_settings with;
  with.row_scales = with.column_scales = true;
  with.n = 784;
  with.k = 400;
  run_every_plan_both_ways(with);
}

TEST_F(grouped_rows, every_plan_with_gates_in_eight_bits) {
  row_settings with;
  with.gates.function = gate_function::silu;
  with.n = 544;
  run_every_plan_both_ways(with);
}

row_settings long_sums_in_8_bits(input_kind kind) {
  row_settings with;
  with.type = operand_type::f8_e4m3;
  with.kind = kind;
  with.sizes = {130, 5};
  with.k = 7168;
  return with;
}

/// Runs every plan. Sums of only 13 bits must exceed the limit, or the limit would mean nothing.
TEST_F(grouped_rows, a_long_k_in_eight_bits_errs_by_little_more_than_its_rounding) {
  constexpr double limit = 1.1;
  for (const bool is_fast : {false, true}) {
    row_settings with = long_sums_in_8_bits(input_kind::normal);
    with.fast_accumulation = is_fast;
    run_every_plan(with, [&](const row_case& made, const rows_on_device& device, std::uint32_t plan) {
      const double error = made.expected().error_against_rounding(device.output());
      EXPECT_EQ(error > limit, is_fast) << plan_name(plan) << ": " << error;
    });
  }
}

TEST_F(grouped_rows, a_large_term_hides_nothing_that_follows_in_eight_bits) {
  row_settings with = long_sums_in_8_bits(input_kind::outweighed);
  run_every_plan(with);
  with.fast_accumulation = true;
  const row_case made(with);
  const rows_on_device device(made);
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  EXPECT_NE(made.expected().fault_of(device.output(), true), "") << "no sum of 13 bits";
}

}  // namespace
}  // namespace tmap::gemm::testing
