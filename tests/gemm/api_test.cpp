// SPDX-License-Identifier: Apache-2.0
// Tests every argument that a grouped product refuses before it queries the device. These cases run
// on any machine.
#include <tmap/grouped_gemm.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gemm/api_arguments.hpp"
#include "lib/gemm/checks.hpp"
#include "support/refusal.hpp"

namespace tmap::gemm::testing {
namespace {

using tmap::testing::expect_refused;

TEST(gemm_gpu, has_products_or_says_why_not) {
  const auto check = [](std::uint32_t compute_capability, bool has_kernels) {
    return check_gpu({compute_capability, 232448}, has_kernels);
  };
  EXPECT_TRUE(check(90, true));
  for (const std::uint32_t older : {75u, 80u, 89u}) {
    const auto refused = check(older, true);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, status::compute_capability_too_low);
    EXPECT_EQ(refused.error().found, older);
  }
  for (const std::uint32_t other : {91u, 100u, 103u, 120u}) {
    for (const bool has_kernels : {false, true}) {
      const auto refused = check(other, has_kernels);
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, status::no_kernel_image);
      EXPECT_EQ(refused.error().found, other);
      EXPECT_EQ(refused.error().allowed, 90u);
    }
  }
  const auto left_out = check(90, false);
  ASSERT_FALSE(left_out);
  EXPECT_EQ(left_out.error().code, status::no_kernel_image);
  EXPECT_EQ(to_string(left_out.error()),
            "this build of tmap has no grouped products: it was built with TMAP_BUILD_PRODUCTS=OFF, or "
            "TMAP_ARCHITECTURES did not name 90a");
}

void weights_refuse(const std::string& member, const std::function<void(weight_problem&)>& spoil) {
  refuses<weight_problem>(weights(), member, spoil);
}
void pointers_refuse(const std::string& member, const std::function<void(pointer_problem&)>& spoil) {
  refuses<pointer_problem>(pointers(), member, spoil);
}

TEST(grouped_row_arguments, sizes) {
  rows_refuse("type", [](auto& p) { p.type = static_cast<operand_type>(4); });
  rows_refuse("groups", [](auto& p) { p.groups = max_groups + 1; });
  rows_refuse("rows", [](auto& p) { p.rows = max_extent + 1; });
  for (const std::uint64_t extent : {std::uint64_t{4}, std::uint64_t{12}, max_extent + 8}) {
    rows_refuse("n", [=](auto& p) { p.n = extent; });
    rows_refuse("k", [=](auto& p) { p.k = extent; });
  }
  rows_refuse("k", [](auto& p) {
    p.type = operand_type::f8_e4m3;
    p.k = 24;
  });
}

TEST(grouped_row_arguments, fast_accumulation_is_of_eight_bits_only) {
  const auto fast = [](operand_type type) {
    return [type](auto& p) {
      p.type = type;
      p.fast_accumulation = true;
    };
  };
  rows_refuse("fast_accumulation", fast(operand_type::bf16));
  rows_refuse("fast_accumulation", fast(operand_type::f16));
  row_problem eight_bits = rows();
  fast(operand_type::f8_e4m3)(eight_bits);
  eight_bits.rows = 0;
  EXPECT_TRUE(multiply(eight_bits, good_run()).has_value());
}

TEST(grouped_row_arguments, rows_of_no_group_are_cleared_in_one_new_c_only) {
  rows_refuse("zero_rest", [](auto& p) { p.zero_rest = p.accumulate = true; });
  rows_refuse("zero_rest", [](auto& p) {
    p.zero_rest = true;
    p.c_addresses = somewhere<std::uint64_t>();
  });
  rows_refuse("zero_rest", [](auto& p) {
    p.zero_rest = true;
    p.c_rows = somewhere<std::int32_t>();
    p.c_row_count = 100;
  });
  weights_refuse("zero_rest", [](auto& p) { p.zero_rest = p.accumulate = true; });
}

row_problem scaled_rows() {
  row_problem p = rows();
  p.type = operand_type::f8_e4m3;
  p.a_scales = {.values = somewhere<float>(), .line_stride = 1, .k_stride = 128};
  p.b_scales = {.values = somewhere<float>(), .line_stride = 1, .k_stride = 1, .group_stride = 1, .lines = 128};
  return p;
}

TEST(grouped_row_arguments, block_scales) {
  const auto scaled_refuse = [](const std::string& member, const std::function<void(row_problem&)>& spoil) {
    refuses<row_problem>(scaled_rows(), member, spoil);
  };
  scaled_refuse("a_scales.values", [](auto& p) { p.type = operand_type::bf16; });
  scaled_refuse("b_scales.values", [](auto& p) {
    p.type = operand_type::f16;
    p.a_scales.values = nullptr;
  });
  scaled_refuse("a_scales.values", [](auto& p) { p.a_scales.values = nullptr; });
  scaled_refuse("b_scales.values", [](auto& p) { p.b_scales.values = nullptr; });
  scaled_refuse("a_scales.values", [](auto& p) { p.a_scales.values = somewhere<float>(2); });
  for (const std::uint32_t lines : {0u, 128u})
    scaled_refuse("a_scales.lines", [=](auto& p) { p.a_scales.lines = lines; });
  for (const std::uint32_t lines : {0u, 1u, 64u}) {
    scaled_refuse("b_scales.lines", [=](auto& p) { p.b_scales.lines = lines; });
  }
  scaled_refuse("a_scales.group_stride", [](auto& p) { p.a_scales.group_stride = 1; });
  scaled_refuse("fast_accumulation", [](auto& p) { p.fast_accumulation = true; });
  scaled_refuse("fast_accumulation", [](auto& p) {
    p.type = operand_type::f8_e5m2;
    p.a_scales = p.b_scales = {};
    p.fast_accumulation = true;
  });
  constexpr std::uint64_t beyond = std::uint64_t{1} << 32;
  scaled_refuse("a_scales.line_stride", [](auto& p) { p.a_scales.line_stride = beyond; });
  scaled_refuse("b_scales.group_stride", [](auto& p) { p.b_scales.group_stride = beyond; });
  scaled_refuse("a_scales.line_stride", [](auto& p) { p.a_scales.line_stride = ~std::uint64_t{0}; });
  scaled_refuse("n", [](auto& p) {
    p.n = 128;
    p.b.pitch_bytes = p.c.pitch_bytes = 1024;
    p.b_group_pitch_bytes = 1 << 20;
    p.epilogue.gate.function = gate_function::silu;
  });
}

void refuse_matrix(const std::string& name, matrix row_problem::*side) {
  for (const std::uint64_t address : {std::uint64_t{0}, std::uint64_t{0x10008}}) {
    rows_refuse(name + ".address", [=](auto& p) { (p.*side).address = address; });
  }
  rows_refuse(name + ".pitch_bytes", [=](auto& p) { (p.*side).pitch_bytes -= 16; });
  rows_refuse(name + ".pitch_bytes", [=](auto& p) { (p.*side).pitch_bytes += 8; });
  rows_refuse(name + ".pitch_bytes", [=](auto& p) { (p.*side).pitch_bytes = std::uint64_t{1} << 40; });
}

TEST(grouped_row_arguments, matrices) {
  refuse_matrix("a", &row_problem::a);
  refuse_matrix("b", &row_problem::b);
  refuse_matrix("c", &row_problem::c);
  rows_refuse("b_group_pitch_bytes", [](auto& p) { p.b_group_pitch_bytes -= 16; });
  rows_refuse("b_group_pitch_bytes", [](auto& p) { p.b_group_pitch_bytes = 0; });
  rows_refuse("b_group_pitch_bytes", [](auto& p) { p.b_group_pitch_bytes += 8; });
}

// No GPU has addresses from 2^57 on. The device would refuse maps there and read them as zeros.
TEST(grouped_row_arguments, the_end_of_all_addresses) {
  constexpr std::uint64_t limit = std::uint64_t{1} << 57;
  const std::pair<const char*, matrix row_problem::*> of_rows[] = {
      {"a.address", &row_problem::a}, {"b.address", &row_problem::b}, {"c.address", &row_problem::c}};
  const std::pair<const char*, matrix weight_problem::*> of_weights[] = {
      {"a.address", &weight_problem::a}, {"b.address", &weight_problem::b}, {"c.address", &weight_problem::c}};
  for (const std::uint64_t address : {limit, limit - 64}) {
    for (const auto& [name, side] : of_rows) {
      rows_refuse(name, [&, member = side](auto& p) { (p.*member).address = address; });
    }
    for (const auto& [name, side] : of_weights) {
      weights_refuse(name, [&, member = side](auto& p) { (p.*member).address = address; });
    }
  }
  rows_refuse("b.address", [](auto& p) { p.b.address = limit - 10 * 64 * 64 + 16; });
  weights_refuse("c.address", [](auto& p) { p.c.address = limit - 10 * 64 * 64 + 16; });
}

TEST(grouped_row_arguments, offsets_and_layouts) {
  rows_refuse("offsets.values", [](auto& p) { p.offsets.values = nullptr; });
  rows_refuse("offsets.values", [](auto& p) { p.offsets.values = somewhere<void>(2); });
  rows_refuse("offsets.values", [](auto& p) {
    p.offsets.bytes = 8;
    p.offsets.values = somewhere<void>(4);
  });
  rows_refuse("offsets.bytes", [](auto& p) { p.offsets.bytes = 2; });
  rows_refuse("offsets.format", [](auto& p) { p.offsets.format = static_cast<offset_format>(6); });
  rows_refuse("offsets.counts", [](auto& p) { p.offsets.format = offset_format::begins_and_counts; });
  rows_refuse("offsets.slot_rows", [](auto& p) { p.offsets.format = offset_format::slots; });
  rows_refuse("b_addresses", [](auto& p) { p.b_addresses = somewhere<std::uint64_t>(4); });
  rows_refuse("c_addresses", [](auto& p) { p.c_addresses = somewhere<std::uint64_t>(4); });
  rows_refuse("a_layout", [](auto& p) { p.a_layout = static_cast<a_layout>(2); });
  rows_refuse("a_layout", [](auto& p) {
    p.type = operand_type::f8_e4m3;
    p.a_layout = a_layout::k_by_m;
  });
  rows_refuse("a.pitch_bytes", [](auto& p) { p.a_layout = a_layout::k_by_m; });
  rows_refuse("b_layout", [](auto& p) { p.b_layout = static_cast<b_layout>(2); });
  rows_refuse("b_layout", [](auto& p) {
    p.type = operand_type::f8_e4m3;
    p.b_layout = b_layout::k_by_n;
  });
}

TEST(grouped_row_arguments, rows_by_index) {
  const auto index_refuses = [](const std::string& name, const std::function<void(row_problem&)>& spoil) {
    rows_refuse(name, [&](row_problem& p) {
      p.a_rows = somewhere<std::int32_t>(4);
      p.a_row_count = 7;
      spoil(p);
    });
  };
  rows_refuse("a_row_count", [](auto& p) { p.a_row_count = 7; });
  index_refuses("a_rows", [](auto& p) { p.a_rows = somewhere<std::int32_t>(2); });
  index_refuses("pending", [](auto& p) { p.pending = somewhere<std::uint32_t>(4); });
  rows_refuse("pending", [](auto& p) { p.pending = somewhere<std::uint32_t>(2); });
  index_refuses("a_row_count", [](auto& p) { p.a_row_count = 0; });
  index_refuses("a_row_count", [](auto& p) { p.a_row_count = max_extent + 1; });
  index_refuses("a_layout", [](auto& p) {
    p.a_layout = a_layout::k_by_m;
    p.a.pitch_bytes = 208;
  });
  index_refuses("a.pitch_bytes", [](auto& p) { p.a.pitch_bytes = 48; });
  index_refuses("a.address", [](auto& p) {
    p.a_row_count = max_extent;
    p.a = {std::uint64_t{1} << 56, std::uint64_t{1} << 39};
  });
}

TEST(grouped_row_arguments, scales_of_rows_by_index_are_those_of_a) {
  const auto with_scales = [](std::uint64_t line_stride) {
    row_problem made = rows();
    made.type = operand_type::f8_e4m3;
    made.a_rows = somewhere<std::int32_t>(4);
    made.a_row_count = 5;
    made.a_scales = {.values = somewhere<float>(), .line_stride = line_stride, .k_stride = 1};
    made.b_scales = {.values = somewhere<float>(), .lines = scaled_columns};
    return made;
  };
  constexpr std::uint64_t most = 0xffffffff;
  refuses<row_problem>(with_scales(most / 4 + 1), "a_scales.line_stride", [](auto&) {});
  // With good scales, the next fault is found.
  refuses<row_problem>(with_scales(most / 4), "a.address", [](auto& p) { p.a.address += 8; });
  refuses<row_problem>(with_scales(1), "a.address", [](auto& p) {
    p.type = operand_type::f8_e5m2;
    p.a.address += 8;
  });
}

TEST(grouped_row_arguments, rows_of_c_by_index) {
  const auto index_refuses = [](const std::string& name, const std::function<void(row_problem&)>& spoil) {
    rows_refuse(name, [&](row_problem& p) {
      p.c_rows = somewhere<std::int32_t>(4);
      p.c_row_count = 7;
      spoil(p);
    });
  };
  rows_refuse("c_row_count", [](auto& p) { p.c_row_count = 7; });
  index_refuses("c_rows", [](auto& p) { p.c_rows = somewhere<std::int32_t>(2); });
  index_refuses("c_row_count", [](auto& p) { p.c_row_count = 0; });
  index_refuses("c_row_count", [](auto& p) { p.c_row_count = max_extent + 1; });
  index_refuses("type", [](auto& p) { p.type = operand_type::f8_e5m2; });
  index_refuses("a_layout", [](auto& p) {
    p.a_layout = a_layout::k_by_m;
    p.a.pitch_bytes = 208;
  });
  index_refuses("b_layout", [](auto& p) { p.b_layout = b_layout::k_by_n; });
  index_refuses("a_rows", [](auto& p) {
    p.a_rows = somewhere<std::int32_t>(4);
    p.a_row_count = 7;
  });
  index_refuses("c_addresses", [](auto& p) { p.c_addresses = somewhere<std::uint64_t>(8); });
  index_refuses("c_type", [](auto& p) {
    p.c_type = result_type::f8_e4m3;
    p.c_scales.values = somewhere<float>(4);
  });
  index_refuses("fast_accumulation", [](auto& p) {
    p.type = operand_type::f8_e4m3;
    p.fast_accumulation = true;
  });
  index_refuses("epilogue.gate.backward", [](auto& p) {
    p.epilogue.gate.function = gate_function::silu;
    p.epilogue.gate.backward = true;
    p.epilogue.gate.kept = {std::uint64_t{1} << 20, 4096};
  });
  index_refuses("c.address", [](auto& p) {
    p.c_row_count = max_extent;
    p.c = {std::uint64_t{1} << 56, std::uint64_t{1} << 39};
  });
}

TEST(grouped_weight_arguments, all) {
  weights_refuse("type", [](auto& p) { p.type = static_cast<operand_type>(4); });
  weights_refuse("m", [](auto& p) { p.m = 0; });
  weights_refuse("n", [](auto& p) { p.n = 4; });
  weights_refuse("c_type", [](auto& p) { p.c_type = result_type::f8_e4m3; });
  weights_refuse("c.pitch_bytes", [](auto& p) { p.c_type = result_type::f32; });
  weights_refuse("offsets.values", [](auto& p) { p.offsets.values = nullptr; });
  weights_refuse("a.address", [](auto& p) { p.a.address = 0; });
  weights_refuse("b.pitch_bytes", [](auto& p) { p.b.pitch_bytes = 48; });
  weights_refuse("c.address", [](auto& p) { p.c.address += 4; });
  weights_refuse("c_group_pitch_bytes", [](auto& p) { p.c_group_pitch_bytes = 64; });
}

weight_problem scaled_weights() {
  weight_problem p = weights();
  p.type = operand_type::f8_e5m2;
  p.a_layout = a_layout::m_by_k;
  p.b_layout = b_layout::n_by_k;
  p.a.pitch_bytes = p.b.pitch_bytes = 112;
  p.a_scales = {.values = somewhere<float>(4), .line_stride = 13, .k_stride = 1, .group_stride = 1};
  p.b_scales = {.values = somewhere<float>(4), .line_stride = 1, .k_stride = 33, .group_stride = 33};
  return p;
}

TEST(grouped_weight_arguments, scales_of_lines) {
  const auto scaled_refuse = [](const std::string& member, const std::function<void(weight_problem&)>& spoil) {
    refuses<weight_problem>(scaled_weights(), member, spoil);
  };
  const std::pair<const char*, block_scales weight_problem::*> sides[] = {{"a_scales", &weight_problem::a_scales},
                                                                          {"b_scales", &weight_problem::b_scales}};
  constexpr std::uint64_t beyond = std::uint64_t{1} << 32;
  for (const auto& [name, side] : sides) {
    const std::string prefix = std::string(name) + ".";
    const auto member_refuses = [&, side = side](const std::string& member, const auto& spoil) {
      scaled_refuse(prefix + member, [&](auto& p) { spoil(p.*side); });
    };
    weights_refuse(prefix + "values", [side = side](auto& p) { (p.*side).values = somewhere<float>(); });
    member_refuses("values", [](auto& s) { s.values = nullptr; });
    member_refuses("values", [](auto& s) { s.values = somewhere<float>(2); });
    member_refuses("lines", [](auto& s) { s.lines = 0; });
    member_refuses("lines", [](auto& s) { s.lines = scaled_columns; });
    member_refuses("line_stride", [](auto& s) { s.line_stride = ~std::uint64_t{0}; });
    member_refuses("group_stride", [](auto& s) { s.group_stride = beyond; });
  }
  scaled_refuse("b_scales.line_stride", [](auto& p) { p.b_scales.line_stride = 2; });
  scaled_refuse("a_scales.k_stride", [](auto& p) {
    p.rows = 257;
    p.a.pitch_bytes = p.b.pitch_bytes = 272;
    p.a_scales.k_stride = beyond / 2;
  });
  scaled_refuse("a_scales.line_stride", [](auto& p) {
    p.a_scales.line_stride = (beyond - 1) / 63;
    p.a_scales.group_stride = 20;
  });
  scaled_refuse("a_layout", [](auto& p) { p.a_layout = a_layout::k_by_m; });
  scaled_refuse("b_layout", [](auto& p) { p.b_layout = b_layout::k_by_n; });
  scaled_refuse("a.pitch_bytes", [](auto& p) { p.a.pitch_bytes = 96; });
}

TEST(grouped_pointer_arguments, all) {
  pointers_refuse("type", [](auto& p) { p.type = operand_type::f8_e4m3; });
  pointers_refuse("groups", [](auto& p) { p.groups = max_groups + 1; });
  pointers_refuse("c_type", [](auto& p) { p.c_type = result_type::f8_e4m3; });
  pointers_refuse("b_layout", [](auto& p) { p.b_layout = static_cast<b_layout>(2); });
  const auto array = [](const std::string& name, auto pointer_problem::*member) {
    using pointer = std::remove_reference_t<decltype(pointer_problem{}.*member)>;
    pointers_refuse(name, [=](auto& p) { p.*member = nullptr; });
    pointers_refuse(name, [=](auto& p) { p.*member = reinterpret_cast<pointer>(0x10004); });
  };
  array("a", &pointer_problem::a);
  array("b", &pointer_problem::b);
  array("c", &pointer_problem::c);
  array("a_pitch_bytes", &pointer_problem::a_pitch_bytes);
  array("b_pitch_bytes", &pointer_problem::b_pitch_bytes);
  array("c_pitch_bytes", &pointer_problem::c_pitch_bytes);
  array("m", &pointer_problem::m);
  array("n", &pointer_problem::n);
  array("k", &pointer_problem::k);
}

template <class Problem>
void expect_run_refused(const Problem& problem) {
  const auto refused = [&](const std::string& name, const std::function<void(run&)>& spoil) {
    run bad = good_run();
    spoil(bad);
    expect_refused(multiply(problem, bad), name);
  };
  const address_window window{0, ~std::uint64_t{0}};
  refused("choices.plan", [](run& r) { r.choices.plan = plan_count(); });
  refused("choices.blocks", [](run& r) { r.choices.blocks = 1; });
  refused("statuses", [](run& r) { r.statuses = somewhere<group_status>(2); });
  refused("header", [](run& r) { r.header = somewhere<batch_header>(8); });
  refused("check", [](run& r) { r.check = static_cast<fault_check>(3); });
  refused("windows", [&](run& r) { r.windows = {&window, 1}; });
  const std::uint64_t bytes = enough().bytes;
  expect_refused(multiply(problem, in({somewhere<void>(), bytes - 1})), "scratch.bytes", bytes - 1, bytes,
                 "a byte less");
  expect_refused(multiply(problem, in({somewhere<void>(128), bytes})), "scratch.memory");
  expect_refused(multiply(problem, in({nullptr, bytes})), "scratch.memory");
}

TEST(grouped_run, are_refused_by_all_three) {
  expect_run_refused(rows());
  expect_run_refused(weights());
  expect_run_refused(pointers());
}

TEST(grouped_run, no_groups_need_nothing) {
  row_problem no_rows = rows();
  no_rows.groups = 0;
  no_rows.offsets = {};
  no_rows.a = no_rows.b = no_rows.c = {};
  EXPECT_TRUE(multiply(no_rows, in({})).has_value());
  weight_problem no_weights = weights();
  no_weights.groups = 0;
  no_weights.c = {};
  EXPECT_TRUE(multiply(no_weights, in({})).has_value());
  EXPECT_TRUE(multiply(pointer_problem{}, in({})).has_value());
}

TEST(grouped_workspace, grows_with_the_groups) {
  EXPECT_EQ(workspace_bytes(0).value(), 0);
  std::uint64_t last = 0;
  for (const std::uint32_t groups : {1u, 2u, 100u, 1024u, max_groups}) {
    const std::uint64_t bytes = workspace_bytes(groups).value();
    EXPECT_GE(bytes, last);
    last = bytes;
  }
  expect_refused(workspace_bytes(max_groups + 1), "groups", max_groups + 1, max_groups, "too many");
}

TEST(grouped_plans, have_names_of_their_own) {
  ASSERT_GE(plan_count(), 1u);
  std::vector<std::string> names;
  for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
    const std::string name = plan_name(plan);
    EXPECT_FALSE(name.empty());
    for (const std::string& other : names) EXPECT_NE(name, other);
    names.push_back(name);
  }
  EXPECT_EQ(plan_name(plan_count()), nullptr);
}

}  // namespace
}  // namespace tmap::gemm::testing
