// SPDX-License-Identifier: Apache-2.0
// Tests grouped products in C as far as possible without a device: the conversions, and what is
// refused.
#include <tmap/grouped_gemm.hpp>

#include <string>
#include <utility>

#include "interop/no_stream.hpp"
#include "interop/refuses_bad_structs.hpp"
#include "interop/sized.hpp"
#include "lib/interop/convert.hpp"
#include "lib/interop/convert_call.hpp"

namespace tmap::testing {
namespace {

template <class T>
T* at(std::uintptr_t address) {
  return reinterpret_cast<T*>(address);
}

tmap_row_problem rows() {
  tmap_row_problem made{};
  made.struct_size = sizeof made;
  made.operand = TMAP_OPERAND_F16;
  made.groups = 10;
  made.b_layout = TMAP_B_K_BY_N;
  made.rows = 100;
  made.n = 64;
  made.k = 32;
  made.offsets = {at<void>(0x10000), TMAP_OFFSETS_BEGINS_AND_COUNTS, 8, at<void>(0x90000), 7};
  made.a_layout = TMAP_A_K_BY_M;
  made.b_addresses = at<std::uint64_t>(0x70000);
  made.c_addresses = at<std::uint64_t>(0x80000);
  made.a = {0x10000, 208};
  made.b = {0x20000, 128};
  made.b_group_pitch_bytes = 32 * 128;
  made.c = {0x30000, 144};
  made.c_type = TMAP_RESULT_LIKE_OPERANDS;
  made.accumulate = 1;
  made.c_scales = {at<float>(0x70000), 5, 7, 1, 0};
  made.row_scales = at<float>(0x50000);
  made.row_scale_stride = 3;
  made.column_scales = at<float>(0x60000);
  made.bias = at<void>(0x40000);
  made.gate = {TMAP_GATE_GELU, TMAP_GATE_INTERLEAVED, 1.5f, 7, 2, 0, {0x80000, 160}};
  return made;
}

tmap_weight_problem weights() {
  tmap_weight_problem made{};
  made.struct_size = sizeof made;
  made.groups = 10;
  made.c_type = TMAP_RESULT_F32;
  made.accumulate = 1;
  made.rows = 100;
  made.m = 64;
  made.n = 32;
  made.offsets = {at<void>(0x10000), TMAP_OFFSETS_SIZES, 4, nullptr, 0};
  made.b_layout = TMAP_B_K_BY_N;
  made.c_addresses = at<std::uint64_t>(0x80000);
  made.a = {0x10000, 208};
  made.b = {0x20000, 64};
  made.c = {0x30000, 160};
  made.c_group_pitch_bytes = 64 * 160;
  return made;
}

tmap_column_problem columns() {
  tmap_column_problem made{};
  made.struct_size = sizeof made;
  made.operand = TMAP_OPERAND_F16;
  made.groups = 10;
  made.a_layout = TMAP_A_K_BY_M;
  made.b_layout = TMAP_B_K_BY_N;
  made.columns = 100;
  made.m = 33;
  made.k = 32;
  made.offsets = {at<void>(0x10000), TMAP_OFFSETS_SLOTS, 4, nullptr, 10};
  made.a = {0x10000, 80};
  made.a_group_pitch_bytes = 32 * 80;
  made.b = {0x20000, 208};
  made.c = {0x30000, 224};
  return made;
}

tmap_pointer_problem pointers() {
  tmap_pointer_problem made{};
  made.struct_size = sizeof made;
  made.groups = 10;
  made.a = at<std::uint64_t>(0x10000);
  made.b = at<std::uint64_t>(0x20000);
  made.c = at<std::uint64_t>(0x30000);
  made.a_pitch_bytes = at<std::int64_t>(0x40000);
  made.b_pitch_bytes = at<std::int64_t>(0x50000);
  made.c_pitch_bytes = at<std::int64_t>(0x60000);
  made.m = at<std::int64_t>(0x70000);
  made.n = at<std::int64_t>(0x80000);
  made.k = at<std::int64_t>(0x90000);
  return made;
}

TEST(c_gemm, a_row_problem_is_converted_whole) {
  tmap_row_problem from = rows();
  from.a_rows = at<std::int32_t>(0xa0000);
  from.a_row_count = 90;
  const gemm::row_problem made = interop::library_of(from);
  EXPECT_EQ(made.type, gemm::operand_type::f16);
  EXPECT_EQ(made.groups, 10u);
  EXPECT_EQ(made.rows, 100u);
  EXPECT_EQ(made.n, 64u);
  EXPECT_EQ(made.k, 32u);
  EXPECT_EQ(made.offsets.values, at<void>(0x10000));
  EXPECT_EQ(made.offsets.format, offset_format::begins_and_counts);
  EXPECT_EQ(made.offsets.bytes, 8u);
  EXPECT_EQ(made.offsets.counts, at<void>(0x90000));
  EXPECT_EQ(made.offsets.slot_rows, 7u);
  EXPECT_EQ(made.a_layout, gemm::a_layout::k_by_m);
  EXPECT_EQ(made.b_addresses, at<std::uint64_t>(0x70000));
  EXPECT_EQ(made.c_addresses, at<std::uint64_t>(0x80000));
  EXPECT_EQ(made.a.address, 0x10000u);
  EXPECT_EQ(made.a.pitch_bytes, 208u);
  EXPECT_EQ(made.a_rows, at<std::int32_t>(0xa0000));
  EXPECT_EQ(made.a_row_count, 90u);
  EXPECT_EQ(made.b.address, 0x20000u);
  EXPECT_EQ(made.b.pitch_bytes, 128u);
  EXPECT_EQ(made.b_group_pitch_bytes, 4096u);
  EXPECT_EQ(made.b_layout, gemm::b_layout::k_by_n);
  EXPECT_EQ(made.c.address, 0x30000u);
  EXPECT_EQ(made.c.pitch_bytes, 144u);
  EXPECT_EQ(made.c_type, gemm::result_type::like_operands);
  EXPECT_TRUE(made.accumulate);
  EXPECT_EQ(made.c_scales.values, at<float>(0x70000));
  EXPECT_EQ(made.c_scales.row_stride, 5u);
  EXPECT_EQ(made.c_scales.column_stride, 7u);
  EXPECT_TRUE(made.c_scales.are_powers_of_two);
  EXPECT_EQ(made.epilogue.row_scales, at<float>(0x50000));
  EXPECT_EQ(made.epilogue.row_scale_stride, 3u);
  EXPECT_EQ(made.epilogue.column_scales, at<float>(0x60000));
  EXPECT_EQ(made.epilogue.bias, at<void>(0x40000));
}

TEST(c_gemm, a_gate_is_converted_whole) {
  tmap_row_problem from = rows();
  const gemm::gate made = interop::library_of(from).epilogue.gate;
  EXPECT_EQ(made.function, gemm::gate_function::gelu);
  EXPECT_EQ(made.columns, gemm::gate_columns::interleaved);
  EXPECT_EQ(made.alpha, 1.5f);
  EXPECT_EQ(made.limit, 7);
  EXPECT_EQ(made.value_shift, 2);
  EXPECT_EQ(made.kept.address, 0x80000u);
  EXPECT_EQ(made.kept.pitch_bytes, 160u);
  EXPECT_FALSE(made.backward);
  from.gate.backward = 1;
  EXPECT_TRUE(interop::library_of(from).epilogue.gate.backward);
}

/// Members that C leaves zero have the values that C++ begins with.
TEST(c_gemm, zeros_of_an_epilogue_are_its_defaults) {
  const tmap_row_problem zeros{};
  const gemm::epilogue made = interop::library_of(zeros).epilogue;
  const gemm::epilogue plain;
  EXPECT_EQ(made.row_scale_stride, plain.row_scale_stride);
  EXPECT_EQ(made.gate.function, plain.gate.function);
  EXPECT_EQ(made.gate.alpha, plain.gate.alpha);
  EXPECT_EQ(made.gate.limit, plain.gate.limit);
  EXPECT_EQ(made.gate.value_shift, plain.gate.value_shift);
}

TEST(c_gemm, fast_accumulation_is_converted_and_reaches_the_product) {
  tmap_row_problem problem = rows();
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

TEST(c_gemm, a_weight_problem_is_converted_whole) {
  const gemm::weight_problem made = interop::library_of(weights());
  EXPECT_EQ(made.type, gemm::operand_type::bf16);
  EXPECT_EQ(made.groups, 10u);
  EXPECT_EQ(made.rows, 100u);
  EXPECT_EQ(made.m, 64u);
  EXPECT_EQ(made.n, 32u);
  EXPECT_EQ(made.offsets.format, offset_format::sizes);
  EXPECT_EQ(made.offsets.bytes, 4u);
  EXPECT_EQ(made.a.pitch_bytes, 208u);
  EXPECT_EQ(made.b.address, 0x20000u);
  EXPECT_EQ(made.c.pitch_bytes, 160u);
  EXPECT_EQ(made.c_group_pitch_bytes, 10240u);
  EXPECT_EQ(made.a_layout, gemm::a_layout::m_by_k);
  EXPECT_EQ(made.b_layout, gemm::b_layout::k_by_n);
  EXPECT_EQ(made.c_addresses, at<std::uint64_t>(0x80000));
  EXPECT_EQ(made.c_type, gemm::result_type::f32);
  EXPECT_TRUE(made.accumulate);
}

TEST(c_gemm, a_column_problem_is_converted_whole) {
  const gemm::column_problem made = interop::library_of(columns());
  EXPECT_EQ(made.type, gemm::operand_type::f16);
  EXPECT_EQ(made.groups, 10u);
  EXPECT_EQ(made.columns, 100u);
  EXPECT_EQ(made.m, 33u);
  EXPECT_EQ(made.k, 32u);
  EXPECT_EQ(made.offsets.format, offset_format::slots);
  EXPECT_EQ(made.offsets.slot_rows, 10u);
  EXPECT_EQ(made.a.address, 0x10000u);
  EXPECT_EQ(made.a.pitch_bytes, 80u);
  EXPECT_EQ(made.a_group_pitch_bytes, 2560u);
  EXPECT_EQ(made.a_layout, gemm::a_layout::k_by_m);
  EXPECT_EQ(made.b.pitch_bytes, 208u);
  EXPECT_EQ(made.b_layout, gemm::b_layout::k_by_n);
  EXPECT_EQ(made.c.address, 0x30000u);
  EXPECT_EQ(made.c.pitch_bytes, 224u);
}

TEST(c_gemm, a_pointer_problem_is_converted_whole) {
  const tmap_pointer_problem from = pointers();
  const gemm::pointer_problem made = interop::library_of(from);
  EXPECT_EQ(made.a, from.a);
  EXPECT_EQ(made.b, from.b);
  EXPECT_EQ(made.c, from.c);
  EXPECT_EQ(made.a_pitch_bytes, from.a_pitch_bytes);
  EXPECT_EQ(made.b_pitch_bytes, from.b_pitch_bytes);
  EXPECT_EQ(made.c_pitch_bytes, from.c_pitch_bytes);
  EXPECT_EQ(made.m, from.m);
  EXPECT_EQ(made.n, from.n);
  EXPECT_EQ(made.k, from.k);
  EXPECT_EQ(made.a_layout, gemm::a_layout::m_by_k);
  EXPECT_EQ(made.b_layout, gemm::b_layout::n_by_k);
  EXPECT_EQ(made.c_type, gemm::result_type::like_operands);
  EXPECT_FALSE(made.accumulate);
  tmap_pointer_problem other = from;
  other.a_layout = TMAP_A_K_BY_M;
  other.b_layout = TMAP_B_K_BY_N;
  other.c_type = TMAP_RESULT_F32;
  other.accumulate = 1;
  EXPECT_EQ(interop::library_of(other).a_layout, gemm::a_layout::k_by_m);
  EXPECT_EQ(interop::library_of(other).b_layout, gemm::b_layout::k_by_n);
  EXPECT_EQ(interop::library_of(other).c_type, gemm::result_type::f32);
  EXPECT_TRUE(interop::library_of(other).accumulate);
}

TEST(c_gemm, calls_are_converted_whole) {
  tmap_call call = call_in(at<void>(0x10000), 1);
  call.statuses = at<std::uint32_t>(0x1000);
  call.header = at<tmap_batch_header>(0x2000);
  call.check = TMAP_CHECK_SYNC;
  EXPECT_FALSE(interop::gemm_call{&call}.value().choices.plan.has_value());
  call.plan = 3;
  const auto made = interop::gemm_call{&call}.value();
  EXPECT_EQ(made.choices.plan, 2u);
  EXPECT_EQ(made.statuses, at<gemm::group_status>(0x1000));
  EXPECT_EQ(made.header, at<batch_header>(0x2000));
  EXPECT_EQ(made.check, fault_check::sync);
  EXPECT_EQ(made.where.scratch.memory, at<void>(0x10000));
  EXPECT_EQ(made.where.scratch.bytes, 1u);
  EXPECT_EQ(interop::gemm_call{nullptr}.value().statuses, nullptr);
}

/// Members that a call does not use must be 0.
TEST(c_gemm, members_of_other_calls_are_refused) {
  const tmap_row_problem row = rows();
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
  EXPECT_EQ(refusal([](tmap_call& c) { c.windows = at<tmap_address_window>(0x1000); }), "call.windows");
}

/// Makes calls that are legal except for their workspace, which is one byte long.
TEST(c_gemm, problems_reach_their_products) {
  const tmap_row_problem row = rows();
  const tmap_column_problem column = columns();
  const tmap_weight_problem weight = weights();
  const tmap_pointer_problem pointer = pointers();
  const gemm::run small{{no_stream, {at<void>(0x10000), 1}}};
  const tmap_call call = call_in(small.where.scratch.memory, 1);
  const auto expect_same = [](tmap_status answer, const result<void>& expected) {
    ASSERT_FALSE(expected.has_value());
    EXPECT_EQ(expected.error().code, status::invalid_argument);
    EXPECT_EQ(answer, TMAP_INVALID_ARGUMENT);
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

/// Maps the refusal of a missing workspace to success, because a good call ends with it here.
tmap_status of_c(tmap_status answer) {
  return refused(answer) == "call.workspace_bytes" ? tmap_status{TMAP_OK} : answer;
}

TEST(c_gemm, structs_and_enums_are_checked) {
  const tmap_row_problem good = rows();
  const auto use = [](const tmap_row_problem* p) { return of_c(tmap_gemm_rows(p, nullptr)); };
  EXPECT_EQ(use(&good), TMAP_OK);
  refuses_bad_structs<tmap_row_problem>(good, use);
  refuses_bad_structs<tmap_column_problem>(columns(), [](auto* p) { return of_c(tmap_gemm_columns(p, nullptr)); });
  refuses_bad_structs<tmap_weight_problem>(weights(), [](auto* p) { return of_c(tmap_gemm_weights(p, nullptr)); });
  refuses_bad_structs<tmap_pointer_problem>(pointers(), [](auto* p) { return of_c(tmap_gemm_pointers(p, nullptr)); });
  const tmap_call call = sized<tmap_call>();
  refuses_bad_structs<tmap_call>(
      call, [&](auto* c) { return of_c(tmap_gemm_rows(&good, c)); }, true);
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
  }
}

/// Errors that only the product finds must also use C's names.
TEST(c_gemm, members_have_the_names_of_c) {
  tmap_weight_problem eight_bits = weights();
  eight_bits.operand = TMAP_OPERAND_F8_E4M3;
  EXPECT_EQ(refused(tmap_gemm_weights(&eight_bits, nullptr)), "problem.operand");
  tmap_weight_problem to_eight_bits = weights();
  to_eight_bits.c_type = TMAP_RESULT_F8_E4M3;
  EXPECT_EQ(refused(tmap_gemm_weights(&to_eight_bits, nullptr)), "problem.c_type");
  tmap_row_problem product = rows();
  product.row_scales = at<float>(0x50002);
  EXPECT_EQ(refused(tmap_gemm_rows(&product, nullptr)), "problem.row_scales");
  product = rows();
  product.gate.limit = -1;
  EXPECT_EQ(refused(tmap_gemm_rows(&product, nullptr)), "problem.gate.limit");
  product = rows();
  product.c.pitch_bytes = 0;
  EXPECT_EQ(refused(tmap_gemm_rows(&product, nullptr)), "problem.c.pitch_bytes");
  const tmap_row_problem good = rows();
  const std::uint64_t bytes = gemm::workspace_bytes(10).value();
  const tmap_call without_memory = call_in(nullptr, bytes);
  EXPECT_EQ(refused(tmap_gemm_rows(&good, &without_memory)), "call.workspace");
}

TEST(c_gemm, enums_of_the_other_products_are_checked) {
  for (const std::uint32_t wild : {6u, ~0u}) {
    const auto columns_refuse = [&](const char* name, const auto& spoil) {
      tmap_column_problem bad = columns();
      spoil(bad);
      EXPECT_EQ(refused(tmap_gemm_columns(&bad, nullptr)), name);
    };
    columns_refuse("problem.operand", [&](auto& p) { p.operand = wild; });
    columns_refuse("problem.a_layout", [&](auto& p) { p.a_layout = wild; });
    columns_refuse("problem.b_layout", [&](auto& p) { p.b_layout = wild; });
    columns_refuse("problem.reserved", [&](auto& p) { p.reserved = wild; });
    columns_refuse("problem.offsets.format", [&](auto& p) { p.offsets.format = wild; });
    const auto weights_refuse = [&](const char* name, const auto& spoil) {
      tmap_weight_problem bad = weights();
      spoil(bad);
      EXPECT_EQ(refused(tmap_gemm_weights(&bad, nullptr)), name);
    };
    weights_refuse("problem.operand", [&](auto& p) { p.operand = wild; });
    weights_refuse("problem.a_layout", [&](auto& p) { p.a_layout = wild; });
    weights_refuse("problem.b_layout", [&](auto& p) { p.b_layout = wild; });
    weights_refuse("problem.c_type", [&](auto& p) { p.c_type = wild; });
    weights_refuse("problem.accumulate", [&](auto& p) { p.accumulate = wild; });
    weights_refuse("problem.reserved", [&](auto& p) { p.reserved = wild; });
    weights_refuse("problem.offsets.format", [&](auto& p) { p.offsets.format = wild; });
    const auto pointers_refuse = [&](const char* name, const auto& spoil) {
      tmap_pointer_problem bad = pointers();
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
  const tmap_weight_problem weight = weights();
  const tmap_pointer_problem pointer = pointers();
  const tmap_call call = sized<tmap_call>();
  refuses_bad_structs<tmap_call>(
      call, [&](auto* c) { return of_c(tmap_gemm_weights(&weight, c)); }, true);
  refuses_bad_structs<tmap_call>(
      call, [&](auto* c) { return of_c(tmap_gemm_pointers(&pointer, c)); }, true);
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
