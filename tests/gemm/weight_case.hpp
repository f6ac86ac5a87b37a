// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/grouped_gemm.hpp>

#include <cstdint>
#include <utility>
#include <vector>

#include "gemm/group_rows.hpp"
#include "gemm/host_matrix.hpp"
#include "gemm/product_reference.hpp"

// Makes products that sum over groups of rows: the operands in host memory, and the expected
// results.

namespace tmap::gemm::testing {

struct weight_settings {
  operand_type type{operand_type::bf16};
  input_kind kind{input_kind::normal};
  gemm::a_layout a_layout{gemm::a_layout::k_by_m};
  gemm::b_layout b_layout{gemm::b_layout::k_by_n};
  bool lists_c{};  ///< C by addresses
  result_type c_type{};
  bool accumulate{};
  offset_format format{offset_format::ends};
  std::uint32_t offset_bytes{4};
  std::vector<std::int64_t> sizes{};
  std::uint64_t spare_rows{70};
  std::uint64_t m{200};
  std::uint64_t n{264};
  std::uint64_t gap{16};
  std::uint64_t number{1};  ///< selects the values that it draws

  std::uint32_t groups() const { return static_cast<std::uint32_t>(sizes.size()); }
  std::uint64_t used_rows() const { return sum_of(sizes); }
};

/// This many rows follow each group's part of C and belong to no group.
inline constexpr std::uint64_t c_gap_rows = 3;

class weight_case {
 public:
  explicit weight_case(weight_settings with) : with_(std::move(with)), places_(places_of(with_.sizes, with_.format)) {
    value_source values(with_.kind, with_.number);
    rows_ = places_.rows + with_.spare_rows;
    offsets_ = offsets_of(with_.sizes, with_.format, rows_);
    const std::uint64_t gap = with_.gap + (16 - rows_ % 16) % 16;
    const bool a_is_along = with_.a_layout == a_layout::m_by_k;
    const bool b_is_along = with_.b_layout == b_layout::n_by_k;
    a_ = stored_operand(with_.type, a_is_along, with_.m, rows_, a_is_along ? gap : with_.gap);
    b_ = stored_operand(with_.type, b_is_along, with_.n, rows_, b_is_along ? gap : with_.gap);
    for (std::uint32_t g = 0; g < with_.groups(); ++g) {
      const auto begin = static_cast<std::uint64_t>(places_.begins[g]);
      const auto size = static_cast<std::uint64_t>(with_.sizes[g]);
      a_.fill_k(values, begin, size);
      b_.fill_k(values, begin, size);
    }
    c_ = host_matrix(output_of(with_.type, with_.c_type), with_.groups() * c_group_rows(), with_.n, with_.gap,
                     poison_byte);
    if (with_.accumulate) values.fill(c_, 0, c_.rows());
  }

  const weight_settings& settings() const { return with_; }
  std::uint64_t rows() const { return rows_; }
  std::uint64_t c_group_rows() const { return with_.m + c_gap_rows; }
  const host_matrix& a() const { return a_.matrix(); }
  const host_matrix& b() const { return b_.matrix(); }
  const host_matrix& c() const { return c_; }
  const std::vector<std::int64_t>& offsets() const { return offsets_; }
  void set_offsets(std::vector<std::int64_t> values) { offsets_ = std::move(values); }
  std::uint64_t slot_rows() const { return places_.slot_rows; }
  std::vector<judged_group> judged() const {
    const bool runs_along = with_.a_layout == a_layout::m_by_k || with_.b_layout == b_layout::n_by_k;
    return judge({offsets_, with_.format, with_.groups(), rows_, places_.slot_rows, false, runs_along ? 8u : 1u});
  }

  expected_output expected() const {
    expected_output all(c_);
    const std::vector<judged_group> groups = judged();
    for (std::uint32_t g = 0; g < groups.size(); ++g) {
      if (!groups[g].status.is_bad()) expect_group(all, g, groups[g]);
    }
    return all;
  }

 private:
  static std::vector<float> lines_of(const stored_operand& from, std::uint64_t count, const judged_group& group) {
    std::vector<float> lines;
    for (std::uint64_t line = 0; line < count; ++line) {
      for (std::uint64_t row = group.begin; row < group.end; ++row) lines.push_back(from.at(line, row));
    }
    return lines;
  }

  void expect_group(expected_output& all, std::uint32_t g, const judged_group& group) const {
    const operands of{with_.m, with_.n, group.end - group.begin, lines_of(a_, with_.m, group),
                      lines_of(b_, with_.n, group)};
    for_rows(of, [&](std::uint64_t i) {
      const std::uint64_t row = g * c_group_rows() + i;
      for (std::uint64_t column = 0; column < of.n; ++column) {
        bounded sum = dot(of, with_.type, i, column);
        if (with_.accumulate) sum = plus(sum, {c_.at(row, column)});
        all.expect(row, column, sum);
      }
    });
  }

  weight_settings with_;
  group_places places_;
  std::vector<std::int64_t> offsets_;
  std::uint64_t rows_{};
  stored_operand a_;
  stored_operand b_;
  host_matrix c_;
};

}  // namespace tmap::gemm::testing
