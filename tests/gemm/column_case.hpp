// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/grouped_gemm.hpp>

#include <cstdint>
#include <utility>
#include <vector>

#include "gemm/group_rows.hpp"
#include "gemm/host_matrix.hpp"
#include "gemm/product_reference.hpp"

// Makes products with groups of columns: the operands in host memory, and the expected results.

namespace tmap::gemm::testing {

struct column_settings {
  operand_type type{operand_type::bf16};
  input_kind kind{input_kind::normal};
  gemm::a_layout a_layout{};
  gemm::b_layout b_layout{};
  offset_format format{offset_format::ends};
  std::uint32_t offset_bytes{4};
  std::vector<std::int64_t> sizes{};
  std::uint64_t spare_columns{70};
  std::uint64_t m{200};
  std::uint64_t k{192};
  std::uint64_t gap{16};    ///< elements between lines
  std::uint64_t number{1};  ///< selects the values that it draws

  std::uint32_t groups() const { return static_cast<std::uint32_t>(sizes.size()); }
};

/// This many lines follow each group's part of A and belong to no group.
inline constexpr std::uint64_t a_gap_lines = 3;

class column_case {
 public:
  explicit column_case(column_settings with)
      : with_(std::move(with)),
        places_(places_of(with_.sizes, with_.format)),
        columns_(places_.rows + with_.spare_columns),
        offsets_(offsets_of(with_.sizes, with_.format, columns_)) {
    value_source values(with_.kind, with_.number);
    const std::uint64_t gap = with_.gap + (16 - columns_ % 16) % 16;
    const std::uint64_t a_gap = with_.gap + (by_m() ? 0 : (8 - with_.m % 8) % 8);
    a_ = host_matrix(with_.type, with_.groups() * a_group_lines(), by_m() ? with_.k : with_.m, a_gap, nan_byte);
    for (std::uint64_t g = 0; g < with_.groups(); ++g) {
      values.fill(a_, g * a_group_lines(), (g + 1) * a_group_lines() - a_gap_lines);
    }
    const bool b_is_along = with_.b_layout == b_layout::n_by_k;
    b_ = stored_operand(with_.type, b_is_along, columns_, with_.k, with_.gap);
    for (std::uint32_t g = 0; g < with_.groups(); ++g) {
      b_.fill(values, static_cast<std::uint64_t>(places_.begins[g]), static_cast<std::uint64_t>(with_.sizes[g]));
    }
    c_ = host_matrix(output_of(with_.type), with_.m, columns_, gap, poison_byte);
  }

  const column_settings& settings() const { return with_; }
  std::uint64_t columns() const { return columns_; }
  std::uint64_t slot_rows() const { return places_.slot_rows; }
  std::uint64_t a_group_lines() const { return (by_m() ? with_.m : with_.k) + a_gap_lines; }
  const host_matrix& a() const { return a_; }
  const host_matrix& b() const { return b_.matrix(); }
  const host_matrix& c() const { return c_; }
  const std::vector<std::int64_t>& offsets() const { return offsets_; }
  void set_offsets(std::vector<std::int64_t> values) { offsets_ = std::move(values); }
  std::vector<judged_group> judged() const {
    const bool runs_along = with_.b_layout == b_layout::k_by_n;
    return judge({offsets_, with_.format, with_.groups(), columns_, places_.slot_rows, true, runs_along ? 8u : 1u});
  }

  expected_output expected() const {
    expected_output all(c_);
    const std::vector<judged_group> groups = judged();
    for (std::uint32_t g = 0; g < groups.size(); ++g) {
      if (groups[g].status.is_good()) expect_group(all, g, groups[g]);
    }
    return all;
  }

 private:
  bool by_m() const { return with_.a_layout == a_layout::m_by_k; }

  void expect_group(expected_output& all, std::uint32_t g, const judged_group& group) const {
    operands of{with_.m, group.end - group.begin, with_.k, {}, {}};
    const std::uint64_t first = g * a_group_lines();
    for (std::uint64_t row = 0; row < of.m; ++row) {
      for (std::uint64_t i = 0; i < of.k; ++i) of.a.push_back(by_m() ? a_.at(first + row, i) : a_.at(first + i, row));
    }
    for (std::uint64_t column = group.begin; column < group.end; ++column) {
      for (std::uint64_t i = 0; i < of.k; ++i) of.b.push_back(b_.at(column, i));
    }
    for_rows(of, [&](std::uint64_t row) {
      for (std::uint64_t i = 0; i < of.n; ++i) all.expect(row, group.begin + i, dot(of, with_.type, row, i));
    });
  }

  column_settings with_;
  group_places places_;
  std::uint64_t columns_{};
  std::vector<std::int64_t> offsets_;
  host_matrix a_;
  stored_operand b_;
  host_matrix c_;
};

}  // namespace tmap::gemm::testing
