// SPDX-License-Identifier: Apache-2.0
// Tests the mixture-of-experts sample on a GPU. One graph runs with different tokens, with experts
// that get no tokens, and with an expert that gets all of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "apps/samples/moe_layer/layer.hpp"
#include "apps/samples/moe_layer/plain.hpp"
#include "gemm/gemm_fixture.hpp"

namespace moe {
namespace {

/// Holds a layer and its captured graph.
class captured {
 public:
  captured(const layer_sizes& sizes, const layer_weights& weights) : weights_(weights), layer_(layer::make(sizes)) {
    if (layer_) is_set_ = layer_->set_weights(weights);
    if (is_set_) graph_.emplace(layer_graph::capture(*layer_));
  }
  bool is_ready() const { return graph_.has_value() && graph_->has_value(); }

  /// Poisons every byte of the results, replays the graph, and returns what it wrote.
  layer_results replay(const std::vector<float>& tokens) const {
    EXPECT_TRUE(layer_->set_tokens(tokens).has_value());
    EXPECT_TRUE(layer_->poison().has_value());
    EXPECT_TRUE((*graph_)->replay().has_value());
    auto got = layer_->results();
    EXPECT_TRUE(got.has_value());
    return got ? *got : layer_results{};
  }
  /// Replays the graph and compares the results with the plain layer.
  layer_results expect_right(const std::vector<float>& tokens, const std::string& what) const {
    layer_results got = replay(tokens);
    const comparison found = compare(layer_->sizes(), weights_, tokens, got);
    EXPECT_EQ(found.fault, "") << what << ", largest error " << found.worst_error;
    const auto header = layer_->header();
    EXPECT_TRUE(header.has_value() && header->bad_count == 0 && header->empty_count == 0) << what;
    const auto statuses = layer_->statuses();
    EXPECT_TRUE(statuses.has_value()) << what;
    for (std::size_t i = 0; statuses && i < statuses->size(); ++i) {
      const bool is_empty = got.sizes[i % got.sizes.size()] == 0;
      EXPECT_EQ((*statuses)[i].bits, is_empty ? tmap::gemm::group_status::empty_bit : 0u) << what << ", " << i;
    }
    return got;
  }

 private:
  layer_weights weights_;
  tmap::result<layer> layer_;
  tmap::result<void> is_set_{tmap::failure(tmap::error{})};
  std::optional<tmap::result<layer_graph>> graph_;
};

using moe_layer = tmap::gemm::testing::gemm_test;
class moe_layer_of_size : public moe_layer, public ::testing::WithParamInterface<layer_sizes> {};

TEST_P(moe_layer_of_size, is_right_for_other_tokens_each_time) {
  const captured made(GetParam(), random_weights(GetParam(), 1));
  ASSERT_TRUE(made.is_ready());
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    made.expect_right(random_tokens(GetParam(), seed), "tokens " + std::to_string(seed));
  }
}

INSTANTIATE_TEST_SUITE_P(sizes, moe_layer_of_size,
                         ::testing::Values(layer_sizes{1, 2, 8, 16}, layer_sizes{3, 7, 24, 16},
                                           layer_sizes{64, 8, 64, 64}, layer_sizes{129, 2, 136, 48},
                                           layer_sizes{200, 16, 72, 144}, layer_sizes{1000, 64, 64, 32},
                                           layer_sizes{150, 300, 32, 16}, layer_sizes{512, 8, 256, 512},
                                           layer_sizes{64, 8, 128, 128, true}, layer_sizes{129, 4, 208, 256, true}));

constexpr layer_sizes small{96, 8, 64, 64};

TEST_F(moe_layer, a_hundred_replays) {
  const captured made(small, random_weights(small, 2));
  ASSERT_TRUE(made.is_ready());
  for (std::uint64_t i = 0; i < 100; ++i) {
    made.expect_right(random_tokens(small, i), "replay " + std::to_string(i));
    if (HasFailure()) return;
  }
}

TEST_F(moe_layer, the_same_tokens_give_the_same_bytes) {
  const captured made(small, random_weights(small, 2));
  ASSERT_TRUE(made.is_ready());
  const layer_results first = made.replay(random_tokens(small, 1));
  const layer_results other = made.replay(random_tokens(small, 2));
  const layer_results again = made.replay(random_tokens(small, 1));
  EXPECT_EQ(first.experts, again.experts);
  EXPECT_EQ(first.shares, again.shares);
  EXPECT_EQ(first.row_of, again.row_of);
  EXPECT_EQ(first.output, again.output);
  EXPECT_NE(first.output, other.output);
}

TEST_F(moe_layer, equal_logits_send_all_tokens_to_the_first_two_experts) {
  layer_weights weights = random_weights(small, 2);
  std::fill(weights.router.begin(), weights.router.end(), 0.0f);
  const captured made(small, weights);
  ASSERT_TRUE(made.is_ready());
  const layer_results got = made.expect_right(random_tokens(small, 1), "equal logits");
  EXPECT_EQ(got.sizes, (std::vector<std::int32_t>{96, 96, 0, 0, 0, 0, 0, 0}));
  for (std::size_t i = 0; i < got.experts.size(); ++i) EXPECT_EQ(got.experts[i], static_cast<std::int32_t>(i % 2));
  EXPECT_EQ(got.shares, std::vector<float>(192, 0.5f));
}

/// All tokens and weights are positive, except that `sign` sets the sign of expert 5's weights.
/// Expert 5 therefore gets all tokens, or none.
void run_with_expert_five(float sign, std::int32_t tokens_of_five) {
  layer_weights weights = random_weights(small, 2);
  for (float& value : weights.router) value = std::abs(value);
  std::fill_n(weights.router.begin() + 5 * small.width, small.width, sign * 8);
  std::vector<float> tokens = random_tokens(small, 3);
  for (float& value : tokens) value = std::abs(value);
  const captured made(small, weights);
  ASSERT_TRUE(made.is_ready());
  EXPECT_EQ(made.expect_right(tokens, "expert 5").sizes[5], tokens_of_five);
}

TEST_F(moe_layer, all_tokens_to_one_expert) {
  run_with_expert_five(1, 96);
}

TEST_F(moe_layer, an_expert_without_tokens) {
  run_with_expert_five(-1, 0);
}

TEST_F(moe_layer, a_token_of_nans_spoils_no_other) {
  const captured made(small, random_weights(small, 2));
  ASSERT_TRUE(made.is_ready());
  std::vector<float> tokens = random_tokens(small, 1);
  const layer_results want = made.replay(tokens);
  std::fill_n(tokens.begin() + 7 * small.width, small.width, std::numeric_limits<float>::quiet_NaN());
  layer_results got = made.replay(tokens);
  EXPECT_EQ(got.experts[14], 0);
  EXPECT_EQ(got.experts[15], 1);
  for (std::uint32_t i = 7 * small.width; i < 8 * small.width; ++i) {
    EXPECT_TRUE(std::isnan(got.output[i]));
    got.output[i] = want.output[i];
  }
  EXPECT_EQ(got.output, want.output);
}

}  // namespace
}  // namespace moe
