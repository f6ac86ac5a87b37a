// SPDX-License-Identifier: Apache-2.0
// Tests what products of rows refuse of their epilogues and results. These cases run on any
// machine.
#include <tmap/grouped_gemm.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "gemm/api_arguments.hpp"

namespace tmap::gemm::testing {
namespace {

TEST(grouped_row_arguments, epilogues) {
  rows_refuse("epilogue.bias", [](auto& p) { p.epilogue.bias = somewhere<void>(8); });
  rows_refuse("epilogue.row_scales", [](auto& p) { p.epilogue.row_scales = somewhere<float>(2); });
  rows_refuse("epilogue.row_scale_stride", [](auto& p) {
    p.epilogue.row_scales = somewhere<float>(4);
    p.epilogue.row_scale_stride = 0;
  });
  rows_refuse("epilogue.column_scales", [](auto& p) { p.epilogue.column_scales = somewhere<float>(4); });
}

TEST(grouped_row_arguments, gates) {
  const auto gates_refuse = [](const std::string& name, const std::function<void(row_problem&)>& spoil) {
    rows_refuse(name, [&](row_problem& p) {
      p.epilogue.gate.function = gate_function::silu;
      spoil(p);
    });
  };
  gates_refuse("epilogue.gate.function", [](auto& p) { p.epilogue.gate.function = static_cast<gate_function>(4); });
  gates_refuse("epilogue.gate.columns", [](auto& p) { p.epilogue.gate.columns = static_cast<gate_columns>(2); });
  gates_refuse("n", [](auto& p) { p.n = 48; });
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {std::nanf(""), infinity, -infinity}) {
    gates_refuse("epilogue.gate.alpha", [=](auto& p) { p.epilogue.gate.alpha = bad; });
    gates_refuse("epilogue.gate.value_shift", [=](auto& p) { p.epilogue.gate.value_shift = bad; });
  }
  for (const float bad : {std::nanf(""), 0.0f, -7.0f, -infinity}) {
    gates_refuse("epilogue.gate.limit", [=](auto& p) { p.epilogue.gate.limit = bad; });
  }
  gates_refuse("epilogue.gate.kept.pitch_bytes", [](auto& p) { p.epilogue.gate.kept = {0x40000, 112}; });
  gates_refuse("epilogue.gate.kept.address", [](auto& p) { p.epilogue.gate.kept = {0x40008, 128}; });
  rows_refuse("epilogue.gate.kept", [](auto& p) { p.epilogue.gate.kept = {0x40000, 128}; });
  rows_refuse("epilogue.gate.backward", [](auto& p) { p.epilogue.gate.backward = true; });
}

TEST(grouped_row_arguments, backward_gates) {
  const auto backward = [](const std::string& name, const std::function<void(row_problem&)>& spoil) {
    rows_refuse(name, [&](row_problem& p) {
      p.epilogue.gate.function = gate_function::gelu;
      p.epilogue.gate.backward = true;
      p.epilogue.gate.kept = {0x40000, 256};
      p.c.pitch_bytes = 256;
      spoil(p);
    });
  };
  backward("accumulate", [](auto& p) { p.accumulate = true; });
  backward("c_type", [](auto& p) { p.c_type = result_type::f32; });
  backward("epilogue.bias", [](auto& p) { p.epilogue.bias = somewhere<void>(); });
  backward("epilogue.gate.kept.address", [](auto& p) { p.epilogue.gate.kept = {}; });
  backward("epilogue.gate.kept.pitch_bytes", [](auto& p) { p.epilogue.gate.kept.pitch_bytes = 128; });
  backward("c.pitch_bytes", [](auto& p) { p.c.pitch_bytes = 128; });
}

TEST(grouped_row_arguments, types_of_results) {
  rows_refuse("c_type", [](auto& p) { p.c_type = static_cast<result_type>(3); });
  rows_refuse("c.pitch_bytes", [](auto& p) { p.c_type = result_type::f32; });
  const auto to_eight_bits = [](const std::string& name, const std::function<void(row_problem&)>& spoil) {
    rows_refuse(name, [&](row_problem& p) {
      p.c_type = result_type::f8_e4m3;
      p.c_scales.values = somewhere<float>();
      spoil(p);
    });
  };
  to_eight_bits("c_scales.values", [](auto& p) { p.c_scales.values = nullptr; });
  to_eight_bits("c_scales.values", [](auto& p) { p.c_scales.values = somewhere<float>(2); });
  to_eight_bits("c_scales.are_powers_of_two",
                [](auto& p) { p.c_scales.are_given = p.c_scales.are_powers_of_two = true; });
  to_eight_bits("accumulate", [](auto& p) { p.accumulate = true; });
  to_eight_bits("n", [](auto& p) { p.n = 72; });
}

/// With gates, narrow tiles do not hold the results that share a scale.
TEST(grouped_row_arguments, plans_that_hold_what_shares_a_scale) {
  row_problem problem = rows();
  problem.c_type = result_type::f8_e4m3;
  problem.c_scales.values = somewhere<float>();
  const auto refuses = [&](std::uint32_t plan) {
    run with = good_run();
    with.choices.plan = plan;
    with.where.scratch = {};  // what follows the check of the plan
    const auto refused = multiply(problem, with);
    EXPECT_FALSE(refused.has_value());
    return refused.error().argument.view() == "choices.plan";
  };
  for (std::uint32_t plan = 0; plan < plan_count(); ++plan) EXPECT_FALSE(refuses(plan)) << plan_name(plan);
  problem.epilogue.gate.function = gate_function::silu;
  for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
    EXPECT_EQ(refuses(plan), plan_name(plan) == std::string{"128x128"}) << plan_name(plan);
  }
}

}  // namespace
}  // namespace tmap::gemm::testing
