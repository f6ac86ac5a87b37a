// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/moe_layer.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gemm/host_matrix.hpp"
#include "gemm/product_reference.hpp"
#include "moe/moe_reference.hpp"

// A layer of experts on the host: its inputs, and its results by plain loops in f64.

namespace tmap::moe::testing {

using gemm::testing::bounded;
using gemm::testing::host_matrix;

struct layer_case {
  std::string name{};
  route_sizes sizes{};
  std::uint64_t width{};
  std::uint64_t inner{};
  gemm::operand_type type{};
  gemm::gate gate{.function = gemm::gate_function::silu};
  bool has_bias{};
  bool has_base{};
  bool has_weights{true};
  bool has_addresses{};  ///< the weights of each expert are found through a list
  bool is_hostile{};     ///< some choices are -1, and some name no expert
  std::uint64_t gap{8};  ///< elements after each row of x, base and out

  std::uint64_t rows() const { return sizes.row_count(); }
};

/// The contents of the arrays that a layer reads. Lines of all experts follow each other.
struct layer_inputs {
  host_matrix x;
  host_matrix gate_up;  ///< [experts * 2 inner, width]
  host_matrix down;     ///< [experts * width, inner]
  host_matrix gate_up_bias;
  host_matrix down_bias;
  host_matrix base;
  std::vector<std::int32_t> ids;
  std::vector<float> weights;  ///< empty: all are 1

  std::vector<std::int64_t> wide_ids() const { return {ids.begin(), ids.end()}; }
};

inline void fill(host_matrix& of, double scale, std::mt19937_64& random) {
  std::normal_distribution<double> normal(0, scale);
  for (std::uint64_t row = 0; row < of.rows(); ++row) {
    for (std::uint64_t column = 0; column < of.columns(); ++column) of.set(row, column, normal(random));
  }
}

inline host_matrix random_matrix(const layer_case& of, std::uint64_t rows, std::uint64_t columns, std::uint64_t gap,
                                 double scale, std::mt19937_64& random) {
  host_matrix made(of.type, rows, columns, gap, gemm::testing::nan_byte);
  fill(made, scale, random);
  return made;
}

inline std::vector<std::int32_t> random_ids(const layer_case& of, std::mt19937_64& random) {
  constexpr std::int32_t wild[] = {-1, -2, std::int32_t{1} << 30, -2147483647 - 1};
  const auto experts = static_cast<std::int32_t>(of.sizes.experts);
  std::vector<std::int32_t> made;
  for (std::uint64_t i = 0; i < of.sizes.choices(); ++i) {
    made.push_back(static_cast<std::int32_t>(random() % of.sizes.experts));
    if (of.is_hostile && random() % 3 == 0) made.back() = random() % 5 == 0 ? experts : wild[random() % 4];
  }
  return made;
}

inline layer_inputs random_inputs(const layer_case& of, std::uint64_t seed) {
  std::mt19937_64 random = tmap::testing::run_random(seed);
  const std::uint64_t experts = of.sizes.experts;
  const double of_width = 1 / std::sqrt(static_cast<double>(of.width));
  const double of_inner = 1 / std::sqrt(static_cast<double>(of.inner));
  layer_inputs made{random_matrix(of, of.sizes.tokens, of.width, of.gap, 1, random),
                    random_matrix(of, experts * 2 * of.inner, of.width, 0, of_width, random),
                    random_matrix(of, experts * of.width, of.inner, 0, of_inner, random),
                    random_matrix(of, experts, 2 * of.inner, 0, 0.5, random),
                    random_matrix(of, experts, of.width, 0, 0.5, random),
                    random_matrix(of, of.sizes.tokens, of.width, of.gap, 1, random),
                    random_ids(of, random),
                    {}};
  std::uniform_real_distribution<float> weight(0, 1);
  for (std::uint64_t i = 0; of.has_weights && i < of.sizes.choices(); ++i) made.weights.push_back(weight(random));
  return made;
}

/// Adds up as a product does. `a` holds what the tensor cores read, and how far it may be off.
inline bounded dot(const std::vector<bounded>& a, const host_matrix& b, std::uint64_t line, gemm::operand_type type) {
  std::vector<float> values, factors;
  double error = 0;
  for (std::uint64_t i = 0; i < a.size(); ++i) {
    values.push_back(static_cast<float>(a[i].value));
    factors.push_back(b.at(line, i));
    error += (a[i].error + std::abs(a[i].value) * 0x1p-23) * std::abs(static_cast<double>(factors.back()));
  }
  const gemm::testing::operands of{1, 1, a.size(), values, factors};
  const bounded made = gemm::testing::dot(of, type, 0, 0);
  return {made.value, made.error + error};
}

inline bounded rounded(bounded x, gemm::operand_type type) {
  const double part = gemm::testing::rounding_of(gemm::testing::output_of(type));
  return {x.value, x.error + (std::abs(x.value) + x.error) * part + 0x1p-24};
}

/// One row of an expert, step by step.
struct expert_row {
  std::vector<bounded> sums;       ///< before the gate
  std::vector<bounded> activated;  ///< rounded, as are the outputs
  std::vector<bounded> outputs;
};

inline std::vector<bounded> times_weights(const layer_case& of, const std::vector<bounded>& a, const host_matrix& b,
                                          const host_matrix& bias, std::uint64_t expert, std::uint64_t lines) {
  std::vector<bounded> made;
  for (std::uint64_t n = 0; n < lines; ++n) {
    made.push_back(dot(a, b, expert * lines + n, of.type));
    if (of.has_bias) made.back() = gemm::testing::plus(made.back(), {static_cast<double>(bias.at(expert, n)), 0});
  }
  return made;
}

inline expert_row run_expert(const layer_case& of, const layer_inputs& from, std::uint64_t token,
                             std::uint64_t expert) {
  std::vector<bounded> x;
  for (std::uint64_t i = 0; i < of.width; ++i) x.push_back({static_cast<double>(from.x.at(token, i)), 0});
  expert_row made{times_weights(of, x, from.gate_up, from.gate_up_bias, expert, 2 * of.inner), {}, {}};
  for (std::uint64_t i = 0; i < of.inner; ++i) {
    const bool are_halves = of.gate.columns == gemm::gate_columns::halves;
    const bounded gate = made.sums[are_halves ? i : 2 * i];
    const bounded value = made.sums[are_halves ? of.inner + i : 2 * i + 1];
    made.activated.push_back(rounded(gemm::testing::gated(gate, value, of.gate), of.type));
  }
  for (const bounded& sum : times_weights(of, made.activated, from.down, from.down_bias, expert, of.width)) {
    made.outputs.push_back(rounded(sum, of.type));
  }
  return made;
}

/// Returns the result of one token, whose choices have a row or not.
inline std::vector<bounded> run_token(const layer_case& of, const layer_inputs& from, const sorted_choices& sorted,
                                      std::uint64_t token) {
  std::vector<bounded> sums(of.width);
  for (std::uint64_t i = 0; of.has_base && i < of.width; ++i)
    sums[i].value = static_cast<double>(from.base.at(token, i));
  for (std::uint64_t j = 0; j < of.sizes.k; ++j) {
    const std::uint64_t choice = token * of.sizes.k + j;
    if (sorted.row_of_choice[choice] < 0) continue;
    const double weight = from.weights.empty() ? 1 : static_cast<double>(from.weights[choice]);
    const expert_row row = run_expert(of, from, token, static_cast<std::uint64_t>(from.ids[choice]));
    for (std::uint64_t i = 0; i < of.width; ++i) {
      sums[i] = gemm::testing::plus(sums[i], gemm::testing::scaled_by(row.outputs[i], weight));
    }
  }
  for (bounded& sum : sums) sum = rounded(sum, of.type);
  return sums;
}

inline sorted_choices sorted_of(const layer_case& of, const layer_inputs& from) {
  return sort_by_expert(of.sizes, from.wide_ids(), from.weights);
}

}  // namespace tmap::moe::testing
