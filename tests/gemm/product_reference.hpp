// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "device/gpu_fixture.hpp"
#include "gemm/host_matrix.hpp"

// Computes products in double, and how far a result may lie from them.

namespace tmap::gemm::testing {

/// Holds the operands of one group: a [m, k], b [n, k].
struct operands {
  std::uint64_t m{};
  std::uint64_t n{};
  std::uint64_t k{};
  std::vector<float> a;
  std::vector<float> b;
};

/// Holds a number and the largest distance of a sum in f32 from it. The bound holds for all terms
/// and does not rely on chance.
struct bounded {
  double value{};
  double error{};
};

/// The multiplier sums up this many elements of K before f32 does, for 8-bit operands without
/// `fast_accumulation`.
inline constexpr std::uint64_t promoted_elements = 128;

/// The multiplier adds this many products to a sum at a time.
inline std::uint64_t step_elements(operand_type type) {
  return 32 / operand_bytes(type);
}

/// The multiplier truncates each term of a step, including the sum so far, below this part of the
/// largest term.
inline double least_kept(operand_type type) {
  return has_8_bits(type) ? 0x1p-13 : 0x1p-23;
}

inline bounded plus(bounded x, bounded y) {
  const bounded exact{x.value + y.value, x.error + y.error};
  return {exact.value, exact.error + (std::abs(exact.value) + exact.error) * 0x1p-23};
}

/// Adds one step. The truncation of each term adds to the error, and so does the rounding of the
/// sum to f32.
inline bounded plus_products(bounded sum, const float* a, const float* b, std::uint64_t count, operand_type type) {
  double largest = std::abs(sum.value) + sum.error;
  for (std::uint64_t i = 0; i < count; ++i) {
    const double product = static_cast<double>(a[i]) * b[i];
    sum.value += product;
    largest = std::max(largest, std::abs(product));
  }
  largest = std::max(largest, std::abs(sum.value));
  return {sum.value, sum.error + static_cast<double>(count + 2) * least_kept(type) * largest};
}

inline bounded scaled_by(bounded x, double factor) {
  const double value = x.value * factor;
  return {value, x.error * std::abs(factor) + std::abs(value) * 0x1p-22};
}

/// `factor(j)` is that of the j-th `promoted_elements` of K.
template <class Factor>
bounded dot(const operands& of, operand_type type, std::uint64_t row, std::uint64_t column, bool is_promoted,
            const Factor& factor) {
  const float* const a = of.a.data() + row * of.k;
  const float* const b = of.b.data() + column * of.k;
  bounded sum;
  bounded part;
  for (std::uint64_t i = 0; i < of.k; i += step_elements(type)) {
    if (is_promoted && i != 0 && i % promoted_elements == 0) {
      sum = plus(sum, factor(part, i / promoted_elements - 1));
      part = {};
    }
    part = plus_products(part, a + i, b + i, std::min(step_elements(type), of.k - i), type);
  }
  return plus(sum, factor(part, (of.k - 1) / promoted_elements));
}

inline bounded dot(const operands& of, operand_type type, std::uint64_t row, std::uint64_t column,
                   bool fast_accumulation = false) {
  return dot(of, type, row, column, has_8_bits(type) && !fast_accumulation,
             [](bounded part, std::uint64_t) { return part; });
}

/// The part of a gate's result that is its function, and the derivative of the function.
struct gate_values {
  double function;
  double slope;
};
inline gate_values gate_at(const gate& with, double g) {
  constexpr double linear = 0.79788456080286536;  // sqrt(2 / pi)
  constexpr double cubic = 0.044715;
  const double sigma = 1 / (1 + std::exp(-with.alpha * g));
  const double inner = std::tanh(linear * (g + cubic * g * g * g));
  const double below = std::erfc(-g * std::sqrt(0.5)) / 2;
  switch (with.function) {
    case gate_function::silu: return {g * sigma, sigma * (1 + with.alpha * g * (1 - sigma))};
    case gate_function::gelu: return {g * below, below + g * linear / 2 * std::exp(-g * g / 2)};
    default:
      return {g * (1 + inner) / 2, (1 + inner) / 2 + g / 2 * (1 - inner * inner) * linear * (1 + 3 * cubic * g * g)};
  }
}

/// The errors of a function on the GPU: relative, and relative to its argument.
inline constexpr double gate_error = 0x1p-17;
inline constexpr double share_error = 0x1p-22;

inline double cut(double x, double least, double most) {
  return std::min(std::max(x, least), most);
}

inline bounded gated(bounded g, bounded value, const gate& with) {
  constexpr double steepest = 1.15;  // no function has a larger slope
  const double limit = double{with.limit};
  const double cut_gate = std::min(g.value, limit);
  const double function = gate_at(with, cut_gate).function;
  const double up = cut(value.value, -limit, limit) + double{with.value_shift};
  const double of_function = steepest * g.error + std::abs(cut_gate) * share_error + std::abs(function) * gate_error;
  return {function * up, of_function * (std::abs(up) + value.error) + std::abs(function) * value.error +
                             std::abs(function * up) * 0x1p-22};
}

/// The gradients of a gate and of its value, if that of the result is `gradient`.
struct gate_gradients {
  bounded of_gate;
  bounded of_value;
};
inline gate_gradients differentiated(bounded gradient, double g, double value, const gate& with) {
  const double limit = double{with.limit};
  const gate_values at = gate_at(with, std::min(g, limit));
  const double up = cut(value, -limit, limit) + double{with.value_shift};
  const auto times = [&](double factor, double error) {
    const double size = std::abs(gradient.value) + gradient.error;
    return bounded{gradient.value * factor, gradient.error * std::abs(factor) + size * error};
  };
  const double of_slope =
      (std::abs(at.slope) + share_error * (1 + g * g)) * gate_error + share_error * (4 + std::abs(g));
  const double of_function = std::abs(at.function) * gate_error + std::abs(g) * share_error;
  gate_gradients made;
  if (!(g > limit)) made.of_gate = times(at.slope * up, of_slope * std::abs(up));
  if (!(std::abs(value) > limit)) made.of_value = times(at.function, of_function);
  return made;
}

/// Calls `work(row)` for each row, on all threads if that pays off.
template <class Work>
void for_rows(const operands& of, const Work& work) {
  constexpr std::uint64_t worth_threads = 4000000;
  const auto some = [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t row = begin; row < end; ++row) work(row);
  };
  if (of.m * of.n * of.k < worth_threads) return some(0, of.m);
  tmap::testing::on_all_threads(of.m, some);
}

/// Holds what every byte of an output must be. Written elements must lie within bounds, and all
/// other bytes must be unchanged.
class expected_output {
 public:
  explicit expected_output(const host_matrix& before)
      : before_(before), written_(before.rows() * before.columns()), elements_(before.rows() * before.columns()) {}

  void expect(std::uint64_t row, std::uint64_t column, bounded value) {
    written_[row * before_.columns() + column] = 1;
    elements_[row * before_.columns() + column] = value;
  }
  const host_matrix& before() const { return before_; }
  bounded at(std::uint64_t row, std::uint64_t column) const { return elements_[row * before_.columns() + column]; }

  /// Returns the error of the results relative to the error of the output type's nearest numbers.
  /// Both are roots of mean squares. Returns 1 if sums are exact.
  double error_against_rounding(const host_matrix& after) const {
    double found = 0;
    double least = 0;
    for (std::uint64_t index = 0; index < written_.size(); ++index) {
      if (written_[index] == 0) continue;
      unsigned char nearest[most_number_bytes];
      encode(before_.type(), elements_[index].value, nearest);
      const float got = after.at(index / before_.columns(), index % before_.columns());
      found += std::pow(got - elements_[index].value, 2);
      least += std::pow(decode(before_.type(), nearest) - elements_[index].value, 2);
    }
    return std::sqrt(found / least);
  }

  /// Describes the first fault, or returns an empty text. If `exact` is set, results must be the
  /// nearest numbers of the output's type.
  std::string fault_of(const host_matrix& after, bool exact) const {
    std::vector<bool> is_written(after.bytes().size());
    for (std::uint64_t row = 0; row < before_.rows(); ++row) {
      for (std::uint64_t column = 0; column < before_.columns(); ++column) {
        const std::uint64_t index = row * before_.columns() + column;
        if (written_[index] == 0) continue;
        const std::uint64_t place = before_.place_of(row, column);
        std::fill_n(is_written.begin() + static_cast<std::ptrdiff_t>(place), number_bytes(before_.type()), true);
        const float got = after.at(row, column);
        if (!is_right(elements_[index], got, exact)) return place_text(row, column, elements_[index], got);
      }
    }
    for (std::uint64_t i = 0; i < is_written.size(); ++i) {
      if (!is_written[i] && after.bytes()[i] != before_.bytes()[i]) return untouched_text(i);
    }
    return {};
  }

 private:
  bool is_right(bounded want, float got, bool exact) const {
    unsigned char nearest[most_number_bytes];
    encode(before_.type(), want.value, nearest);
    const bool is_nearest = got == decode(before_.type(), nearest);
    if (exact || is_nearest) return is_nearest;  // an infinity of f16 must be the nearest number
    const double rounding = rounding_of(before_.type()) * (std::abs(want.value) + want.error);
    constexpr double tiny = 1e-6;  // more than the rounding of a subnormal number
    return std::abs(got - want.value) <= want.error + rounding + tiny;
  }
  static std::string place_text(std::uint64_t row, std::uint64_t column, bounded want, float got) {
    return "row " + std::to_string(row) + ", column " + std::to_string(column) + ": " + std::to_string(got) +
           " instead of " + std::to_string(want.value) + " +- " + std::to_string(want.error);
  }
  std::string untouched_text(std::uint64_t place) const {
    const auto offset = static_cast<std::int64_t>(place) - static_cast<std::int64_t>(margin_bytes);
    const auto pitch = static_cast<std::int64_t>(before_.pitch_bytes());
    return "byte " + std::to_string(offset) + " (row " + std::to_string(offset / pitch) + ", byte " +
           std::to_string(offset % pitch) + " of it) was written";
  }

  host_matrix before_;
  std::vector<unsigned char> written_;  // not bool: threads write side by side
  std::vector<bounded> elements_;
};

}  // namespace tmap::gemm::testing
