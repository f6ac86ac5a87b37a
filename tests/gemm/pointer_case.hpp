// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/grouped_gemm.hpp>

#include <cstdint>
#include <utility>
#include <vector>

#include "gemm/host_matrix.hpp"
#include "gemm/product_reference.hpp"

// Makes products that each have matrices of their own.

namespace tmap::gemm::testing {

struct product_size {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

struct pointer_settings {
  operand_type type{operand_type::bf16};
  input_kind kind{input_kind::normal};
  gemm::a_layout a_layout{};
  gemm::b_layout b_layout{};
  result_type c_type{};
  bool accumulate{};
  std::vector<product_size> sizes{};
  std::uint64_t number{1};  ///< selects the values that it draws
};

class pointer_product {
 public:
  pointer_product(const pointer_settings& with, product_size size, value_source& values)
      : with_(with),
        size_(size),
        a_(with.type, with.a_layout == a_layout::m_by_k, m(), k(), gap_of(values)),
        b_(with.type, with.b_layout == b_layout::n_by_k, n(), k(), gap_of(values)),
        c_(output_of(with.type, with.c_type), m(), n(), gap_of(values), poison_byte) {
    a_.fill(values, 0, m());
    b_.fill(values, 0, n());
    if (with.accumulate) values.fill(c_, 0, c_.rows());
  }

  product_size size() const { return size_; }
  const host_matrix& a() const { return a_.matrix(); }
  const host_matrix& b() const { return b_.matrix(); }
  const host_matrix& c() const { return c_; }

  expected_output expected() const {
    expected_output all(c_);
    operands of{m(), n(), k(), {}, {}};
    for (std::uint64_t row = 0; row < of.m; ++row) {
      for (std::uint64_t i = 0; i < of.k; ++i) of.a.push_back(a_.at(row, i));
    }
    for (std::uint64_t column = 0; column < of.n; ++column) {
      for (std::uint64_t i = 0; i < of.k; ++i) of.b.push_back(b_.at(column, i));
    }
    for_rows(of, [&](std::uint64_t row) {
      for (std::uint64_t column = 0; column < of.n; ++column) {
        bounded sum = dot(of, with_.type, row, column);
        if (with_.accumulate) sum = plus(sum, {c_.at(row, column)});
        all.expect(row, column, sum);
      }
    });
    return all;
  }

 private:
  static std::uint64_t gap_of(value_source& values) { return 8 + 8 * values.below(6); }
  std::uint64_t m() const { return static_cast<std::uint64_t>(size_.m); }
  std::uint64_t n() const { return static_cast<std::uint64_t>(size_.n); }
  std::uint64_t k() const { return static_cast<std::uint64_t>(size_.k); }

  pointer_settings with_;
  product_size size_;
  stored_operand a_;
  stored_operand b_;
  host_matrix c_;
};

inline std::vector<pointer_product> products_of(const pointer_settings& with) {
  value_source values(with.kind, with.number);
  std::vector<pointer_product> products;
  for (const product_size size : with.sizes) products.emplace_back(with, size, values);
  return products;
}

}  // namespace tmap::gemm::testing
