// SPDX-License-Identifier: Apache-2.0
// Tests the mixture-of-experts sample without a GPU: the plain layer, and that the comparison finds
// faults.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "apps/samples/moe_layer/layer.hpp"
#include "apps/samples/moe_layer/plain.hpp"
#include "support/refusal.hpp"

namespace moe {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

TEST(plain_layer, of_constant_weights) {
  const layer_sizes sizes{1, 3, 8, 16};
  layer_weights weights{std::vector<float>(3 * 8), std::vector<float>(3 * 32 * 8), std::vector<float>(3 * 8 * 16)};
  std::fill_n(weights.gate_up.begin() + 2 * 32 * 8, 16 * 8, 0.25f);        // gates of expert 2
  std::fill_n(weights.gate_up.begin() + (2 * 32 + 16) * 8, 16 * 8, 0.5f);  // its values
  std::fill_n(weights.down.begin() + 2 * 8 * 16, 8 * 16, 0.125f);
  std::fill_n(weights.router.begin() + 2 * 8, 8, 0.125f);  // its logit is 1, the others' 0
  const std::vector<float> token(8, 1.0f);
  const double hidden = 2 / (1 + std::exp(-2.0)) * 4;
  const double share = 1 / (1 + std::exp(-1.0));
  for (const bounded& got : plain_output(sizes, weights, token.data(), {2, 0})) {
    EXPECT_NEAR(got.value, share * 16 * 0.125 * hidden, 1e-12);
    EXPECT_GT(got.error, got.value * 0x1p-9);
    EXPECT_LT(got.error, got.value * 0x1p-5);
  }
  for (const bounded& got : plain_output(sizes, weights, token.data(), {0, 1})) EXPECT_EQ(got.value, 0);
}

TEST(scaled_matrices, keep_what_they_have_rounded_once) {
  const layer_sizes sizes{1, 3, 208, 128, true};
  const layer_weights weights = random_weights(sizes, 9);
  const scaled_matrices again = as_e4m3(weights.gate_up, 256, 208);
  EXPECT_EQ(again.scales.size(), 3u * 2 * 2);
  EXPECT_EQ(as_float(again, 256, 208), weights.gate_up);
  const layer_weights exact = random_weights({1, 3, 208, 128}, 9);
  for (std::size_t i = 0; i < exact.gate_up.size(); ++i) {
    ASSERT_NEAR(weights.gate_up[i], exact.gate_up[i], std::abs(exact.gate_up[i]) / 16 + 1e-5);
  }
}

/// Holds a layer, tokens, and the results of a correct run.
struct sample {
  layer_sizes sizes{40, 5, 32, 48};
  layer_weights weights = random_weights(sizes, 3);
  std::vector<float> tokens = random_tokens(sizes, 4);
  layer_results results{};

  sample() {
    for (std::uint32_t token = 0; token < sizes.tokens; ++token) add(tokens.data() + token * sizes.width);
    results.sizes.resize(sizes.experts);
    for (const std::int32_t expert : results.experts) ++results.sizes[static_cast<std::size_t>(expert)];
    sort_rows();
  }
  void add(const float* token) {
    std::vector<float> logits;
    for (const bounded& logit : plain_logits(sizes, weights, token)) logits.push_back(static_cast<float>(logit.value));
    const auto best = std::max_element(logits.begin(), logits.end());
    const float largest = std::exchange(*best, -std::numeric_limits<float>::infinity());
    const auto next = std::max_element(logits.begin(), logits.end());
    const auto first = static_cast<std::int32_t>(best - logits.begin());
    const auto second = static_cast<std::int32_t>(next - logits.begin());
    const float share = 1 / (1 + std::exp(*next - largest));
    results.experts.insert(results.experts.end(), {first, second});
    results.shares.insert(results.shares.end(), {share, 1 - share});
    for (const bounded& value : plain_output(sizes, weights, token, {first, second})) {
      results.output.push_back(__bfloat162float(__double2bfloat16(value.value)));
    }
  }
  void sort_rows() {
    std::vector<std::size_t> order(results.experts.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return results.experts[a] < results.experts[b]; });
    results.row_of.resize(order.size());
    for (std::size_t row = 0; row < order.size(); ++row) results.row_of[order[row]] = static_cast<std::int32_t>(row);
  }
  /// Replaces the output of token 7 by that of these weights and experts.
  void replace_output(const layer_weights& with, std::int32_t first, std::int32_t second) {
    const auto made = plain_output(sizes, with, tokens.data() + 7 * sizes.width, {first, second});
    for (std::uint32_t i = 0; i < sizes.width; ++i) {
      results.output[7 * sizes.width + i] = static_cast<float>(made[i].value);
    }
  }
  std::int32_t expert_of_seven(std::size_t choice) const { return results.experts[7 * choices + choice]; }
  std::int32_t worst_expert_of_seven() const {
    const auto logits = plain_logits(sizes, weights, tokens.data() + 7 * sizes.width);
    const auto least = std::min_element(logits.begin(), logits.end(),
                                        [](const bounded& a, const bounded& b) { return a.value < b.value; });
    return static_cast<std::int32_t>(least - logits.begin());
  }
  comparison compared() const { return compare(sizes, weights, tokens, results); }
};

TEST(compare_layer, accepts_what_is_right) {
  const comparison found = sample{}.compared();
  EXPECT_EQ(found.fault, "");
  EXPECT_GT(found.worst, 0);
  EXPECT_LT(found.worst, 1);
}

TEST(compare_layer, takes_errors_up_to_the_allowed_and_no_larger) {
  for (const double of_the_allowed : {-0.9, 0.9, -1.1, 1.1}) {
    sample changed;
    const auto want = plain_output(changed.sizes, changed.weights, changed.tokens.data() + 7 * changed.sizes.width,
                                   {changed.expert_of_seven(0), changed.expert_of_seven(1)});
    changed.results.output[7 * changed.sizes.width + 3] =
        static_cast<float>(want[3].value + of_the_allowed * want[3].error);
    EXPECT_EQ(changed.compared().fault, std::abs(of_the_allowed) < 1 ? "" : "output of token 7") << of_the_allowed;
  }
}

struct seeded_fault {
  const char* name;
  const char* answer;
  std::function<void(sample&)> seed;
};

class compare_layer_finds : public ::testing::TestWithParam<seeded_fault> {};

TEST_P(compare_layer_finds, it) {
  sample changed;
  GetParam().seed(changed);
  EXPECT_THAT(changed.compared().fault, ::testing::StartsWith(GetParam().answer));
}

void exchange_choices_of_seven(sample& of) {
  std::swap(of.results.experts[14], of.results.experts[15]);
}
void choose_the_worst(sample& of) {
  of.results.experts[15] = of.worst_expert_of_seven();
}
void choose_one_twice(sample& of) {
  of.results.experts[15] = of.results.experts[14];
}
void exchange_rows_of_an_expert(sample& of) {
  std::swap(*std::find(of.results.row_of.begin(), of.results.row_of.end(), 0),
            *std::find(of.results.row_of.begin(), of.results.row_of.end(), 1));
}
void move_a_row_to_the_next_expert(sample& of) {
  --of.results.sizes[1];
  ++of.results.sizes[2];
}
void exchange_gates_and_values(sample& of) {
  layer_weights other = of.weights;
  const auto half = static_cast<std::ptrdiff_t>(of.sizes.hidden * of.sizes.width);
  for (auto at = other.gate_up.begin(); at != other.gate_up.end(); at += 2 * half) {
    std::swap_ranges(at, at + half, at + half);
  }
  of.replace_output(other, of.expert_of_seven(0), of.expert_of_seven(1));
}
void multiply_by_the_wrong_expert(sample& of) {
  of.replace_output(of.weights, of.expert_of_seven(0), of.worst_expert_of_seven());
}
void forget_the_router_in_the_sum(sample& of) {
  layer_weights equal_shares = of.weights;
  std::fill(equal_shares.router.begin(), equal_shares.router.end(), 0.0f);
  of.replace_output(equal_shares, of.expert_of_seven(0), of.expert_of_seven(1));
}

INSTANTIATE_TEST_SUITE_P(
    faults, compare_layer_finds,
    ::testing::Values(
        seeded_fault{"ChoicesExchanged", "order of the experts of token 7", exchange_choices_of_seven},
        seeded_fault{"WorstChosen", "choice of experts of token 7", choose_the_worst},
        seeded_fault{"OneChosenTwice", "experts of token 7", choose_one_twice},
        seeded_fault{"NoSuchExpert", "experts of token 7", [](sample& of) { of.results.experts[14] = 5; }},
        seeded_fault{"NegativeExpert", "experts of token 7", [](sample& of) { of.results.experts[15] = -1; }},
        seeded_fault{"ShareOff", "shares of token 7", [](sample& of) { of.results.shares[15] += 1e-4f; }},
        seeded_fault{"ShareIsNan", "shares of token 7", [](sample& of) { of.results.shares[14] = nan; }},
        seeded_fault{"RowsExchanged", "rows of token ", exchange_rows_of_an_expert},
        seeded_fault{"SizesOff", "sizes of the experts", move_a_row_to_the_next_expert},
        seeded_fault{"OutputIsNan", "output of token 7", [](sample& of) { of.results.output[7 * 32 + 31] = nan; }},
        seeded_fault{"GatesAndValuesExchanged", "output of token 7", exchange_gates_and_values},
        seeded_fault{"WrongExpert", "output of token 7", multiply_by_the_wrong_expert},
        seeded_fault{"EqualShares", "output of token 7", forget_the_router_in_the_sum}),
    [](const auto& fault) { return std::string{fault.param.name}; });

TEST(layer_sizes, that_cannot_be_are_refused) {
  const auto refused = [](const char* name, const layer_sizes& sizes) {
    tmap::testing::expect_refused(layer::make(sizes), name);
  };
  refused("sizes.tokens", {0, 8, 64, 64});
  refused("sizes.tokens", {(1u << 24) + 1, 8, 64, 64});
  refused("sizes.experts", {8, 1, 64, 64});
  refused("sizes.experts", {8, 70000, 64, 64});
  refused("sizes.width", {8, 8, 60, 64});
  refused("sizes.hidden", {8, 8, 64, 24});
  refused("sizes.width", {8, 8, 0, 64});
  refused("sizes.width", {8, 8, 72, 128, true});
  refused("sizes.hidden", {8, 8, 64, 64, true});
}

}  // namespace
}  // namespace moe
