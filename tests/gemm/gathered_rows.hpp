// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compares products whose rows of A are named by an index with products of a gathered copy of A.
// They must be the same bits. Memory around A, in the gaps of its rows and around C is poisoned.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "gemm/row_runs.hpp"
#include "support/run_seed.hpp"

namespace tmap::gemm::testing {

using row_list = std::vector<std::int32_t>;

inline bool is_row(std::int32_t row, std::uint64_t count) {
  return row >= 0 && static_cast<std::uint64_t>(row) < count;
}

/// Draws the row of A of each row: any, the one before once more, none, or one that A does not
/// have.
inline row_list drawn_rows(std::mt19937_64& random, std::uint64_t count, bool has_bad) {
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
inline host_matrix gathered(const host_matrix& a, const row_list& rows) {
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

/// Returns the scales of A in the order of the index. Rows of zeros have scales of 1.
inline scale_case gathered_scales(const row_case& made, const row_list& rows) {
  scale_case copy = made.a_scales();
  const std::uint64_t blocks = (made.settings().k + scaled_elements - 1) / scaled_elements;
  for (std::uint64_t i = 0; i < rows.size(); ++i) {
    const bool has_row = is_row(rows[i], made.rows());
    for (std::uint64_t block = 0; block < blocks; ++block) {
      copy.set(0, i, block, has_row ? made.a_scales().at(0, static_cast<std::uint64_t>(rows[i]), block) : 1);
    }
  }
  return copy;
}

inline row_settings filled(row_settings with) {
  with.fills_gaps = true;
  with.row_scale_stride = with.row_scales ? 3 : 1;
  return with;
}

/// Holds a product of rows by index, and the same product of a gathered copy.
class gathered_product {
 public:
  gathered_product(const row_settings& with, const row_list& rows) : gathered_product(row_case(filled(with)), rows) {}
  gathered_product(const row_case& made, const row_list& rows)
      : made_(made),
        device_(made_),
        rows_(rows),
        index_(rows),
        copy_(gathered(made_.a(), rows)),
        block_scales_(gathered_scales(made_, rows).values()) {
    const row_settings& with = made_.settings();
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
    if (problem.a_scales.values != nullptr) problem.a_scales.values = block_scales_.data();
    return problem;
  }
  gemm::run with_plan(std::uint32_t plan) const { return device_.memory().on(nullptr, plan); }
  void name_rows(const row_list& rows) {
    rows_ = rows;
    index_.upload(rows);
    host_matrix a = gathered(made_.a(), rows);
    copy_.upload(a);
    block_scales_.upload(gathered_scales(made_, rows).values());
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
  device_array<float> block_scales_;
  std::vector<float> scales_;
  std::optional<device_array<float>> scales_on_device_;
  std::optional<device_array<float>> factors_;
};

/// Compares a product in every plan.
inline void compare(const row_settings& with, bool has_bad = false) {
  std::mt19937_64 random = tmap::testing::run_random(31);
  const std::uint64_t rows = row_case(with).rows();
  gathered_product(with, drawn_rows(random, rows, has_bad)).compare_every_plan();
}

class gathered_rows : public gemm_test {};

}  // namespace tmap::gemm::testing
