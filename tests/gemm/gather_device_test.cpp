// SPDX-License-Identifier: Apache-2.0
// Compares products whose rows of A are named by an index with products of a gathered copy of A.
// They must be the same bits. Memory around A, in the gaps of its rows and around C is poisoned.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <tmap/faults.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "device/recorded_call.hpp"
#include "gemm/row_runs.hpp"
#include "support/run_seed.hpp"

namespace tmap::gemm::testing {
namespace {

using row_list = std::vector<std::int32_t>;

bool is_row(std::int32_t row, std::uint64_t count) {
  return row >= 0 && static_cast<std::uint64_t>(row) < count;
}

/// Draws the row of A of each row: any, the one before once more, none, or one that A does not
/// have.
row_list drawn_rows(std::mt19937_64& random, std::uint64_t count, bool has_bad) {
  const std::int32_t bad[] = {-2, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max(),
                              static_cast<std::int32_t>(count)};
  row_list rows;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t kind = random() % 16;
    if (kind == 0) {
      rows.push_back(-1);
    } else if (kind == 1 && has_bad) {
      rows.push_back(bad[random() % std::size(bad)]);
    } else if (kind < 4 && i != 0) {
      rows.push_back(rows.back());
    } else {
      rows.push_back(static_cast<std::int32_t>(random() % count));
    }
  }
  return rows;
}

/// Returns A with the rows in the order of the index.
host_matrix gathered(const host_matrix& a, const row_list& rows) {
  host_matrix copy = a;
  const auto row_bytes = static_cast<std::ptrdiff_t>(a.columns() * number_bytes(a.type()));
  for (std::uint64_t i = 0; i < rows.size(); ++i) {
    const auto to = copy.bytes().begin() + static_cast<std::ptrdiff_t>(copy.place_of(i, 0));
    if (is_row(rows[i], a.rows())) {
      const auto row = static_cast<std::uint64_t>(rows[i]);
      std::copy_n(a.bytes().begin() + static_cast<std::ptrdiff_t>(a.place_of(row, 0)), row_bytes, to);
    } else {
      std::fill_n(to, row_bytes, static_cast<unsigned char>(0));
    }
  }
  return copy;
}

row_settings filled(row_settings with) {
  with.fills_gaps = true;
  with.row_scale_stride = with.row_scales ? 3 : 1;
  return with;
}

/// Holds a product of rows by index, and the same product of a gathered copy.
class gathered_product {
 public:
  gathered_product(const row_settings& with, const row_list& rows)
      : made_(filled(with)), device_(made_), rows_(rows), index_(rows), copy_(gathered(made_.a(), rows)) {
    if (with.c_type == result_type::f8_e4m3) {
      const std::uint64_t blocks = (made_.settings().c_columns() + scaled_results - 1) / scaled_results;
      scales_ = std::vector<float>(made_.rows() * blocks, -1);
      scales_on_device_.emplace(scales_);
      device_.set_scales({scales_on_device_->data(), blocks, 1, false});
    }
    const std::uint64_t stride = made_.settings().row_scale_stride;
    std::vector<float> factors = made_.row_scales();
    for (std::uint64_t i = 0; i < rows.size(); ++i) {
      const bool has_row = is_row(rows[i], made_.rows());
      factors[i * stride] = has_row ? made_.row_scales()[static_cast<std::uint64_t>(rows[i]) * stride] : 1;
    }
    factors_.emplace(factors);
  }

  std::uint64_t rows() const { return made_.rows(); }
  const row_case& made() const { return made_; }
  const rows_on_device& device() const { return device_; }
  void reset() const {
    device_.reset_output();
    device_.reset_kept();
    if (scales_on_device_) scales_on_device_->upload(scales_);
  }

  row_problem by_index() const {
    row_problem problem = device_.problem();
    problem.a_rows = index_.data();
    problem.a_row_count = made_.rows();
    return problem;
  }
  row_problem of_copy() const {
    row_problem problem = device_.problem();
    problem.a = copy_.place();
    if (problem.epilogue.row_scales != nullptr) problem.epilogue.row_scales = factors_->data();
    return problem;
  }
  gemm::run with_plan(std::uint32_t plan) const { return device_.memory().on(nullptr, plan); }
  void name_rows(const row_list& rows) {
    rows_ = rows;
    index_.upload(rows);
    host_matrix a = gathered(made_.a(), rows);
    copy_.upload(a);
  }

  void compare(std::uint32_t plan, const std::string& what) const {
    reset();
    TMAP_ASSERT_OK(multiply(of_copy(), with_plan(plan)));
    const host_matrix want = device_.output();
    const host_matrix want_kept = device_.kept();
    const std::vector<float> want_scales = scales();
    reset();
    TMAP_ASSERT_OK(multiply(by_index(), with_plan(plan)));
    EXPECT_EQ(first_difference(device_.output(), want), -1) << what;
    EXPECT_EQ(first_difference(device_.kept(), want_kept), -1) << what << ", kept";
    EXPECT_EQ(scales(), want_scales) << what;
    EXPECT_NE(first_difference(want, made_.c()), -1) << what << ": nothing was computed";
    device_.memory().expect(made_.judged());
  }
  void compare_every_plan() const {
    for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
      if (!is_legal(plan)) continue;
      compare(plan, fmt::format("{}: {}", plan_name(plan), text_of(made_.settings())));
    }
  }
  /// Returns how many rows of groups are named by a number that is bad.
  std::uint64_t bad_rows() const {
    std::uint64_t count = 0;
    for (const judged_group& group : made_.judged()) {
      if (!group.status.is_good()) continue;
      for (std::uint64_t row = group.begin; row < group.end; ++row) {
        count += rows_[row] != -1 && !is_row(rows_[row], made_.rows());
      }
    }
    return count;
  }

 private:
  static std::int64_t first_difference(const host_matrix& got, const host_matrix& want) {
    const auto at = std::mismatch(got.bytes().begin(), got.bytes().end(), want.bytes().begin()).first;
    return at == got.bytes().end() ? -1 : at - got.bytes().begin();
  }
  std::vector<float> scales() const { return scales_on_device_ ? scales_on_device_->download() : std::vector<float>(); }
  /// With gates, results of f8_e4m3 that share a scale belong to one warp in paired tiles only.
  bool is_legal(std::uint32_t plan) const {
    const row_settings& with = made_.settings();
    return with.c_type != result_type::f8_e4m3 || !with.has_gates() || plan == 0;
  }

  row_case made_;
  rows_on_device device_;
  row_list rows_;
  device_array<std::int32_t> index_;
  matrix_on_device copy_;
  std::vector<float> scales_;
  std::optional<device_array<float>> scales_on_device_;
  std::optional<device_array<float>> factors_;
};

/// Compares a product in every plan.
void compare(const row_settings& with, bool has_bad = false) {
  std::mt19937_64 random = tmap::testing::run_random(31);
  const std::uint64_t rows = row_case(with).rows();
  gathered_product(with, drawn_rows(random, rows, has_bad)).compare_every_plan();
}

class gathered_rows : public gemm_test {};

TEST_F(gathered_rows, of_every_type_and_order) {
  for (const operand_type type : {operand_type::bf16, operand_type::f16, operand_type::f8_e4m3}) {
    for (const b_layout layout : {b_layout::n_by_k, b_layout::k_by_n}) {
      if (type == operand_type::f8_e4m3 && layout == b_layout::k_by_n) continue;
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
