// SPDX-License-Identifier: Apache-2.0
// Tests products whose rows of A are named by an index.
#include <gtest/gtest.h>
#include <tmap/faults.hpp>

#include <cstdint>
#include <deque>
#include <random>
#include <string>

#include "device/recorded_call.hpp"
#include "gemm/gathered_rows.hpp"

namespace tmap::gemm::testing {
namespace {

TEST_F(gathered_rows, of_every_type_and_order) {
  for (const operand_type type :
       {operand_type::bf16, operand_type::f16, operand_type::f8_e4m3, operand_type::f8_e5m2}) {
    for (const b_layout layout : {b_layout::n_by_k, b_layout::k_by_n}) {
      if (has_8_bits(type) && layout == b_layout::k_by_n) continue;
      row_settings with;
      with.type = type;
      with.b_layout = layout;
      with.sizes = plan_sizes;
      with.n = 784;
      with.k = 400;
      compare(with);
      with.fast_accumulation = type == operand_type::f8_e4m3;
      if (with.fast_accumulation) compare(with);
    }
  }
}

TEST_F(gathered_rows, of_every_length_of_k) {
  for (const operand_type type : {operand_type::bf16, operand_type::f8_e4m3}) {
    for (const std::uint64_t units : {1, 3, 4, 5, 8, 9, 31, 33, 64, 100, 129}) {
      row_settings with;
      with.type = type;
      with.sizes = {3, 0, 130, 64, 257};
      with.n = 528;
      with.k = units * 16 / operand_bytes(type);
      compare(with);
    }
  }
}

TEST_F(gathered_rows, in_every_format_of_offsets) {
  for (const offset_format format : {offset_format::ends, offset_format::prefix, offset_format::sizes,
                                     offset_format::begins_and_counts, offset_format::slots, offset_format::labels}) {
    for (const std::uint32_t bytes : {4, 8}) {
      row_settings with;
      with.format = format;
      with.offset_bytes = bytes;
      with.sizes = {40, 0, 130, 64, 257, 1};
      compare(with);
    }
  }
}

TEST_F(gathered_rows, with_lists_of_matrices) {
  for (const bool lists_c : {false, true}) {
    row_settings with;
    with.lists_b = true;
    with.lists_c = lists_c;
    with.sizes = {40, 0, 130, 64, 257, 1};
    with.n = 544;
    compare(with);
  }
}

TEST_F(gathered_rows, with_epilogues) {
  for (const operand_type type : {operand_type::bf16, operand_type::f16, operand_type::f8_e4m3}) {
    row_settings with;
    with.type = type;
    with.sizes = {40, 0, 130, 64, 257, 1};
    with.n = 544;
    with.row_scales = with.column_scales = with.bias = true;
    compare(with);
    with.c_type = result_type::f32;
    compare(with);
    with.accumulate = true;
    compare(with);
    with.c_type = {};
    compare(with);
    with.gates.function = gate_function::silu;
    with.kept = true;
    compare(with);
    with.accumulate = with.kept = false;
    with.gates.columns = gate_columns::interleaved;
    compare(with);
    with.c_type = result_type::f8_e4m3;
    compare(with);
    with.gates = {};
    compare(with);
  }
}

TEST_F(gathered_rows, through_a_backward_gate) {
  row_settings with;
  with.sizes = {40, 0, 130, 64, 257, 1};
  with.n = 288;
  with.gates.function = gate_function::silu;
  with.gates.backward = true;
  compare(with);
}

TEST_F(gathered_rows, that_do_not_exist_are_zeros_and_counted) {
  std::mt19937_64 random = tmap::testing::run_random(32);
  row_settings with;
  with.sizes = plan_sizes;
  with.n = 784;
  with.k = 72;
  const gathered_product made(with, drawn_rows(random, row_case(with).rows(), true));
  for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
    ASSERT_TRUE(reset_faults().has_value());
    made.compare(plan, plan_name(plan));
    const result<fault_report> report = faults();
    ASSERT_TRUE(report.has_value());
    EXPECT_EQ(report->groups, made.bad_rows());
    EXPECT_EQ(report->first.call, batch_call::gemm_rows);
    EXPECT_EQ(report->first.bits, static_cast<std::uint64_t>(fault::a_row));
  }
  ASSERT_TRUE(reset_faults().has_value());
}

TEST_F(gathered_rows, of_a_checked_call_make_it_fail) {
  row_settings with;
  with.sizes = {100};
  row_list rows(row_case(with).rows(), 0);
  const gathered_product good(with, rows);
  gemm::run checked = good.with_plan(0);
  checked.check = fault_check::sync;
  EXPECT_TRUE(multiply(good.by_index(), checked).has_value());
  rows[57] = -7;
  const gathered_product bad(with, rows);
  const result<void> failed = multiply(bad.by_index(), checked);
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, status::bad_items);
  EXPECT_NE(to_string(failed.error()).find("row number 57: a_row"), std::string::npos) << to_string(failed.error());
  ASSERT_TRUE(reset_faults().has_value());
}

TEST_F(gathered_rows, of_zeros_alone_give_the_bias) {
  row_settings with;
  with.sizes = {100, 30};
  with.bias = true;
  const gathered_product made(with, row_list(row_case(with).rows(), -1));
  made.compare_every_plan();
}

/// A has fewer rows than C, and the last of them ends where its memory may end.
TEST_F(gathered_rows, of_fewer_rows_than_c) {
  row_settings with;
  with.sizes = {100, 30, 200};
  row_list rows;
  for (std::uint64_t i = 0; i < row_case(with).rows(); ++i) rows.push_back(static_cast<std::int32_t>(i % 7));
  const gathered_product made(with, rows);
  made.reset();
  TMAP_ASSERT_OK(multiply(made.of_copy(), made.with_plan(0)));
  const host_matrix want = made.device().output();
  made.reset();
  row_problem few = made.by_index();
  few.a_row_count = 7;
  TMAP_ASSERT_OK(multiply(few, made.with_plan(0)));
  EXPECT_EQ(made.device().output().bytes(), want.bytes());
}

TEST_F(gathered_rows, in_a_graph_with_other_rows_each_time) {
  for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
    row_settings with;
    with.sizes = {50, 50, 150, 0, 129};
    with.n = 528;
    std::mt19937_64 random = tmap::testing::run_random(33);
    const std::uint64_t rows = row_case(with).rows();
    gathered_product made(with, drawn_rows(random, rows, false));
    const tmap::testing::recorded_call graph(
        [&](cudaStream_t stream) { return multiply(made.by_index(), made.device().memory().on(stream, plan)); });
    for (int i = 0; i < 30; ++i) {
      made.name_rows(drawn_rows(random, rows, i % 2 == 1));
      made.reset();
      TMAP_ASSERT_OK(multiply(made.of_copy(), made.with_plan(plan)));
      const host_matrix want = made.device().output();
      made.reset();
      graph.replay();
      EXPECT_EQ(made.device().output().bytes(), want.bytes()) << plan_name(plan) << ", replay " << i;
    }
  }
  ASSERT_TRUE(reset_faults().has_value());
}

/// Many short products let every order of the loading, gathering and finding warps occur. Each has
/// an output of its own, so that none hides the bytes of another.
TEST_F(gathered_rows, have_the_same_bits_many_times) {
  row_settings with;
  with.sizes = plan_sizes;
  with.n = 784;
  with.k = 136;
  std::mt19937_64 random = tmap::testing::run_random(34);
  const gathered_product made(with, drawn_rows(random, row_case(with).rows(), false));
  made.reset();
  TMAP_ASSERT_OK(multiply(made.of_copy(), made.with_plan(0)));
  const host_matrix want = made.device().output();
  std::deque<matrix_on_device> outputs;
  for (int i = 0; i < 10; ++i) outputs.emplace_back(made.made().c());
  std::uint32_t plan = 0;
  for (int round = 0; round < 30; ++round) {
    for (const matrix_on_device& output : outputs) output.reset();
    for (const matrix_on_device& output : outputs) {
      row_problem problem = made.by_index();
      problem.c = output.place();
      TMAP_ASSERT_OK(multiply(problem, made.with_plan(plan)));
      plan = (plan + 1) % plan_count();
    }
    for (const matrix_on_device& output : outputs) {
      ASSERT_EQ(output.download().bytes(), want.bytes()) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace tmap::gemm::testing
