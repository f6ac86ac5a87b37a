// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/grouped_gemm.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "gemm/group_rows.hpp"
#include "gemm/host_matrix.hpp"
#include "gemm/product_reference.hpp"

// Makes products with groups of rows: the operands in host memory, and the expected results.

namespace tmap::gemm::testing {

struct row_settings {
  operand_type type{operand_type::bf16};
  input_kind kind{input_kind::normal};
  gemm::a_layout a_layout{};
  gemm::b_layout b_layout{};
  bool lists_b{};     ///< B by addresses
  bool lists_c{};     ///< C by addresses
  bool fills_gaps{};  ///< rows of A that belong to no group have values, too
  result_type c_type{};
  bool accumulate{};
  bool zero_rest{};
  bool bias{};
  gate gates{};
  bool kept{};  ///< the gate keeps its sums
  bool fast_accumulation{};
  bool block_scales{};
  bool turned_scales{};  ///< scales of the same elements of K follow each other
  bool row_scales{};
  std::uint64_t row_scale_stride{1};
  bool column_scales{};
  offset_format format{offset_format::ends};
  std::uint32_t offset_bytes{4};
  std::vector<std::int64_t> sizes{};
  std::uint64_t spare_rows{70};  ///< rows after the last group
  std::uint64_t n{256};
  std::uint64_t k{192};
  std::uint64_t gap{16};    ///< elements between rows
  std::uint64_t number{1};  ///< selects the values that it draws

  std::uint32_t groups() const { return static_cast<std::uint32_t>(sizes.size()); }
  bool has_gates() const { return gates.function != gate_function::none && !gates.backward; }
  bool is_backward() const { return gates.function != gate_function::none && gates.backward; }
  std::uint64_t c_columns() const { return has_gates() ? n / 2 : is_backward() ? 2 * n : n; }
  std::uint64_t kept_columns() const { return is_backward() ? 2 * n : n; }
  bool is_interleaved() const { return gates.columns == gate_columns::interleaved; }
  /// Columns of B, or of what was kept, that are gate and value of result `column`.
  std::uint64_t gate_column(std::uint64_t column) const { return is_interleaved() ? 2 * column : column; }
  std::uint64_t value_column(std::uint64_t column) const {
    return is_interleaved() ? 2 * column + 1 : column + kept_columns() / 2;
  }
  std::uint64_t used_rows() const { return sum_of(sizes); }
};

/// Holds the scales of an operand, with gaps that are NaN.
class scale_case {
 public:
  scale_case() = default;
  scale_case(std::uint32_t line_count, std::uint64_t lines, std::uint64_t blocks, std::uint64_t groups, bool is_turned,
             value_source& values) {
    constexpr std::uint64_t gap = 3;
    const std::uint64_t used = (lines + line_count - 1) / line_count;
    place_.lines = line_count;
    place_.line_stride = is_turned ? 1 : blocks + gap;
    place_.k_stride = is_turned ? used + gap : 1;
    place_.group_stride = groups == 0 ? 0 : (used + gap) * (blocks + gap);
    values_.assign((used + gap) * (blocks + gap) * std::max<std::uint64_t>(groups, 1), std::nanf(""));
    for (std::uint64_t g = 0; g < std::max<std::uint64_t>(groups, 1); ++g) {
      for (std::uint64_t line = 0; line < used; ++line) {
        for (std::uint64_t block = 0; block < blocks; ++block) {
          values_[index_of(g, line * line_count, block)] = values.next_scale();
        }
      }
    }
  }

  float at(std::uint64_t group, std::uint64_t line, std::uint64_t block) const {
    return values_[index_of(group, line, block)];
  }
  void set(std::uint64_t group, std::uint64_t line, std::uint64_t block, float value) {
    values_[index_of(group, line, block)] = value;
  }
  const std::vector<float>& values() const { return values_; }
  block_scales placed(const float* values) const {
    block_scales made = place_;
    made.values = values;
    return made;
  }

 private:
  std::uint64_t index_of(std::uint64_t group, std::uint64_t line, std::uint64_t block) const {
    return group * place_.group_stride + line / place_.lines * place_.line_stride + block * place_.k_stride;
  }

  block_scales place_;
  std::vector<float> values_;
};

/// This many rows follow each group's part of B and belong to no group.
inline constexpr std::uint64_t b_gap_rows = 3;

class row_case {
 public:
  explicit row_case(row_settings with) : with_(std::move(with)), places_(places_of(with_.sizes, with_.format)) {
    value_source values(with_.kind, with_.number);
    rows_ = places_.rows + with_.spare_rows;
    offsets_ = offsets_of(with_.sizes, with_.format, rows_);
    a_ = stored_operand(with_.type, by_m(), rows_, with_.k, with_.gap);
    if (with_.fills_gaps) a_.fill(values, 0, rows_);
    for (std::uint32_t g = 0; g < with_.groups(); ++g) {
      a_.fill(values, static_cast<std::uint64_t>(places_.begins[g]), static_cast<std::uint64_t>(with_.sizes[g]));
    }
    b_ = host_matrix(with_.type, with_.groups() * b_group_rows(), by_n() ? with_.k : with_.n, with_.gap, nan_byte);
    for (std::uint64_t g = 0; g < with_.groups(); ++g) {
      values.fill(b_, g * b_group_rows(), (g + 1) * b_group_rows() - b_gap_rows);
    }
    c_ = host_matrix(output_of(with_.type, with_.c_type), rows_, with_.c_columns(), with_.gap, poison_byte);
    if (with_.accumulate) values.fill(c_, 0, rows_);
    bias_ = host_matrix(output_of(with_.type), with_.groups(), with_.n, 0, nan_byte);
    values.fill(bias_, 0, with_.groups());
    for (std::uint64_t i = 0; i < rows_ * with_.row_scale_stride; ++i) row_scales_.push_back(values.next_scale());
    for (std::uint64_t i = 0; i < with_.groups() * with_.n; ++i) column_scales_.push_back(values.next_scale());
    const std::uint64_t blocks = (with_.k + scaled_elements - 1) / scaled_elements;
    a_scales_ = scale_case(1, rows_, blocks, 0, with_.turned_scales, values);
    b_scales_ = scale_case(scaled_columns, with_.n, blocks, with_.groups(), with_.turned_scales, values);
    kept_ = host_matrix(output_of(with_.type), rows_, with_.kept_columns(), with_.gap, poison_byte);
    if (with_.is_backward()) values.fill(kept_, 0, rows_);
  }

  const row_settings& settings() const { return with_; }
  std::uint64_t rows() const { return rows_; }
  std::uint64_t b_group_rows() const { return (by_n() ? with_.n : with_.k) + b_gap_rows; }
  const host_matrix& a() const { return a_.matrix(); }
  const host_matrix& b() const { return b_; }
  const host_matrix& c() const { return c_; }
  const host_matrix& bias() const { return bias_; }
  const host_matrix& kept() const { return kept_; }
  const std::vector<float>& row_scales() const { return row_scales_; }
  const std::vector<float>& column_scales() const { return column_scales_; }
  const std::vector<std::int64_t>& offsets() const { return offsets_; }
  const scale_case& a_scales() const { return a_scales_; }
  const scale_case& b_scales() const { return b_scales_; }
  scale_case& a_scales() { return a_scales_; }
  scale_case& b_scales() { return b_scales_; }

  /// Sets other groups of the same rows, as raw values of the offset array, which may be hostile.
  void set_offsets(std::vector<std::int64_t> values) { offsets_ = std::move(values); }

  std::uint64_t slot_rows() const { return places_.slot_rows; }
  std::vector<judged_group> judged() const {
    return judge({offsets_, with_.format, with_.groups(), rows_, places_.slot_rows, !with_.lists_c, by_m() ? 1u : 8u});
  }

  expected_output expected() const {
    expected_output all(c_);
    if (with_.zero_rest) expect_zeros(all);
    const std::vector<judged_group> groups = judged();
    for (std::uint32_t g = 0; g < groups.size(); ++g) {
      if (groups[g].status.is_good()) expect_group(all, g, groups[g]);
    }
    return all;
  }

 private:
  bool by_m() const { return with_.a_layout == a_layout::m_by_k; }
  bool by_n() const { return with_.b_layout == b_layout::n_by_k; }

  void expect_zeros(expected_output& all) const {
    for (std::uint64_t row = 0; row < rows_; ++row) {
      for (std::uint64_t column = 0; column < with_.c_columns(); ++column) all.expect(row, column, {0});
    }
  }

  operands operands_of(std::uint32_t g, const judged_group& group) const {
    operands of{group.end - group.begin, with_.n, with_.k, {}, {}};
    for (std::uint64_t row = group.begin; row < group.end; ++row) {
      for (std::uint64_t i = 0; i < of.k; ++i) of.a.push_back(a_.at(row, i));
    }
    const std::uint64_t first = g * b_group_rows();
    for (std::uint64_t column = 0; column < of.n; ++column) {
      for (std::uint64_t i = 0; i < of.k; ++i) {
        of.b.push_back(by_n() ? b_.at(first + column, i) : b_.at(first + i, column));
      }
    }
    return of;
  }

  bounded scaled_dot(const operands& of, std::uint32_t g, std::uint64_t begin, std::uint64_t i,
                     std::uint64_t column) const {
    return dot(of, with_.type, i, column, true, [&](bounded part, std::uint64_t block) {
      return scaled_by(part, a_scales_.at(0, begin + i, block) * b_scales_.at(g, column, block));
    });
  }

  /// Returns the sum of a column of B, with factors and bias.
  bounded sum_of(const operands& of, std::uint32_t g, std::uint64_t begin, std::uint64_t i,
                 std::uint64_t column) const {
    bounded sum = with_.block_scales ? scaled_dot(of, g, begin, i, column)
                                     : dot(of, with_.type, i, column, with_.fast_accumulation);
    if (with_.row_scales) sum = scaled_by(sum, row_scales_[(begin + i) * with_.row_scale_stride]);
    if (with_.column_scales) sum = scaled_by(sum, column_scales_[g * with_.n + column]);
    return with_.bias ? plus(sum, {bias_.at(g, column)}) : sum;
  }

  void expect_group(expected_output& all, std::uint32_t g, const judged_group& group) const {
    const operands of = operands_of(g, group);
    const auto sum = [&](std::uint64_t i, std::uint64_t column) { return sum_of(of, g, group.begin, i, column); };
    for_rows(of, [&](std::uint64_t i) {
      const std::uint64_t row = group.begin + i;
      if (with_.is_backward()) return expect_gradients(all, row, [&](std::uint64_t column) { return sum(i, column); });
      for (std::uint64_t column = 0; column < with_.c_columns(); ++column) {
        bounded result = with_.has_gates()
                             ? gated(sum(i, with_.gate_column(column)), sum(i, with_.value_column(column)), with_.gates)
                             : sum(i, column);
        if (with_.accumulate) result = plus(result, {c_.at(row, column)});
        all.expect(row, column, result);
      }
    });
  }

  template <class Sum>
  void expect_gradients(expected_output& all, std::uint64_t row, const Sum& sum) const {
    for (std::uint64_t column = 0; column < with_.n; ++column) {
      const std::uint64_t of_gate = with_.gate_column(column);
      const std::uint64_t of_value = with_.value_column(column);
      const gate_gradients made =
          differentiated(sum(column), kept_.at(row, of_gate), kept_.at(row, of_value), with_.gates);
      all.expect(row, of_gate, made.of_gate);
      all.expect(row, of_value, made.of_value);
    }
  }

  row_settings with_;
  group_places places_;
  std::vector<std::int64_t> offsets_;
  std::uint64_t rows_{};
  stored_operand a_;
  host_matrix b_;
  host_matrix c_;
  host_matrix bias_;
  host_matrix kept_;
  std::vector<float> row_scales_;
  std::vector<float> column_scales_;
  scale_case a_scales_;
  scale_case b_scales_;
};

}  // namespace tmap::gemm::testing
