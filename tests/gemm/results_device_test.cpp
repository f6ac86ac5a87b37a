// SPDX-License-Identifier: Apache-2.0
// Tests on the GPU what happens to sums on their way to C: gates, kept sums, gradients of gates,
// and results in f32.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

#include "device/recorded_call.hpp"
#include "gemm/row_runs.hpp"

namespace tmap::gemm::testing {
namespace {

const std::vector<std::int64_t> few_sizes{70, 0, 1, 130};

gate gate_of(gate_function function, gate_columns columns) {
  gate made;
  made.function = function;
  made.columns = columns;
  return made;
}

/// The gate of gpt-oss. Values of both signs reach the limit.
gate clamped_gate(gate_columns columns) {
  gate made = gate_of(gate_function::silu, columns);
  made.alpha = 1.702f;
  made.limit = 7;
  made.value_shift = 1;
  return made;
}

std::vector<gate> all_gates(gate_columns columns) {
  std::vector<gate> all{clamped_gate(columns)};
  for (const auto function : {gate_function::silu, gate_function::gelu, gate_function::gelu_tanh}) {
    all.push_back(gate_of(function, columns));
  }
  all.push_back(all.back());
  all.back().limit = 3;
  return all;
}

class grouped_gates : public gemm_test,
                      public ::testing::WithParamInterface<std::tuple<operand_type, gate_columns, result_type>> {
 protected:
  static row_settings settings() {
    row_settings with;
    with.sizes = few_sizes;
    std::tie(with.type, std::ignore, with.c_type) = GetParam();
    with.gates = gate_of(gate_function::silu, std::get<1>(GetParam()));
    return with;
  }
  static gate_columns columns() { return std::get<1>(GetParam()); }
};

TEST_P(grouped_gates, of_every_function_with_and_without_other_parts) {
  for (const gate& gates : all_gates(columns())) {
    for (int parts = 0; parts < 8; ++parts) {
      row_settings with = settings();
      with.gates = gates;
      with.bias = (parts & 1) != 0;
      with.row_scales = with.column_scales = (parts & 2) != 0;
      with.accumulate = (parts & 4) != 0;
      run(with);
    }
  }
}

TEST_P(grouped_gates, in_every_plan) {
  for (const std::uint64_t n : {544, 960}) {
    row_settings with = settings();
    with.sizes = plan_sizes;
    with.gates = clamped_gate(columns());
    with.bias = true;
    with.n = n;
    run_every_plan(with);
  }
}

TEST_P(grouped_gates, with_tails_of_columns) {
  for (const auto layout : {b_layout::n_by_k, b_layout::k_by_n}) {
    if (layout == b_layout::k_by_n && std::get<0>(GetParam()) == operand_type::f8_e4m3) continue;
    for (const std::uint64_t n : {32, 96, 288, 544}) {
      row_settings with = settings();
      with.b_layout = layout;
      with.n = n;
      run_every_plan(with);
    }
  }
}

/// Without a limit, infinite sums are infinite results. NaN stays NaN in all cases.
TEST_P(grouped_gates, hide_no_nan) {
  for (const gate& gates : all_gates(columns())) {
    row_settings with = settings();
    with.gates = gates;
    with.row_scales = true;
    const row_case made(with);
    const rows_on_device device(made);
    std::vector<float> scales = made.row_scales();
    scales[3] = std::numeric_limits<float>::quiet_NaN();
    const device_array<float> spoiled(scales);
    row_problem problem = device.problem();
    problem.epilogue.row_scales = spoiled.data();
    TMAP_ASSERT_OK(multiply(problem, device.memory().on(nullptr, {})));
    const host_matrix got = device.output();
    for (std::uint64_t column = 0; column < with.c_columns(); ++column) {
      EXPECT_TRUE(std::isnan(got.at(3, column))) << column;
      EXPECT_FALSE(std::isnan(got.at(4, column))) << column;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(all, grouped_gates,
                         ::testing::Combine(::testing::Values(operand_type::bf16, operand_type::f16,
                                                              operand_type::f8_e4m3),
                                            ::testing::Values(gate_columns::halves, gate_columns::interleaved),
                                            ::testing::Values(result_type::like_operands, result_type::f32)));

class grouped_kept_sums : public gemm_test,
                          public ::testing::WithParamInterface<std::tuple<operand_type, gate_columns>> {};

/// Kept sums have the same bits as the product without the gate.
TEST_P(grouped_kept_sums, are_the_product_without_the_gate) {
  for (const std::uint64_t n : {32, 96, 544, 960}) {
    row_settings with;
    with.sizes = n < 500 ? few_sizes : plan_sizes;
    with.n = n;
    with.bias = with.row_scales = true;
    std::tie(with.type, std::ignore) = GetParam();
    const row_case plain(with);
    with.gates = clamped_gate(std::get<1>(GetParam()));
    with.kept = true;
    const row_case made(with);
    const rows_on_device without(plain);
    TMAP_ASSERT_OK(without.enqueue(nullptr));
    without.expect(plain, "without a gate");
    const host_matrix want = without.output();
    const rows_on_device device(made);
    const expected_output results = made.expected();
    for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
      device.reset_output();
      device.reset_kept();
      TMAP_ASSERT_OK(device.enqueue(nullptr, plan));
      device.expect(made, results, text_of(with));
      EXPECT_EQ(device.kept().bytes(), want.bytes()) << plan_name(plan) << ", n " << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(all, grouped_kept_sums,
                         ::testing::Combine(::testing::Values(operand_type::bf16, operand_type::f16,
                                                              operand_type::f8_e4m3),
                                            ::testing::Values(gate_columns::halves, gate_columns::interleaved)));

class grouped_gradients : public gemm_test,
                          public ::testing::WithParamInterface<std::tuple<operand_type, gate_columns>> {
 protected:
  static row_settings settings() {
    row_settings with;
    with.sizes = few_sizes;
    std::tie(with.type, std::ignore) = GetParam();
    return with;
  }
  static std::vector<gate> gates() {
    std::vector<gate> all = all_gates(std::get<1>(GetParam()));
    for (gate& one : all) {
      one.backward = true;
      // Normal numbers pass a lower limit often.
      if (one.limit == 3 || one.limit == 7) one.limit = 1;
    }
    return all;
  }
};

TEST_P(grouped_gradients, of_every_function) {
  for (const gate& one : gates()) {
    for (const bool has_scales : {false, true}) {
      row_settings with = settings();
      with.gates = one;
      with.row_scales = has_scales;
      run(with);
    }
  }
}

TEST_P(grouped_gradients, in_every_plan_and_with_tails) {
  for (const std::uint64_t n : {16, 40, 72, 264, 480}) {
    row_settings with = settings();
    with.sizes = n < 200 ? few_sizes : plan_sizes;
    with.gates = gates().front();
    with.n = n;
    run_every_plan(with);
  }
}

INSTANTIATE_TEST_SUITE_P(all, grouped_gradients,
                         ::testing::Combine(::testing::Values(operand_type::bf16, operand_type::f16),
                                            ::testing::Values(gate_columns::halves, gate_columns::interleaved)));

class grouped_f32 : public gemm_test, public ::testing::WithParamInterface<std::tuple<operand_type, input_kind>> {
 protected:
  static row_settings settings() {
    row_settings with;
    std::tie(with.type, with.kind) = GetParam();
    with.c_type = result_type::f32;
    with.sizes = few_sizes;
    return with;
  }
};

TEST_P(grouped_f32, results_in_every_plan) {
  for (const std::uint64_t n : {4, 12, 36, 100, 520, 1000}) {
    for (const bool accumulates : {false, true}) {
      row_settings with = settings();
      if (n >= 500) with.sizes = plan_sizes;
      with.accumulate = accumulates;
      with.bias = n % 8 != 0;
      with.column_scales = n % 8 != 0;
      with.n = n;
      with.gap = 16;
      run_every_plan(with);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(all, grouped_f32,
                         ::testing::Combine(::testing::Values(operand_type::bf16, operand_type::f16,
                                                              operand_type::f8_e4m3),
                                            ::testing::Values(input_kind::normal, input_kind::integers)));

class grouped_results : public gemm_test {};

TEST_F(grouped_results, have_the_same_bits_in_every_plan) {
  for (const auto type : {operand_type::bf16, operand_type::f8_e4m3}) {
    for (const bool has_gates : {false, true}) {
      row_settings with;
      with.type = type;
      with.c_type = result_type::f32;
      with.sizes = plan_sizes;
      with.n = 544;
      with.bias = true;
      if (has_gates) with.gates = gate_of(gate_function::gelu, gate_columns::interleaved);
      const row_case made(with);
      const rows_on_device device(made);
      std::vector<unsigned char> first;
      for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
        device.reset_output();
        TMAP_ASSERT_OK(device.enqueue(nullptr, plan));
        const host_matrix got = device.output();
        if (plan == 0) first = got.bytes();
        EXPECT_EQ(got.bytes(), first) << plan_name(plan);
      }
    }
  }
}

TEST_F(grouped_results, take_factors_of_rows_with_gaps) {
  for (const std::uint64_t stride : {2, 3, 56}) {
    row_settings with;
    with.kind = input_kind::integers;
    with.sizes = few_sizes;
    with.row_scales = true;
    with.row_scale_stride = stride;
    run(with);
  }
}

class grouped_weights_f32 : public gemm_test,
                            public ::testing::WithParamInterface<std::tuple<operand_type, input_kind>> {
 protected:
  static weight_settings settings() {
    weight_settings with;
    std::tie(with.type, with.kind) = GetParam();
    with.c_type = result_type::f32;
    with.sizes = {0, 1, 63, 0, 129, 300, 0};
    return with;
  }
};

TEST_P(grouped_weights_f32, in_every_plan) {
  for (const bool accumulates : {false, true}) {
    weight_settings with = settings();
    with.accumulate = accumulates;
    const weight_case made(with);
    const weights_on_device device(made);
    const expected_output want = made.expected();
    for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
      device.reset_output();
      TMAP_ASSERT_OK(device.enqueue(nullptr, plan));
      device.expect(made, want, plan_name(plan));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(types, grouped_weights_f32,
                         ::testing::Combine(::testing::Values(operand_type::bf16, operand_type::f16),
                                            ::testing::Values(input_kind::normal, input_kind::integers)));

/// Adds the gradients of several steps to the same f32, as training does with `main_grad`. Sums of
/// integers are exact.
TEST_F(grouped_results, of_replayed_graphs_add_up_in_f32) {
  constexpr int replays = 5;
  weight_settings with;
  with.kind = input_kind::integers;
  with.c_type = result_type::f32;
  with.sizes = {40, 0, 129};
  const weight_case once(with);
  with.accumulate = true;
  const weight_case made(with);
  const weights_on_device plain(once);
  const weights_on_device device(made);
  TMAP_ASSERT_OK(plain.enqueue(nullptr));
  const host_matrix one = plain.output();
  const tmap::testing::recorded_call graph([&](cudaStream_t stream) { return device.enqueue(stream); });
  graph.replay(replays);
  const host_matrix got = device.output();
  for (std::uint32_t g = 0; g < with.groups(); ++g) {
    for (std::uint64_t row = g * made.c_group_rows(); row < g * made.c_group_rows() + with.m; ++row) {
      for (std::uint64_t column = 0; column < with.n; ++column) {
        ASSERT_EQ(got.at(row, column), made.c().at(row, column) + replays * one.at(row, column))
            << "group " << g << ", row " << row << ", column " << column;
      }
    }
  }
}

}  // namespace
}  // namespace tmap::gemm::testing
