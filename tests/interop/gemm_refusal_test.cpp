// SPDX-License-Identifier: Apache-2.0
// Tests what products in C refuse, and that good ones reach the library, as far as possible without
// a device.
#include <tmap/grouped_gemm.hpp>

#include <string>
#include <utility>

#include "interop/gemm_problems.hpp"
#include "interop/no_stream.hpp"
#include "interop/refuses_bad_structs.hpp"
#include "lib/interop/convert.hpp"

namespace tmap::testing {
namespace {

TEST(c_gemm, fast_accumulation_is_converted_and_reaches_the_product) {
  tmap_row_problem problem = c_rows();
  EXPECT_FALSE(interop::library_of(problem).fast_accumulation);
  problem.fast_accumulation = 1;
  EXPECT_TRUE(interop::library_of(problem).fast_accumulation);
  // With 16-bit operands, the product itself refuses the call before it checks the workspace.
  const auto refused = [&] {
    EXPECT_EQ(tmap_gemm_rows(&problem, nullptr), TMAP_INVALID_ARGUMENT);
    tmap_error last{};
    last.struct_size = sizeof last;
    EXPECT_EQ(tmap_last_error(&last), TMAP_OK);
    return std::pair{last.found, last.allowed};
  };
  EXPECT_EQ(refused(), (std::pair<std::uint64_t, std::uint64_t>{1, 0}));
  problem.operand = TMAP_OPERAND_F8_E4M3;
  problem.a_layout = TMAP_A_M_BY_K;
  problem.b_layout = TMAP_B_N_BY_K;
  problem.a.pitch_bytes = problem.b.pitch_bytes = problem.k;
  EXPECT_EQ(refused().second, gemm::workspace_bytes(10).value());
}

/// Members that a call does not use must be 0.
TEST(c_gemm, members_of_other_calls_are_refused) {
  const tmap_row_problem row = c_rows();
  const auto refusal = [&](const auto& use) {
    tmap_call call = sized<tmap_call>();
    use(call);
    return refused(tmap_gemm_rows(&row, &call));
  };
  EXPECT_EQ(refusal([](tmap_call& c) { c.engine = TMAP_ON_HOST; }), "call.engine");
  EXPECT_EQ(refusal([](tmap_call& c) { c.policy = 1; }), "call.policy");
  EXPECT_EQ(refusal([](tmap_call& c) { c.allowed = 1; }), "call.allowed");
  EXPECT_EQ(refusal([](tmap_call& c) { c.trusted = 1; }), "call.trusted");
  EXPECT_EQ(refusal([](tmap_call& c) { c.publish = 1; }), "call.publish");
  EXPECT_EQ(refusal([](tmap_call& c) { c.window_count = 1; }), "call.windows");
  EXPECT_EQ(refusal([](tmap_call& c) { c.windows = unread<tmap_address_window>(0x1000); }), "call.windows");
}

/// Makes calls that are legal except for their workspace, which is one byte long.
TEST(c_gemm, problems_reach_their_products) {
  const tmap_row_problem row = c_rows();
  const tmap_column_problem column = c_columns();
  const tmap_weight_problem weight = c_weights();
  const tmap_pointer_problem pointer = c_pointers();
  const gemm::run small{{no_stream, {unread<void>(0x10000), 1}}};
  const tmap_call call = call_in(small.where.scratch.memory, 1);
  const auto expect_same = [](tmap_status returned, const result<void>& expected) {
    ASSERT_FALSE(expected.has_value());
    EXPECT_EQ(expected.error().code, status::invalid_argument);
    EXPECT_EQ(returned, TMAP_INVALID_ARGUMENT);
    tmap_error last{};
    last.struct_size = sizeof last;
    ASSERT_EQ(tmap_last_error(&last), TMAP_OK);
    EXPECT_EQ(last.found, expected.error().found);
    EXPECT_EQ(last.allowed, expected.error().allowed);
    EXPECT_EQ(last.allowed, gemm::workspace_bytes(10).value());
    EXPECT_STREQ(last.argument, "call.workspace_bytes");
  };
  expect_same(tmap_gemm_rows(&row, &call), gemm::multiply(interop::library_of(row), small));
  expect_same(tmap_gemm_columns(&column, &call), gemm::multiply(interop::library_of(column), small));
  expect_same(tmap_gemm_weights(&weight, &call), gemm::multiply(interop::library_of(weight), small));
  expect_same(tmap_gemm_pointers(&pointer, &call), gemm::multiply(interop::library_of(pointer), small));
}

TEST(c_gemm, structs_and_enums_are_checked) {
  const tmap_row_problem good = c_rows();
  const auto use = [](const tmap_row_problem* p) { return without_workspace(tmap_gemm_rows(p, nullptr)); };
  EXPECT_EQ(use(&good), TMAP_OK);
  refuses_bad_structs<tmap_row_problem>(good, use);
  refuses_bad_structs<tmap_column_problem>(c_columns(),
                                           [](auto* p) { return without_workspace(tmap_gemm_columns(p, nullptr)); });
  refuses_bad_structs<tmap_weight_problem>(c_weights(),
                                           [](auto* p) { return without_workspace(tmap_gemm_weights(p, nullptr)); });
  refuses_bad_structs<tmap_pointer_problem>(c_pointers(),
                                            [](auto* p) { return without_workspace(tmap_gemm_pointers(p, nullptr)); });
  const tmap_call call = sized<tmap_call>();
  refuses_bad_structs<tmap_call>(
      call, [&](auto* c) { return without_workspace(tmap_gemm_rows(&good, c)); }, true);
  tmap_call unknown = call;
  unknown.check = 3;
  EXPECT_EQ(refused(tmap_gemm_rows(&good, &unknown)), "call.check");
  const auto refuses = [&](const std::string& member, const auto& spoil) {
    tmap_row_problem bad = good;
    spoil(bad);
    EXPECT_EQ(refused(use(&bad)), "problem." + member);
  };
  for (const std::uint32_t wild : {6u, ~0u}) {
    refuses("a_layout", [&](tmap_row_problem& p) { p.a_layout = wild; });
    refuses("operand", [&](tmap_row_problem& p) { p.operand = wild; });
    refuses("b_layout", [&](tmap_row_problem& p) { p.b_layout = wild; });
    refuses("c_type", [&](tmap_row_problem& p) { p.c_type = wild; });
    refuses("gate.function", [&](tmap_row_problem& p) { p.gate.function = wild; });
    refuses("gate.columns", [&](tmap_row_problem& p) { p.gate.columns = wild; });
    refuses("offsets.format", [&](tmap_row_problem& p) { p.offsets.format = wild; });
  }
  for (const std::uint32_t wild : {2u, ~0u}) {
    refuses("fast_accumulation", [&](tmap_row_problem& p) { p.fast_accumulation = wild; });
    refuses("accumulate", [&](tmap_row_problem& p) { p.accumulate = wild; });
    refuses("gate.backward", [&](tmap_row_problem& p) { p.gate.backward = wild; });
    refuses("c_scales.are_powers_of_two", [&](tmap_row_problem& p) { p.c_scales.are_powers_of_two = wild; });
    refuses("c_scales.are_given", [&](tmap_row_problem& p) { p.c_scales.are_given = wild; });
  }
}

/// Errors that only the product finds must also use C's names.
TEST(c_gemm, members_have_the_names_of_c) {
  tmap_weight_problem eight_bits = c_weights();
  eight_bits.operand = TMAP_OPERAND_F8_E4M3;
  EXPECT_EQ(refused(tmap_gemm_weights(&eight_bits, nullptr)), "problem.b_layout");
  eight_bits.b_layout = TMAP_B_N_BY_K;
  EXPECT_EQ(refused(tmap_gemm_weights(&eight_bits, nullptr)), "problem.a_scales.values");
  tmap_column_problem of_columns = c_columns();
  of_columns.operand = TMAP_OPERAND_F8_E4M3;
  EXPECT_EQ(refused(tmap_gemm_columns(&of_columns, nullptr)), "problem.operand");
  tmap_weight_problem to_eight_bits = c_weights();
  to_eight_bits.c_type = TMAP_RESULT_F8_E4M3;
  EXPECT_EQ(refused(tmap_gemm_weights(&to_eight_bits, nullptr)), "problem.c_type");
  tmap_row_problem product = c_rows();
  product.row_scales = unread<float>(0x50002);
  EXPECT_EQ(refused(tmap_gemm_rows(&product, nullptr)), "problem.row_scales");
  product = c_rows();
  product.gate.limit = -1;
  EXPECT_EQ(refused(tmap_gemm_rows(&product, nullptr)), "problem.gate.limit");
  product = c_rows();
  product.c.pitch_bytes = 0;
  EXPECT_EQ(refused(tmap_gemm_rows(&product, nullptr)), "problem.c.pitch_bytes");
  const tmap_row_problem good = c_rows();
  const std::uint64_t bytes = gemm::workspace_bytes(10).value();
  const tmap_call without_memory = call_in(nullptr, bytes);
  EXPECT_EQ(refused(tmap_gemm_rows(&good, &without_memory)), "call.workspace");
}

TEST(c_gemm, enums_of_the_other_products_are_checked) {
  for (const std::uint32_t wild : {6u, ~0u}) {
    const auto columns_refuse = [&](const char* name, const auto& spoil) {
      tmap_column_problem bad = c_columns();
      spoil(bad);
      EXPECT_EQ(refused(tmap_gemm_columns(&bad, nullptr)), name);
    };
    columns_refuse("problem.operand", [&](auto& p) { p.operand = wild; });
    columns_refuse("problem.a_layout", [&](auto& p) { p.a_layout = wild; });
    columns_refuse("problem.b_layout", [&](auto& p) { p.b_layout = wild; });
    columns_refuse("problem.reserved", [&](auto& p) { p.reserved = wild; });
    columns_refuse("problem.offsets.format", [&](auto& p) { p.offsets.format = wild; });
    const auto weights_refuse = [&](const char* name, const auto& spoil) {
      tmap_weight_problem bad = c_weights();
      spoil(bad);
      EXPECT_EQ(refused(tmap_gemm_weights(&bad, nullptr)), name);
    };
    weights_refuse("problem.operand", [&](auto& p) { p.operand = wild; });
    weights_refuse("problem.a_layout", [&](auto& p) { p.a_layout = wild; });
    weights_refuse("problem.b_layout", [&](auto& p) { p.b_layout = wild; });
    weights_refuse("problem.c_type", [&](auto& p) { p.c_type = wild; });
    weights_refuse("problem.accumulate", [&](auto& p) { p.accumulate = wild; });
    weights_refuse("problem.zero_rest", [&](auto& p) { p.zero_rest = wild; });
    weights_refuse("problem.offsets.format", [&](auto& p) { p.offsets.format = wild; });
    const auto pointers_refuse = [&](const char* name, const auto& spoil) {
      tmap_pointer_problem bad = c_pointers();
      spoil(bad);
      EXPECT_EQ(refused(tmap_gemm_pointers(&bad, nullptr)), name);
    };
    pointers_refuse("problem.operand", [&](auto& p) { p.operand = wild; });
    pointers_refuse("problem.a_layout", [&](auto& p) { p.a_layout = wild; });
    pointers_refuse("problem.b_layout", [&](auto& p) { p.b_layout = wild; });
    pointers_refuse("problem.c_type", [&](auto& p) { p.c_type = wild; });
    pointers_refuse("problem.accumulate", [&](auto& p) { p.accumulate = wild; });
    pointers_refuse("problem.reserved", [&](auto& p) { p.reserved = wild; });
  }
  const tmap_weight_problem weight = c_weights();
  const tmap_pointer_problem pointer = c_pointers();
  const tmap_call call = sized<tmap_call>();
  refuses_bad_structs<tmap_call>(
      call, [&](auto* c) { return without_workspace(tmap_gemm_weights(&weight, c)); }, true);
  refuses_bad_structs<tmap_call>(
      call, [&](auto* c) { return without_workspace(tmap_gemm_pointers(&pointer, c)); }, true);
}

TEST(c_gemm, workspace_and_plans_are_those_of_cpp) {
  std::uint64_t bytes = 77;
  EXPECT_EQ(refused(tmap_gemm_workspace_bytes(gemm::max_groups + 1, &bytes)), "groups");
  EXPECT_EQ(refused(tmap_gemm_workspace_bytes(10, nullptr)), "bytes");
  EXPECT_EQ(bytes, 77u);
  EXPECT_EQ(tmap_gemm_workspace_bytes(10, &bytes), TMAP_OK);
  EXPECT_EQ(bytes, gemm::workspace_bytes(10).value());
  ASSERT_EQ(tmap_gemm_plan_count(), gemm::plan_count());
  for (std::uint32_t plan = 0; plan < gemm::plan_count(); ++plan) {
    EXPECT_STREQ(tmap_gemm_plan_name(plan), gemm::plan_name(plan));
  }
  EXPECT_EQ(tmap_gemm_plan_name(gemm::plan_count()), nullptr);
}

}  // namespace
}  // namespace tmap::testing
