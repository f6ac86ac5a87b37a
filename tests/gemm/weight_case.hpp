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
  bool zero_rest{};
  /// Of 8 bits. The scales of a line follow each other, not those of neighbouring lines. B cannot.
  bool lines_of_a_scales{};
  bool joined_scales{};  ///< all groups begin at multiples of 128, and no stride keeps them apart
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
  /// Groups begin at multiples of it where lines of an operand run along the rows.
  std::int64_t begin_unit() const {
    const bool runs_along = a_layout == gemm::a_layout::m_by_k || b_layout == gemm::b_layout::n_by_k;
    return runs_along ? 16 / operand_bytes(type) : 1;
  }
};

/// Returns settings of 8 bits, with groups that begin at multiples of 16 rows.
inline weight_settings eight_bit_weights(operand_type type, const std::vector<std::int64_t>& sizes) {
  weight_settings with;
  with.type = type;
  with.a_layout = a_layout::m_by_k;
  with.b_layout = b_layout::n_by_k;
  with.sizes = aligned_sizes(sizes, with.begin_unit());
  if (!sizes.empty()) with.sizes.back() = sizes.back();
  return with;
}

/// Holds the scales of one operand of sums over rows, with gaps that are NaN.
class line_scale_case {
 public:
  line_scale_case() = default;
  line_scale_case(std::uint64_t lines, std::uint64_t blocks, bool lines_are_whole, bool is_joined,
                  value_source& values) {
    constexpr std::uint64_t gap = 3;
    place_.line_stride = lines_are_whole ? blocks + gap : 1;
    place_.k_stride = lines_are_whole ? 1 : lines + gap;
    place_.group_stride = is_joined ? 0 : place_.k_stride;
    values_.assign(lines_are_whole ? lines * (blocks + gap) : blocks * (lines + gap), std::nanf(""));
    for (std::uint64_t line = 0; line < lines; ++line) {
      for (std::uint64_t block = 0; block < blocks; ++block) {
        values_[line * place_.line_stride + block * place_.k_stride] = values.next_scale();
      }
    }
  }

  /// The scale of a line, of block `block` of a group that begins at row `begin`.
  float at(std::uint64_t group, std::uint64_t begin, std::uint64_t line, std::uint64_t block) const {
    return values_[index_of(group, begin, line, block)];
  }
  void set(std::uint64_t group, std::uint64_t begin, std::uint64_t line, std::uint64_t block, float value) {
    values_[index_of(group, begin, line, block)] = value;
  }
  const std::vector<float>& values() const { return values_; }
  block_scales placed(const float* values) const {
    block_scales made = place_;
    made.values = values;
    return made;
  }

 private:
  std::uint64_t index_of(std::uint64_t group, std::uint64_t begin, std::uint64_t line, std::uint64_t block) const {
    return line * place_.line_stride + (begin / scaled_elements + block) * place_.k_stride +
           group * place_.group_stride;
  }

  block_scales place_;
  std::vector<float> values_;
};

/// This many rows follow each group's part of C and belong to no group.
inline constexpr std::uint64_t c_gap_rows = 3;

class weight_case {
 public:
  explicit weight_case(weight_settings with)
      : with_(std::move(with)), places_(places_of(with_.sizes, with_.format, gap_of(with_))) {
    value_source values(with_.kind, with_.number);
    rows_ = places_.rows + with_.spare_rows;
    offsets_ = offsets_of(with_.sizes, with_.format, rows_, gap_of(with_));
    const std::uint64_t gap = with_.gap + (16 - rows_ % 16) % 16;
    const bool a_is_along = with_.a_layout == a_layout::m_by_k;
    const bool b_is_along = with_.b_layout == b_layout::n_by_k;
    a_ = stored_operand(with_.type, a_is_along, with_.m, rows_, a_is_along ? gap : with_.gap);
    const operand_type of_b = has_8_bits(with_.type) ? operand_type::f8_e4m3 : with_.type;
    b_ = stored_operand(of_b, b_is_along, with_.n, rows_, b_is_along ? gap : with_.gap);
    for (std::uint32_t g = 0; g < with_.groups(); ++g) {
      const auto begin = static_cast<std::uint64_t>(places_.begins[g]);
      const auto size = static_cast<std::uint64_t>(with_.sizes[g]);
      a_.fill_k(values, begin, size);
      b_.fill_k(values, begin, size);
    }
    c_ = host_matrix(output_of(with_.type, with_.c_type), with_.groups() * c_group_rows(), with_.n, with_.gap,
                     poison_byte);
    if (with_.accumulate) values.fill(c_, 0, c_.rows());
    if (!has_8_bits(with_.type)) return;
    const std::uint64_t blocks = rows_ / scaled_elements + with_.groups();
    a_scales_ = line_scale_case(with_.m, blocks, with_.lines_of_a_scales, with_.joined_scales, values);
    b_scales_ = line_scale_case(with_.n, blocks, false, with_.joined_scales, values);
  }

  const weight_settings& settings() const { return with_; }
  std::uint64_t rows() const { return rows_; }
  std::uint64_t c_group_rows() const { return with_.m + c_gap_rows; }
  const host_matrix& a() const { return a_.matrix(); }
  const host_matrix& b() const { return b_.matrix(); }
  const host_matrix& c() const { return c_; }
  const std::vector<std::int64_t>& offsets() const { return offsets_; }
  const line_scale_case& a_scales() const { return a_scales_; }
  const line_scale_case& b_scales() const { return b_scales_; }
  line_scale_case& a_scales() { return a_scales_; }
  line_scale_case& b_scales() { return b_scales_; }
  void set_offsets(std::vector<std::int64_t> values) { offsets_ = std::move(values); }
  std::uint64_t slot_rows() const { return places_.slot_rows; }
  std::vector<judged_group> judged() const {
    return judge({offsets_, with_.format, with_.groups(), rows_, places_.slot_rows, false,
                  static_cast<std::uint64_t>(with_.begin_unit())});
  }

  expected_output expected() const {
    expected_output all(c_);
    const std::vector<judged_group> groups = judged();
    for (std::uint32_t g = 0; g < groups.size(); ++g) {
      const bool is_bad = groups[g].status.is_bad();
      if (!is_bad || with_.zero_rest) expect_group(all, g, is_bad ? judged_group{} : groups[g]);
    }
    return all;
  }

 private:
  static std::int64_t gap_of(const weight_settings& with) { return std::max<std::int64_t>(with.begin_unit(), 8); }

  static std::vector<float> lines_of(const stored_operand& from, std::uint64_t count, const judged_group& group) {
    std::vector<float> lines;
    for (std::uint64_t line = 0; line < count; ++line) {
      for (std::uint64_t row = group.begin; row < group.end; ++row) lines.push_back(from.at(line, row));
    }
    return lines;
  }

  bounded sum_of(const operands& of, std::uint32_t g, std::uint64_t begin, std::uint64_t i,
                 std::uint64_t column) const {
    if (of.k == 0 || !has_8_bits(with_.type)) return dot(of, with_.type, i, column);
    return dot(of, with_.type, i, column, true, [&](bounded part, std::uint64_t block) {
      return scaled_by(part, a_scales_.at(g, begin, i, block) * b_scales_.at(g, begin, column, block));
    });
  }

  void expect_group(expected_output& all, std::uint32_t g, const judged_group& group) const {
    const operands of{with_.m, with_.n, group.end - group.begin, lines_of(a_, with_.m, group),
                      lines_of(b_, with_.n, group)};
    for_rows(of, [&](std::uint64_t i) {
      const std::uint64_t row = g * c_group_rows() + i;
      for (std::uint64_t column = 0; column < of.n; ++column) {
        bounded sum = sum_of(of, g, group.begin, i, column);
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
  line_scale_case a_scales_;
  line_scale_case b_scales_;
};

/// Returns the value of an element of C of 8-bit operands in f32: sums of integers, which are
/// exact, in the order that is promised.
inline float promised(const weight_case& made, std::uint32_t g, const judged_group& group, std::uint64_t row,
                      std::uint64_t column) {
  const std::uint64_t k = group.end - group.begin;
  float sum = 0;
  for (std::uint64_t block = 0; block * scaled_elements < k; ++block) {
    float part = 0;
    for (std::uint64_t i = block * scaled_elements; i < std::min((block + 1) * scaled_elements, k); ++i) {
      part += made.a().at(row, group.begin + i) * made.b().at(column, group.begin + i);
    }
    const float factor =
        made.a_scales().at(g, group.begin, row, block) * made.b_scales().at(g, group.begin, column, block);
    sum = std::fma(factor, part, sum);
  }
  return sum;
}

}  // namespace tmap::gemm::testing
