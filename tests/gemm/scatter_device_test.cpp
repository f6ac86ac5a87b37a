// SPDX-License-Identifier: Apache-2.0
// Compares products whose rows of C are named by an index with the same products whose rows follow
// each other, copied to the named rows. They must be the same bits. Memory around C, in the gaps of
// its rows and in rows that no index names must stay as it was.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <tmap/faults.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "device/recorded_call.hpp"
#include "gemm/row_runs.hpp"
#include "support/run_seed.hpp"

namespace tmap::gemm::testing {
namespace {

using target_list = std::vector<std::int32_t>;

bool names_row(std::int32_t row, std::uint64_t count) {
  return row >= 0 && static_cast<std::uint64_t>(row) < count;
}

/// Draws a row of C for each row: each another one, none, or one that C does not have.
target_list drawn_targets(std::mt19937_64& random, std::uint64_t count, std::uint64_t c_rows, bool has_bad) {
  const std::int32_t bad[] = {-2, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max(),
                              static_cast<std::int32_t>(c_rows)};
  target_list all(c_rows);
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), random);
  all.resize(count, -1);
  for (std::int32_t& row : all) {
    const std::uint64_t kind = random() % 16;
    if (kind == 0) row = -1;
    if (kind == 1 && has_bad) row = bad[random() % std::size(bad)];
  }
  return all;
}

row_settings with_far_scales(row_settings with) {
  with.row_scale_stride = with.row_scales ? 3 : 1;
  return with;
}

/// Holds a product that stores rows by index, and the same product without an index.
class scattered_product {
 public:
  scattered_product(const row_settings& with, const target_list& rows, std::uint64_t c_rows)
      : made_(with_far_scales(with)),
        device_(made_),
        before_(filled_c(c_rows)),
        c_(before_),
        sorted_(sorted_c(rows)),
        rows_(rows),
        index_(rows) {}

  const rows_on_device& device() const { return device_; }
  gemm::run with_plan(std::uint32_t plan) const { return device_.memory().on(nullptr, plan); }
  void name_rows(const target_list& rows) {
    rows_ = rows;
    index_.upload(rows);
  }
  void reset() const {
    c_.reset();
    device_.reset_kept();
  }
  host_matrix output() const { return c_.download(); }

  row_problem by_index() const {
    row_problem problem = device_.problem();
    problem.c = c_.place();
    problem.c_rows = index_.data();
    problem.c_row_count = before_.rows();
    return problem;
  }
  /// Returns the results in the product's order of rows.
  host_matrix sorted_results(std::uint32_t plan) const {
    row_problem problem = device_.problem();
    sorted_.upload(sorted_c(rows_));
    problem.c = sorted_.place();
    device_.reset_kept();
    EXPECT_TRUE(multiply(problem, with_plan(plan)).has_value());
    return sorted_.download();
  }
  /// Returns what C must be.
  host_matrix wanted(std::uint32_t plan) const {
    const host_matrix sorted = sorted_results(plan);
    host_matrix want = before_;
    for (const judged_group& group : made_.judged()) {
      if (!group.status.is_good()) continue;
      for (std::uint64_t row = group.begin; row < group.end; ++row) {
        if (names_row(rows_[row], want.rows())) copy_row(sorted, row, want, static_cast<std::uint64_t>(rows_[row]));
      }
    }
    return want;
  }

  void compare(std::uint32_t plan, const std::string& what) const {
    const host_matrix want = wanted(plan);
    const host_matrix want_kept = device_.kept();
    reset();
    TMAP_ASSERT_OK(multiply(by_index(), with_plan(plan)));
    EXPECT_EQ(difference(output(), want), -1) << what;
    EXPECT_EQ(difference(device_.kept(), want_kept), -1) << what << ", kept";
    EXPECT_NE(difference(want, before_), -1) << what << ": nothing was computed";
    device_.memory().expect(made_.judged());
  }
  void compare_every_plan() const {
    for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
      compare(plan, fmt::format("{}: {}", plan_name(plan), text_of(made_.settings())));
    }
  }
  /// Returns how many rows of groups are named by a number that is bad.
  std::uint64_t bad_rows() const {
    std::uint64_t count = 0;
    for (const judged_group& group : made_.judged()) {
      if (!group.status.is_good()) continue;
      for (std::uint64_t row = group.begin; row < group.end; ++row) {
        count += rows_[row] != -1 && !names_row(rows_[row], before_.rows());
      }
    }
    return count;
  }

 private:
  static std::int64_t difference(const host_matrix& got, const host_matrix& want) {
    const auto at = std::mismatch(got.bytes().begin(), got.bytes().end(), want.bytes().begin()).first;
    return at == got.bytes().end() ? -1 : at - got.bytes().begin();
  }
  static void copy_row(const host_matrix& from, std::uint64_t row, host_matrix& to, std::uint64_t to_row) {
    std::memcpy(&to.bytes()[to.place_of(to_row, 0)], &from.bytes()[from.place_of(row, 0)],
                from.columns() * number_bytes(from.type()));
  }
  /// Returns C before the call: poison, or what the product is added to.
  host_matrix filled_c(std::uint64_t c_rows) const {
    const row_settings& with = made_.settings();
    host_matrix c(made_.c().type(), c_rows, with.c_columns(), with.gap, poison_byte);
    value_source values(with.kind, 35);
    if (with.accumulate) values.fill(c, 0, c_rows);
    return c;
  }
  /// Returns the same content in the product's order of rows.
  host_matrix sorted_c(const target_list& rows) const {
    host_matrix c = made_.c();
    for (std::uint64_t row = 0; row < rows.size(); ++row) {
      if (names_row(rows[row], before_.rows())) copy_row(before_, static_cast<std::uint64_t>(rows[row]), c, row);
    }
    return c;
  }

  row_case made_;
  rows_on_device device_;
  host_matrix before_;
  matrix_on_device c_;
  matrix_on_device sorted_;
  target_list rows_;
  device_array<std::int32_t> index_;
};

std::uint64_t rows_of(const row_settings& with) {
  return row_case(with).rows();
}

/// Compares a product in every plan.
void compare_targets(const row_settings& with) {
  std::mt19937_64 random = tmap::testing::run_random(36);
  const std::uint64_t rows = rows_of(with);
  const std::uint64_t c_rows = rows + 37;
  scattered_product(with, drawn_targets(random, rows, c_rows, false), c_rows).compare_every_plan();
}

class scattered_rows : public gemm_test {};

TEST_F(scattered_rows, of_every_type) {
  for (const operand_type type : {operand_type::bf16, operand_type::f16, operand_type::f8_e4m3}) {
    row_settings with;
    with.type = type;
    with.sizes = plan_sizes;
    with.n = 784;
    with.k = 400;
    compare_targets(with);
    with.c_type = result_type::f32;
    with.n = 268;
    compare_targets(with);
  }
}

TEST_F(scattered_rows, with_block_scales) {
  for (const result_type c_type : {result_type::like_operands, result_type::f32}) {
    row_settings with;
    with.type = operand_type::f8_e4m3;
    with.block_scales = true;
    with.sizes = plan_sizes;
    with.c_type = c_type;
    with.n = 528;
    with.k = 656;
    compare_targets(with);
  }
}

TEST_F(scattered_rows, of_every_number_of_columns) {
  for (const std::uint64_t n : {8, 56, 64, 72, 120, 128, 136, 248, 264, 520}) {
    row_settings with;
    with.sizes = {3, 0, 130, 64, 257};
    with.n = n;
    compare_targets(with);
    with.accumulate = true;
    compare_targets(with);
    with.c_type = result_type::f32;
    with.n = n + 4;
    compare_targets(with);
  }
}

TEST_F(scattered_rows, in_every_format_of_offsets) {
  for (const offset_format format : {offset_format::ends, offset_format::prefix, offset_format::sizes,
                                     offset_format::begins_and_counts, offset_format::slots, offset_format::labels}) {
    for (const std::uint32_t bytes : {4, 8}) {
      row_settings with;
      with.format = format;
      with.offset_bytes = bytes;
      with.sizes = {40, 0, 130, 64, 257, 1};
      compare_targets(with);
    }
  }
}

TEST_F(scattered_rows, with_a_list_of_weights) {
  row_settings with;
  with.lists_b = true;
  with.sizes = {40, 0, 130, 64, 257, 1};
  with.n = 544;
  compare_targets(with);
}

TEST_F(scattered_rows, with_epilogues) {
  for (const operand_type type : {operand_type::bf16, operand_type::f16, operand_type::f8_e4m3}) {
    row_settings with;
    with.type = type;
    with.sizes = {40, 0, 130, 64, 257, 1};
    with.n = 544;
    with.row_scales = true;
    compare_targets(with);
    with.column_scales = with.bias = true;
    compare_targets(with);
    with.accumulate = true;
    compare_targets(with);
    with.c_type = result_type::f32;
    compare_targets(with);
    with.accumulate = false;
    compare_targets(with);
  }
}

TEST_F(scattered_rows, with_gates) {
  for (const gate_columns columns : {gate_columns::halves, gate_columns::interleaved}) {
    for (const result_type c_type : {result_type::like_operands, result_type::f32}) {
      for (const bool accumulate : {false, true}) {
        row_settings with;
        with.sizes = {40, 0, 130, 64, 257, 1};
        with.n = 544;
        with.gates.function = gate_function::silu;
        with.gates.columns = columns;
        with.kept = true;
        with.c_type = c_type;
        with.accumulate = accumulate;
        compare_targets(with);
      }
    }
  }
}

TEST_F(scattered_rows, that_do_not_exist_are_not_stored_but_counted) {
  std::mt19937_64 random = tmap::testing::run_random(37);
  for (const result_type c_type : {result_type::like_operands, result_type::f32}) {
    for (const bool accumulate : {false, true}) {
      row_settings with;
      with.sizes = plan_sizes;
      with.n = 784;
      with.k = 72;
      with.c_type = c_type;
      with.accumulate = accumulate;
      const std::uint64_t rows = rows_of(with);
      const scattered_product made(with, drawn_targets(random, rows, rows, true), rows);
      for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
        ASSERT_TRUE(reset_faults().has_value());
        made.compare(plan, plan_name(plan));
        const result<fault_report> report = faults();
        ASSERT_TRUE(report.has_value());
        EXPECT_EQ(report->groups, made.bad_rows());
        EXPECT_EQ(report->first.call, batch_call::gemm_rows);
        EXPECT_EQ(report->first.bits, static_cast<std::uint64_t>(fault::c_row));
      }
    }
  }
  ASSERT_TRUE(reset_faults().has_value());
}

TEST_F(scattered_rows, of_a_checked_call_make_it_fail) {
  row_settings with;
  with.sizes = {100};
  const std::uint64_t rows = rows_of(with);
  target_list targets(rows);
  std::iota(targets.begin(), targets.end(), 0);
  const scattered_product good(with, targets, rows);
  gemm::run checked = good.with_plan(0);
  checked.check = fault_check::sync;
  EXPECT_TRUE(multiply(good.by_index(), checked).has_value());
  targets[57] = static_cast<std::int32_t>(rows);
  const scattered_product bad(with, targets, rows);
  const result<void> failed = multiply(bad.by_index(), checked);
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, status::bad_items);
  EXPECT_NE(to_string(failed.error()).find("row number 57: c_row"), std::string::npos) << to_string(failed.error());
  ASSERT_TRUE(reset_faults().has_value());
}

/// C has fewer rows than the product, and the last of them ends where its memory may end.
TEST_F(scattered_rows, of_more_rows_than_c) {
  row_settings with;
  with.sizes = {100, 30, 200};
  std::mt19937_64 random = tmap::testing::run_random(38);
  target_list targets = drawn_targets(random, rows_of(with), 7, false);
  std::shuffle(targets.begin(), targets.begin() + 330, random);
  std::replace(targets.begin(), targets.end(), 6, -1);
  targets[299] = 6;
  scattered_product(with, targets, 7).compare_every_plan();
}

/// Each row of C gets two rows of the product, which may come in either order.
TEST_F(scattered_rows, of_which_two_are_added_have_the_same_bits) {
  row_settings with;
  with.sizes = plan_sizes;
  with.n = 784;
  with.k = 136;
  with.c_type = result_type::f32;
  with.row_scales = true;
  const std::uint64_t rows = rows_of(with);
  std::mt19937_64 random = tmap::testing::run_random(39);
  target_list targets(rows);
  for (std::uint64_t row = 0; row < rows; ++row) targets[row] = static_cast<std::int32_t>(row / 2);
  std::shuffle(targets.begin(), targets.end(), random);
  const scattered_product made(with, target_list(rows, -1), rows);
  const host_matrix sorted = made.sorted_results(0);
  host_matrix want(number_type::f32, rows, with.n, with.gap, 0);
  for (const judged_group& group : row_case(with).judged()) {
    for (std::uint64_t row = group.begin; group.status.is_good() && row < group.end; ++row) {
      const auto to = static_cast<std::uint64_t>(targets[row]);
      for (std::uint64_t i = 0; i < with.n; ++i) want.set(to, i, want.at(to, i) + sorted.at(row, i));
    }
  }
  const matrix_on_device c(host_matrix(number_type::f32, rows, with.n, with.gap, 0));
  const device_array<std::int32_t> index(targets);
  row_problem problem = made.by_index();
  problem.c = c.place();
  problem.c_rows = index.data();
  problem.accumulate = true;
  for (std::uint32_t i = 0; i < 30; ++i) {
    c.reset();
    TMAP_ASSERT_OK(multiply(problem, made.with_plan(i % plan_count())));
    EXPECT_EQ(c.download().bytes(), want.bytes()) << "round " << i;
  }
}

TEST_F(scattered_rows, in_a_graph_with_other_rows_each_time) {
  for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
    row_settings with;
    with.sizes = {50, 50, 150, 0, 129};
    with.n = 528;
    std::mt19937_64 random = tmap::testing::run_random(40);
    const std::uint64_t rows = rows_of(with);
    scattered_product made(with, drawn_targets(random, rows, rows, false), rows);
    const tmap::testing::recorded_call graph(
        [&](cudaStream_t stream) { return multiply(made.by_index(), made.device().memory().on(stream, plan)); });
    for (int i = 0; i < 30; ++i) {
      made.name_rows(drawn_targets(random, rows, rows, i % 2 == 1));
      const host_matrix want = made.wanted(plan);
      made.reset();
      graph.replay();
      EXPECT_EQ(made.output().bytes(), want.bytes()) << plan_name(plan) << ", replay " << i;
    }
  }
  ASSERT_TRUE(reset_faults().has_value());
}

/// Staging tiles must not be written while they are read, in any order of the warps.
TEST_F(scattered_rows, have_the_same_bits_many_times) {
  row_settings with;
  with.sizes = plan_sizes;
  with.n = 800;
  with.k = 136;
  with.gates.function = gate_function::silu;
  with.kept = true;
  std::mt19937_64 random = tmap::testing::run_random(41);
  const std::uint64_t rows = rows_of(with);
  const scattered_product made(with, drawn_targets(random, rows, rows, false), rows);
  const host_matrix want = made.wanted(0);
  const host_matrix want_kept = made.device().kept();
  for (std::uint32_t i = 0; i < 300; ++i) {
    if (i % 30 == 0) made.reset();
    TMAP_ASSERT_OK(multiply(made.by_index(), made.with_plan(i % plan_count())));
    if (i % 30 != 29) continue;
    EXPECT_EQ(made.output().bytes(), want.bytes()) << "round " << i;
    EXPECT_EQ(made.device().kept().bytes(), want_kept.bytes()) << "round " << i;
  }
}

}  // namespace
}  // namespace tmap::gemm::testing
