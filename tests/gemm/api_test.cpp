// SPDX-License-Identifier: Apache-2.0
// Every argument that a grouped product refuses, before it asks for a device: these run anywhere.
#include <tmap/grouped_gemm.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tmap::gemm::testing {
namespace {

const cuda::stream_ref no_stream{cudaStream_t{}};

template <class T>
T* somewhere(std::uint64_t offset = 0) {
  return reinterpret_cast<T*>(0x10000 + offset);
}

workspace enough() {
  return {somewhere<void>(), workspace_bytes(10).value()};
}

row_problem rows() {
  row_problem made;
  made.groups = 10;
  made.rows = 100;
  made.n = 64;
  made.k = 32;
  made.offsets.values = somewhere<void>();
  made.a = {0x10000, 64};
  made.b = {0x20000, 64};
  made.b_group_pitch_bytes = 64 * 64;
  made.c = {0x30000, 128};
  return made;
}

weight_problem weights() {
  weight_problem made;
  made.groups = 10;
  made.rows = 100;
  made.m = 64;
  made.n = 32;
  made.offsets.values = somewhere<void>();
  made.a = {0x10000, 128};
  made.b = {0x20000, 64};
  made.c = {0x30000, 64};
  made.c_group_pitch_bytes = 64 * 64;
  return made;
}

pointer_problem pointers() {
  pointer_problem made;
  made.groups = 10;
  made.a = made.b = made.c = somewhere<std::uint64_t>();
  made.a_pitch_bytes = made.b_pitch_bytes = made.c_pitch_bytes = somewhere<std::int64_t>();
  made.m = made.n = made.k = somewhere<std::int64_t>();
  return made;
}

template <class Problem>
void expect_refused(const std::string& what, Problem problem, const std::function<void(Problem&)>& spoil) {
  spoil(problem);
  const result<void> answer = multiply_async(problem, enough(), no_stream);
  ASSERT_FALSE(answer.has_value()) << what;
  EXPECT_EQ(answer.error().code, status::invalid_argument) << what << ": " << to_string(answer.error());
}

void rows_refuse(const std::string& what, const std::function<void(row_problem&)>& spoil) {
  expect_refused<row_problem>(what, rows(), spoil);
}
void weights_refuse(const std::string& what, const std::function<void(weight_problem&)>& spoil) {
  expect_refused<weight_problem>(what, weights(), spoil);
}
void pointers_refuse(const std::string& what, const std::function<void(pointer_problem&)>& spoil) {
  expect_refused<pointer_problem>(what, pointers(), spoil);
}

TEST(GroupedRowArguments, Sizes) {
  rows_refuse("type", [](auto& p) { p.type = static_cast<operand_type>(3); });
  rows_refuse("groups", [](auto& p) { p.groups = max_groups + 1; });
  rows_refuse("rows", [](auto& p) { p.rows = max_extent + 1; });
  for (const std::uint64_t extent : {std::uint64_t{4}, std::uint64_t{12}, max_extent + 8}) {
    rows_refuse("n", [=](auto& p) { p.n = extent; });
    rows_refuse("k", [=](auto& p) { p.k = extent; });
  }
  rows_refuse("8-bit k", [](auto& p) {
    p.type = operand_type::f8_e4m3;
    p.k = 24;
  });
}

TEST(GroupedRowArguments, FastAccumulationIsOfEightBitsOnly) {
  const auto fast = [](operand_type type) {
    return [type](auto& p) {
      p.type = type;
      p.fast_accumulation = true;
    };
  };
  rows_refuse("bf16", fast(operand_type::bf16));
  rows_refuse("f16", fast(operand_type::f16));
  row_problem eight_bits = rows();
  fast(operand_type::f8_e4m3)(eight_bits);
  eight_bits.rows = 0;
  EXPECT_TRUE(multiply_async(eight_bits, enough(), no_stream).has_value());
}

void refuse_matrix(const std::string& name, matrix row_problem::*side) {
  rows_refuse(name + " null", [=](auto& p) { (p.*side).address = 0; });
  rows_refuse(name + " misaligned", [=](auto& p) { (p.*side).address += 8; });
  rows_refuse(name + " pitch too small", [=](auto& p) { (p.*side).pitch_bytes -= 16; });
  rows_refuse(name + " pitch misaligned", [=](auto& p) { (p.*side).pitch_bytes += 8; });
  rows_refuse(name + " pitch too large", [=](auto& p) { (p.*side).pitch_bytes = std::uint64_t{1} << 40; });
}

TEST(GroupedRowArguments, Matrices) {
  refuse_matrix("a", &row_problem::a);
  refuse_matrix("b", &row_problem::b);
  refuse_matrix("c", &row_problem::c);
  rows_refuse("groups of b overlap", [](auto& p) { p.b_group_pitch_bytes -= 16; });
  rows_refuse("no distance of groups", [](auto& p) { p.b_group_pitch_bytes = 0; });
  rows_refuse("groups of b misaligned", [](auto& p) { p.b_group_pitch_bytes += 8; });
}

// No GPU has addresses from 2^57 on: maps there would be refused on the device, and read as zeros.
TEST(GroupedRowArguments, TheEndOfAllAddresses) {
  constexpr std::uint64_t limit = std::uint64_t{1} << 57;
  for (matrix row_problem::*const side : {&row_problem::a, &row_problem::b, &row_problem::c}) {
    rows_refuse("beyond", [=](auto& p) { (p.*side).address = limit; });
    rows_refuse("reaching beyond", [=](auto& p) { (p.*side).address = limit - 64; });
  }
  rows_refuse("the last group of b", [](auto& p) { p.b.address = limit - 10 * 64 * 64 + 16; });
  for (matrix weight_problem::*const side : {&weight_problem::a, &weight_problem::b, &weight_problem::c}) {
    expect_refused<weight_problem>("beyond", weights(), [=](auto& p) { (p.*side).address = limit; });
    expect_refused<weight_problem>("reaching beyond", weights(), [=](auto& p) { (p.*side).address = limit - 64; });
  }
  expect_refused<weight_problem>("the last group of c", weights(),
                                 [](auto& p) { p.c.address = limit - 10 * 64 * 64 + 16; });
}

TEST(GroupedRowArguments, OffsetsAndLayouts) {
  rows_refuse("offsets null", [](auto& p) { p.offsets.values = nullptr; });
  rows_refuse("offsets misaligned", [](auto& p) { p.offsets.values = somewhere<void>(2); });
  rows_refuse("offsets of 8 bytes at a multiple of 4", [](auto& p) {
    p.offsets.bytes = 8;
    p.offsets.values = somewhere<void>(4);
  });
  rows_refuse("offsets of 2 bytes", [](auto& p) { p.offsets.bytes = 2; });
  rows_refuse("format", [](auto& p) { p.offsets.format = static_cast<offset_format>(3); });
  rows_refuse("layout", [](auto& p) { p.layout = static_cast<b_layout>(2); });
  rows_refuse("8-bit b by k", [](auto& p) {
    p.type = operand_type::f8_e4m3;
    p.layout = b_layout::k_by_n;
  });
}

TEST(GroupedRowArguments, Epilogues) {
  rows_refuse("kind", [](auto& p) { p.with.kind = static_cast<epilogue_kind>(4); });
  rows_refuse("no bias", [](auto& p) { p.with.kind = epilogue_kind::bias; });
  rows_refuse("bias misaligned", [](auto& p) {
    p.with.kind = epilogue_kind::bias;
    p.with.bias = somewhere<void>(8);
  });
  rows_refuse("row scales", [](auto& p) { p.with.row_scales = somewhere<float>(4); });
  rows_refuse("column scales", [](auto& p) { p.with.column_scales = somewhere<float>(4); });
  rows_refuse("columns of gates", [](auto& p) {
    p.with.kind = epilogue_kind::swiglu;
    p.n = 48;
  });
}

TEST(GroupedWeightArguments, All) {
  weights_refuse("8-bit type", [](auto& p) { p.type = operand_type::f8_e4m3; });
  weights_refuse("m", [](auto& p) { p.m = 12; });
  weights_refuse("n", [](auto& p) { p.n = 4; });
  weights_refuse("epilogue", [](auto& p) { p.kind = epilogue_kind::bias; });
  weights_refuse("offsets", [](auto& p) { p.offsets.values = nullptr; });
  weights_refuse("a", [](auto& p) { p.a.address = 0; });
  weights_refuse("b", [](auto& p) { p.b.pitch_bytes = 48; });
  weights_refuse("c", [](auto& p) { p.c.address += 4; });
  weights_refuse("groups of c overlap", [](auto& p) { p.c_group_pitch_bytes = 64; });
}

TEST(GroupedPointerArguments, All) {
  pointers_refuse("8-bit type", [](auto& p) { p.type = operand_type::f8_e4m3; });
  pointers_refuse("groups", [](auto& p) { p.groups = max_groups + 1; });
  pointers_refuse("epilogue", [](auto& p) { p.kind = epilogue_kind::swiglu; });
  pointers_refuse("layout", [](auto& p) { p.layout = static_cast<b_layout>(2); });
  pointers_refuse("a", [](auto& p) { p.a = nullptr; });
  pointers_refuse("c misaligned", [](auto& p) { p.c = somewhere<std::uint64_t>(4); });
  pointers_refuse("pitch", [](auto& p) { p.b_pitch_bytes = nullptr; });
  pointers_refuse("m", [](auto& p) { p.m = nullptr; });
  pointers_refuse("k misaligned", [](auto& p) { p.k = somewhere<std::int64_t>(4); });
}

template <class Problem>
void expect_call_refused(const std::string& what, const Problem& problem, workspace scratch, const options& with) {
  const result<void> answer = multiply_async(problem, scratch, no_stream, with);
  ASSERT_FALSE(answer.has_value()) << what;
  EXPECT_EQ(answer.error().code, status::invalid_argument) << what << ": " << to_string(answer.error());
}

template <class Problem>
void expect_options_refused(const Problem& problem) {
  options with;
  with.plan = plan_count();
  expect_call_refused("plan", problem, enough(), with);
  with = {};
  with.statuses = somewhere<group_status>(2);
  expect_call_refused("statuses", problem, enough(), with);
  with = {};
  with.header = somewhere<batch_header>(8);
  expect_call_refused("header", problem, enough(), with);
  with = {};
  with.check = static_cast<fault_check>(3);
  expect_call_refused("check", problem, enough(), with);
  workspace small = enough();
  --small.bytes;
  expect_call_refused("workspace", problem, small, {});
  workspace misaligned = enough();
  misaligned.memory = somewhere<void>(128);
  expect_call_refused("workspace misaligned", problem, misaligned, {});
  expect_call_refused("no workspace", problem, {nullptr, enough().bytes}, {});
}

TEST(GroupedOptions, AreRefusedByAllThree) {
  expect_options_refused(rows());
  expect_options_refused(weights());
  expect_options_refused(pointers());
}

TEST(GroupedOptions, NoGroupsNeedNothing) {
  row_problem no_rows = rows();
  no_rows.groups = 0;
  no_rows.offsets = {};
  no_rows.a = no_rows.b = no_rows.c = {};
  EXPECT_TRUE(multiply_async(no_rows, {}, no_stream).has_value());
  weight_problem no_weights = weights();
  no_weights.groups = 0;
  no_weights.c = {};
  EXPECT_TRUE(multiply_async(no_weights, {}, no_stream).has_value());
  EXPECT_TRUE(multiply_async(pointer_problem{}, {}, no_stream).has_value());
}

TEST(GroupedWorkspace, GrowsWithTheGroups) {
  EXPECT_EQ(workspace_bytes(0).value(), 0);
  std::uint64_t last = 0;
  for (const std::uint32_t groups : {1u, 2u, 100u, 1024u, max_groups}) {
    const std::uint64_t bytes = workspace_bytes(groups).value();
    EXPECT_GE(bytes, last);
    last = bytes;
  }
  EXPECT_EQ(workspace_bytes(max_groups + 1).error().code, status::invalid_argument);
}

TEST(GroupedPlans, HaveNamesOfTheirOwn) {
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
