// SPDX-License-Identifier: Apache-2.0
// Tests the promise that the results of a token have the same bits with any other tokens in the
// call, in any order (docs/batch_invariance.md).
#include <tmap/moe.hpp>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "device/gpu_fixture.hpp"
#include "support/run_seed.hpp"

namespace tmap::moe::testing {
namespace {

using tmap::testing::device_array;

/// Returns some of the numbers below `count`, at least one, in a random order.
std::vector<std::size_t> some_of(std::mt19937_64& random, std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  order.resize(1 + random() % count);
  return order;
}

/// Returns rows `which` of a matrix without gaps.
template <class T>
std::vector<T> rows_of(const std::vector<T>& all, std::size_t width, const std::vector<std::size_t>& which) {
  std::vector<T> made;
  for (const std::size_t row : which) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(row * width);
    made.insert(made.end(), first, first + static_cast<std::ptrdiff_t>(width));
  }
  return made;
}

std::vector<float> random_floats(std::mt19937_64& random, std::size_t count) {
  std::vector<float> made(count);
  std::uniform_real_distribution<float> draw(-4, 4);
  for (float& value : made) value = draw(random);
  return made;
}

template <class T>
void expect_written(const std::vector<T>& results) {
  EXPECT_TRUE(std::none_of(results.begin(), results.end(), tmap::testing::is_poison<T>));
}

/// The choices and weights of some tokens, as bits.
struct token_results {
  std::vector<std::int32_t> ids;
  std::vector<std::uint32_t> weights;
};

constexpr std::uint32_t routed_experts = 96;
constexpr std::uint32_t choices_each = 6;

token_results route_all(const std::vector<float>& values, const logits& with) {
  const device_array<float> memory(values);
  const std::uint64_t token_count = values.size() / routed_experts;
  route_problem problem{.tokens = token_count, .experts = routed_experts, .k = choices_each, .choices = {}};
  logits from = with;
  from.values = {memory.address(), routed_experts * sizeof(float)};
  problem.choices = from;
  const std::uint64_t bytes = workspace_bytes(problem).value();
  const device_array<unsigned char> scratch(bytes);
  const device_array<std::int32_t> ids(token_count * choices_each);
  const device_array<std::uint32_t> weights(token_count * choices_each);
  const route_results to{.ids = ids.data(), .weights = reinterpret_cast<float*>(weights.data())};
  const result<void> routed =
      route(problem, to, {.where = {cuda::stream_ref{cudaStream_t{}}, {scratch.data(), bytes}}});
  EXPECT_TRUE(routed.has_value()) << to_string(routed.error());
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return {ids.download(), weights.download()};
}

class invariant_tokens : public tmap::testing::gpu_test {};

TEST_F(invariant_tokens, have_the_same_choices_and_weights_among_any_others) {
  std::mt19937_64 random = tmap::testing::run_random(51);
  constexpr std::size_t token_count = 700;
  const std::vector<float> values = random_floats(random, token_count * routed_experts);
  const device_array<float> bias(random_floats(random, routed_experts));
  for (const scoring how : {scoring::softmax_then_top_k, scoring::top_k_then_softmax, scoring::sigmoid}) {
    logits with;
    with.scoring = how;
    with.renormalise = how != scoring::top_k_then_softmax;
    if (how == scoring::sigmoid) {
      with.bias = bias.data();
      with.groups = {8, 4, group_scoring::sum_of_two_largest};
    }
    const token_results whole = route_all(values, with);
    expect_written(whole.ids);
    expect_written(whole.weights);
    for (std::uint32_t round = 0; round < 5; ++round) {
      const std::vector<std::size_t> which = some_of(random, token_count);
      const token_results part = route_all(rows_of(values, routed_experts, which), with);
      EXPECT_EQ(part.ids, rows_of(whole.ids, choices_each, which)) << static_cast<int>(how);
      EXPECT_EQ(part.weights, rows_of(whole.weights, choices_each, which)) << static_cast<int>(how);
    }
  }
}

constexpr std::size_t combined_columns = 264;

/// The operands of `combine`, without gaps.
struct combine_operands {
  std::vector<float> values;
  std::vector<float> base;
  std::vector<std::int32_t> rows;
  std::vector<float> weights;
};

std::vector<std::uint32_t> combine_all(const combine_operands& of) {
  const device_array<float> values(of.values);
  const device_array<float> base(of.base);
  const device_array<std::int32_t> rows(of.rows);
  const device_array<float> weights(of.weights);
  const device_array<std::uint32_t> out(of.base.size());
  constexpr std::uint64_t pitch = combined_columns * sizeof(float);
  const result<void> combined = combine({.tokens = of.base.size() / combined_columns,
                                         .k = choices_each,
                                         .columns = combined_columns,
                                         .row_type = float_type::f32,
                                         .rows = of.values.size() / combined_columns,
                                         .values = {values.address(), pitch},
                                         .row_of_choice = rows.data(),
                                         .weights = weights.data(),
                                         .base = {base.address(), pitch},
                                         .out = {out.address(), pitch}},
                                        {.where = {cuda::stream_ref{cudaStream_t{}}}});
  EXPECT_TRUE(combined.has_value()) << to_string(combined.error());
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return out.download();
}

/// The rows of the experts lie elsewhere in each round, too.
TEST_F(invariant_tokens, have_the_same_sum_among_any_others_wherever_their_rows_are) {
  std::mt19937_64 random = tmap::testing::run_random(52);
  constexpr std::size_t token_count = 400;
  constexpr std::size_t row_count = 900;
  combine_operands all{random_floats(random, row_count * combined_columns),
                       random_floats(random, token_count * combined_columns),
                       {},
                       {}};
  for (std::size_t i = 0; i < token_count * choices_each; ++i) {
    all.rows.push_back(random() % 7 == 0 ? -1 : static_cast<std::int32_t>(random() % row_count));
  }
  all.weights = random_floats(random, all.rows.size());
  const std::vector<std::uint32_t> whole = combine_all(all);
  expect_written(whole);
  for (std::uint32_t round = 0; round < 6; ++round) {
    const std::vector<std::size_t> which = some_of(random, token_count);
    std::vector<std::size_t> row_at(row_count);
    std::iota(row_at.begin(), row_at.end(), std::size_t{0});
    std::shuffle(row_at.begin(), row_at.end(), random);
    std::vector<std::int32_t> place_of(row_count);
    for (std::size_t at = 0; at < row_count; ++at) place_of[row_at[at]] = static_cast<std::int32_t>(at);
    combine_operands part{rows_of(all.values, combined_columns, row_at), rows_of(all.base, combined_columns, which),
                          rows_of(all.rows, choices_each, which), rows_of(all.weights, choices_each, which)};
    for (std::int32_t& row : part.rows) row = row < 0 ? row : place_of[static_cast<std::size_t>(row)];
    EXPECT_EQ(combine_all(part), rows_of(whole, combined_columns, which)) << "round " << round;
  }
}

}  // namespace
}  // namespace tmap::moe::testing
