// SPDX-License-Identifier: Apache-2.0
#include "apps/samples/moe_layer/plain.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>
#include <utility>

namespace moe {
namespace {

/// The relative error of one operation in f32, with a margin.
constexpr double f32_error = 0x1p-23;
/// The relative error of rounding to bf16.
constexpr double bf16_error = 0x1p-8;
/// Numbers below this lose digits.
constexpr double least = 1e-30;

bounded rounded(bounded x, double relative) {
  return {x.value, x.error + (std::abs(x.value) + x.error) * relative + least};
}

bounded product(bounded a, bounded b) {
  return {a.value * b.value, std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error};
}

/// Adds up `at_a_time` products at once.
bounded dot(const float* a, const float* b, std::uint32_t count, std::uint32_t at_a_time) {
  double sum = 0;
  double magnitude = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const double one = double{a[i]} * double{b[i]};
    sum += one;
    magnitude += std::abs(one);
  }
  const double steps = std::ceil(static_cast<double>(count) / at_a_time) + 6;
  return {sum, magnitude * steps * 2 * f32_error};
}

/// The tensor core adds up this many products in one step.
constexpr std::uint32_t products_a_step = 16;

bounded dot(const std::vector<bounded>& a, const float* b) {
  double sum = 0;
  double magnitude = 0;
  double error = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double factor = double{b[i]};
    sum += a[i].value * factor;
    magnitude += (std::abs(a[i].value) + a[i].error) * std::abs(factor);
    error += a[i].error * std::abs(factor);
  }
  const double steps = std::ceil(static_cast<double>(a.size()) / products_a_step) + 6;
  return {sum, error + magnitude * steps * 2 * f32_error};
}

/// The tensor core drops bits of a product of 8-bit numbers that lie 13 bits below the largest.
bounded dot_of_8_bits(const std::vector<bounded>& a, const float* b) {
  double magnitude = 0;
  for (std::size_t i = 0; i < a.size(); ++i) magnitude += (std::abs(a[i].value) + a[i].error) * std::abs(double{b[i]});
  const bounded made = dot(a, b);
  return {made.value, made.error + magnitude * 0x1p-9};
}

/// Rounds a row to e4m3 with a scale for each 128 numbers.
std::vector<bounded> rounded_to_e4m3(std::vector<bounded> row) {
  constexpr double relative = 0x1p-4;
  constexpr double of_the_largest = 0x1p-18;  // where numbers lose digits
  for (std::size_t first = 0; first < row.size(); first += scaled) {
    const std::size_t last = std::min<std::size_t>(row.size(), first + scaled);
    double top = 0;
    for (std::size_t i = first; i < last; ++i) top = std::max(top, std::abs(row[i].value) + row[i].error);
    for (std::size_t i = first; i < last; ++i) {
      row[i] = rounded(row[i], relative);
      row[i].error += top * of_the_largest;
    }
  }
  return row;
}

bounded swiglu(bounded gate, bounded up) {
  constexpr double steepest = 1.1;  // silu has no larger slope
  constexpr double of_the_exponential = 0x1p-18;
  const double silu = gate.value / (1 + std::exp(-gate.value));
  return rounded(product({silu, steepest * gate.error}, up), of_the_exponential);
}

/// Returns the values between the two products of an expert.
std::vector<bounded> hidden_of(const layer_sizes& sizes, const layer_weights& weights, const float* token,
                               std::uint64_t expert) {
  const float* const gates = weights.gate_up.data() + expert * 2 * sizes.hidden * sizes.width;
  const float* const ups = gates + std::uint64_t{sizes.hidden} * sizes.width;
  std::vector<bounded> values;
  for (std::uint64_t i = 0; i < sizes.width; ++i) values.push_back({double{token[i]}, 0});
  if (sizes.has_8_bits) values = rounded_to_e4m3(std::move(values));
  const auto sum = [&](const float* line) {
    return sizes.has_8_bits ? dot_of_8_bits(values, line) : dot(token, line, sizes.width, products_a_step);
  };
  std::vector<bounded> made;
  for (std::uint64_t i = 0; i < sizes.hidden; ++i) {
    const bounded activated = swiglu(sum(gates + i * sizes.width), sum(ups + i * sizes.width));
    made.push_back(sizes.has_8_bits ? activated : rounded(activated, bf16_error));
  }
  return sizes.has_8_bits ? rounded_to_e4m3(std::move(made)) : made;
}

/// Returns the softmax of the first of two logits.
bounded share_of(bounded mine, bounded other) {
  constexpr double steepest = 0.25;
  const double share = 1 / (1 + std::exp(other.value - mine.value));
  return {share, steepest * (mine.error + other.error) + 8 * f32_error};
}

bool is_above(bounded a, bounded b) {
  return a.value - a.error > b.value + b.error;
}

bool lies_within(double got, bounded want) {
  return std::abs(got - want.value) <= want.error;  // false for NaN
}

std::string place(const char* what, std::uint64_t token) {
  return std::string{what} + " of token " + std::to_string(token);
}

std::string fault_of_choice(const layer_sizes& sizes, const std::vector<bounded>& logits, std::uint64_t token,
                            const layer_results& got) {
  const std::int32_t* const experts = got.experts.data() + choices * token;
  const auto exists = [&](std::int32_t expert) { return expert >= 0 && std::cmp_less(expert, sizes.experts); };
  if (!exists(experts[0]) || !exists(experts[1]) || experts[0] == experts[1]) return place("experts", token);
  const bounded first = logits[static_cast<std::size_t>(experts[0])];
  const bounded second = logits[static_cast<std::size_t>(experts[1])];
  if (is_above(second, first)) return place("order of the experts", token);
  for (std::uint32_t e = 0; e < sizes.experts; ++e) {
    if (std::cmp_equal(e, experts[0]) || std::cmp_equal(e, experts[1])) continue;
    if (is_above(logits[e], second)) return place("choice of experts", token);
  }
  const float* const shares = got.shares.data() + choices * token;
  const bool are_right = lies_within(double{shares[0]}, share_of(first, second)) &&
                         lies_within(double{shares[1]}, share_of(second, first));
  return are_right ? std::string{} : place("shares", token);
}

std::string fault_of_rows(const layer_sizes& sizes, const layer_results& got) {
  std::vector<std::int32_t> counts(sizes.experts);
  for (const std::int32_t expert : got.experts) ++counts[static_cast<std::size_t>(expert)];
  if (counts != got.sizes) return "sizes of the experts";
  std::vector<std::int32_t> next(sizes.experts);
  std::exclusive_scan(counts.begin(), counts.end(), next.begin(), 0);
  for (std::size_t i = 0; i < got.experts.size(); ++i) {
    if (got.row_of[i] != next[static_cast<std::size_t>(got.experts[i])]++) return place("rows", i / choices);
  }
  return {};
}

void take_worse(comparison& of, const comparison& other) {
  if (of.fault.empty()) of.fault = other.fault;
  of.worst = std::max(of.worst, other.worst);
  of.worst_error = std::max(of.worst_error, other.worst_error);
}

comparison compare_output(const std::vector<bounded>& want, const float* got, std::uint64_t token) {
  comparison made;
  for (std::size_t column = 0; column < want.size(); ++column) {
    if (!lies_within(double{got[column]}, want[column])) made.fault = place("output", token);
    const double error = std::abs(double{got[column]} - want[column].value);
    if (error > 0) made.worst = std::max(made.worst, error / want[column].error);
    made.worst_error = std::max(made.worst_error, error);
  }
  return made;
}

comparison compare_token(const layer_sizes& sizes, const layer_weights& weights, const float* values,
                         std::uint64_t token, const layer_results& got) {
  comparison made;
  made.fault = fault_of_choice(sizes, plain_logits(sizes, weights, values), token, got);
  if (!made.fault.empty()) return made;
  const std::int32_t experts[choices] = {got.experts[choices * token], got.experts[choices * token + 1]};
  return compare_output(plain_output(sizes, weights, values, experts), got.output.data() + token * sizes.width, token);
}

}  // namespace

std::vector<bounded> plain_logits(const layer_sizes& sizes, const layer_weights& weights, const float* token) {
  constexpr std::uint32_t lanes = 32;
  std::vector<bounded> made;
  for (std::uint64_t expert = 0; expert < sizes.experts; ++expert) {
    made.push_back(dot(token, weights.router.data() + expert * sizes.width, sizes.width, lanes));
  }
  return made;
}

std::vector<bounded> plain_output(const layer_sizes& sizes, const layer_weights& weights, const float* token,
                                  const std::int32_t (&experts)[choices]) {
  const std::vector<bounded> logits = plain_logits(sizes, weights, token);
  std::vector<bounded> sums(sizes.width);
  for (std::uint32_t i = 0; i < choices; ++i) {
    const auto expert = static_cast<std::size_t>(experts[i]);
    const bounded share = share_of(logits[expert], logits[static_cast<std::size_t>(experts[1 - i])]);
    const std::vector<bounded> hidden = hidden_of(sizes, weights, token, expert);
    const float* const down = weights.down.data() + expert * sizes.width * sizes.hidden;
    for (std::uint64_t column = 0; column < sizes.width; ++column) {
      const float* const line = down + column * sizes.hidden;
      const bounded output = rounded(sizes.has_8_bits ? dot_of_8_bits(hidden, line) : dot(hidden, line), bf16_error);
      const bounded part = rounded(product(share, output), 2 * f32_error);
      sums[column] = {sums[column].value + part.value, sums[column].error + part.error};
    }
  }
  for (bounded& sum : sums) sum = rounded(rounded(sum, f32_error), bf16_error);
  return sums;
}

comparison compare(const layer_sizes& sizes, const layer_weights& weights, const std::vector<float>& tokens,
                   const layer_results& got) {
  const std::uint32_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<comparison> parts(threads);
  const auto compare_share = [&](std::uint32_t thread) {
    for (std::uint64_t token = thread; token < sizes.tokens; token += threads) {
      take_worse(parts[thread], compare_token(sizes, weights, tokens.data() + token * sizes.width, token, got));
    }
  };
  std::vector<std::thread> workers;
  for (std::uint32_t thread = 0; thread < threads; ++thread) workers.emplace_back(compare_share, thread);
  for (std::thread& worker : workers) worker.join();
  comparison all;
  for (const comparison& part : parts) take_worse(all, part);
  if (all.fault.empty()) all.fault = fault_of_rows(sizes, got);
  return all;
}

}  // namespace moe
