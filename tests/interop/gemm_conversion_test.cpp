// SPDX-License-Identifier: Apache-2.0
// Tests that products in C become those of the library, member by member.
#include <tmap/grouped_gemm.hpp>

#include "interop/expect_matrix.hpp"
#include "interop/gemm_problems.hpp"
#include "lib/interop/convert.hpp"
#include "lib/interop/convert_call.hpp"

namespace tmap::testing {
namespace {

void expect_scales(const gemm::block_scales& made, const gemm::block_scales& want) {
  EXPECT_EQ(made.values, want.values);
  EXPECT_EQ(made.line_stride, want.line_stride);
  EXPECT_EQ(made.k_stride, want.k_stride);
  EXPECT_EQ(made.group_stride, want.group_stride);
  EXPECT_EQ(made.lines, want.lines);
}

TEST(c_gemm, a_row_problem_is_converted_whole) {
  tmap_row_problem from = c_rows();
  from.a_rows = unread<std::int32_t>(0xa0000);
  from.a_row_count = 90;
  from.pending = unread<std::uint32_t>(0x120000);
  from.c_rows = unread<std::int32_t>(0x110000);
  from.c_row_count = 80;
  from.a_scales = {unread<float>(0xc0000), 2, 3, 4, 5, 0};
  from.b_scales = {unread<float>(0xd0000), 6, 7, 8, 9, 0};
  const gemm::row_problem made = interop::library_of(from);
  EXPECT_EQ(made.type, gemm::operand_type::f16);
  EXPECT_EQ(made.groups, 10u);
  EXPECT_EQ(made.rows, 100u);
  EXPECT_EQ(made.n, 64u);
  EXPECT_EQ(made.k, 32u);
  EXPECT_EQ(made.offsets.values, unread<void>(0xb0000));
  EXPECT_EQ(made.offsets.format, offset_format::begins_and_counts);
  EXPECT_EQ(made.offsets.bytes, 8u);
  EXPECT_EQ(made.offsets.counts, unread<void>(0x90000));
  EXPECT_EQ(made.offsets.slot_rows, 7u);
  EXPECT_EQ(made.a_layout, gemm::a_layout::k_by_m);
  EXPECT_EQ(made.b_addresses, unread<std::uint64_t>(0x70000));
  EXPECT_EQ(made.c_addresses, unread<std::uint64_t>(0x80000));
  expect_matrix(made.a, 0x10000, 208);
  EXPECT_EQ(made.a_rows, unread<std::int32_t>(0xa0000));
  EXPECT_EQ(made.a_row_count, 90u);
  EXPECT_EQ(made.pending, unread<std::uint32_t>(0x120000));
  EXPECT_EQ(made.c_rows, unread<std::int32_t>(0x110000));
  EXPECT_EQ(made.c_row_count, 80u);
  expect_matrix(made.b, 0x20000, 128);
  EXPECT_EQ(made.b_group_pitch_bytes, 4096u);
  EXPECT_EQ(made.b_layout, gemm::b_layout::k_by_n);
  expect_matrix(made.c, 0x30000, 144);
  EXPECT_EQ(made.c_type, gemm::result_type::like_operands);
  EXPECT_TRUE(made.accumulate);
  EXPECT_EQ(made.c_scales.values, unread<float>(0xe0000));
  EXPECT_EQ(made.c_scales.row_stride, 5u);
  EXPECT_EQ(made.c_scales.column_stride, 7u);
  EXPECT_TRUE(made.c_scales.are_powers_of_two);
  EXPECT_TRUE(made.c_scales.are_given);
  EXPECT_EQ(made.epilogue.row_scales, unread<float>(0x50000));
  EXPECT_EQ(made.epilogue.row_scale_stride, 3u);
  EXPECT_EQ(made.epilogue.column_scales, unread<float>(0x60000));
  EXPECT_EQ(made.epilogue.bias, unread<void>(0x40000));
  expect_scales(made.a_scales, {unread<float>(0xc0000), 2, 3, 4, 5});
  expect_scales(made.b_scales, {unread<float>(0xd0000), 6, 7, 8, 9});
}

TEST(c_gemm, a_gate_is_converted_whole) {
  tmap_row_problem from = c_rows();
  const gemm::gate made = interop::library_of(from).epilogue.gate;
  EXPECT_EQ(made.function, gemm::gate_function::gelu);
  EXPECT_EQ(made.columns, gemm::gate_columns::interleaved);
  EXPECT_EQ(made.alpha, 1.5f);
  EXPECT_EQ(made.limit, 7);
  EXPECT_EQ(made.value_shift, 2);
  expect_matrix(made.kept, 0xf0000, 160);
  EXPECT_FALSE(made.backward);
  from.gate.backward = 1;
  EXPECT_TRUE(interop::library_of(from).epilogue.gate.backward);
}

/// Members that C leaves zero have the values that C++ begins with.
TEST(c_gemm, zeros_of_an_epilogue_are_its_defaults) {
  const tmap_row_problem zeros{};
  const gemm::epilogue made = interop::library_of(zeros).epilogue;
  const gemm::epilogue plain{};
  EXPECT_EQ(made.row_scale_stride, plain.row_scale_stride);
  EXPECT_EQ(made.row_scales, nullptr);
  EXPECT_EQ(made.column_scales, nullptr);
  EXPECT_EQ(made.bias, nullptr);
  EXPECT_EQ(made.gate.function, plain.gate.function);
  EXPECT_EQ(made.gate.alpha, plain.gate.alpha);
  EXPECT_EQ(made.gate.limit, plain.gate.limit);
  EXPECT_EQ(made.gate.value_shift, plain.gate.value_shift);
}

TEST(c_gemm, a_weight_problem_is_converted_whole) {
  tmap_weight_problem from = c_weights();
  from.a_scales = {unread<float>(0x90000), 1, 64, 2, 3, 0};
  from.b_scales = {unread<float>(0xa0000), 4, 32, 5, 6, 0};
  const gemm::weight_problem made = interop::library_of(from);
  EXPECT_EQ(made.type, gemm::operand_type::bf16);
  EXPECT_EQ(made.groups, 10u);
  EXPECT_EQ(made.rows, 100u);
  EXPECT_EQ(made.m, 64u);
  EXPECT_EQ(made.n, 32u);
  EXPECT_EQ(made.offsets.format, offset_format::sizes);
  EXPECT_EQ(made.offsets.bytes, 4u);
  EXPECT_EQ(made.offsets.values, unread<void>(0xb0000));
  expect_matrix(made.a, 0x10000, 208);
  expect_matrix(made.b, 0x20000, 64);
  expect_matrix(made.c, 0x30000, 160);
  EXPECT_EQ(made.c_group_pitch_bytes, 10240u);
  EXPECT_EQ(made.a_layout, gemm::a_layout::m_by_k);
  EXPECT_EQ(made.b_layout, gemm::b_layout::k_by_n);
  EXPECT_EQ(made.c_addresses, unread<std::uint64_t>(0x80000));
  EXPECT_EQ(made.c_type, gemm::result_type::f32);
  EXPECT_TRUE(made.accumulate);
  expect_scales(made.a_scales, {unread<float>(0x90000), 1, 64, 2, 3});
  expect_scales(made.b_scales, {unread<float>(0xa0000), 4, 32, 5, 6});
}

TEST(c_gemm, a_column_problem_is_converted_whole) {
  const gemm::column_problem made = interop::library_of(c_columns());
  EXPECT_EQ(made.type, gemm::operand_type::f16);
  EXPECT_EQ(made.groups, 10u);
  EXPECT_EQ(made.columns, 100u);
  EXPECT_EQ(made.m, 33u);
  EXPECT_EQ(made.k, 32u);
  EXPECT_EQ(made.offsets.values, unread<void>(0xb0000));
  EXPECT_EQ(made.offsets.format, offset_format::slots);
  EXPECT_EQ(made.offsets.slot_rows, 10u);
  expect_matrix(made.a, 0x10000, 80);
  EXPECT_EQ(made.a_group_pitch_bytes, 2560u);
  EXPECT_EQ(made.a_layout, gemm::a_layout::k_by_m);
  expect_matrix(made.b, 0x20000, 208);
  EXPECT_EQ(made.b_layout, gemm::b_layout::k_by_n);
  expect_matrix(made.c, 0x30000, 224);
}

TEST(c_gemm, a_pointer_problem_is_converted_whole) {
  const tmap_pointer_problem from = c_pointers();
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
  tmap_call call = call_in(unread<void>(0x10000), 1);
  call.statuses = unread<std::uint32_t>(0x1000);
  call.header = unread<tmap_batch_header>(0x2000);
  call.check = TMAP_CHECK_SYNC;
  EXPECT_FALSE(interop::gemm_call{&call}.value().choices.plan.has_value());
  EXPECT_FALSE(interop::gemm_call{&call}.value().choices.blocks.has_value());
  call.plan = 3;
  call.blocks = 5;
  const auto made = interop::gemm_call{&call}.value();
  EXPECT_EQ(made.choices.plan, 2u);
  EXPECT_EQ(made.choices.blocks, 5u);
  EXPECT_EQ(made.statuses, unread<gemm::group_status>(0x1000));
  EXPECT_EQ(made.header, unread<batch_header>(0x2000));
  EXPECT_EQ(made.check, fault_check::sync);
  EXPECT_EQ(made.where.scratch.memory, unread<void>(0x10000));
  EXPECT_EQ(made.where.scratch.bytes, 1u);
  EXPECT_EQ(interop::gemm_call{nullptr}.value().statuses, nullptr);
}

}  // namespace
}  // namespace tmap::testing
