// SPDX-License-Identifier: Apache-2.0
// Tests the reference that the device tests compare with, on results worked out by hand.
#include <gtest/gtest.h>

#include "moe/moe_reference.hpp"

namespace tmap::moe::testing {
namespace {

TEST(moe_reference, sorts_by_expert_in_the_order_of_choices) {
  const sorted_choices got = sort_by_expert({3, 3, 2}, {2, 0, 0, 2, -1, 7}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(got.counts, (std::vector{2, 0, 2}));
  EXPECT_EQ(got.begins, (std::vector{0, 2, 2, 4}));
  EXPECT_EQ(got.ends, (std::vector{2, 2, 4}));
  EXPECT_EQ(got.row_of_choice, (std::vector{2, 0, 1, 3, -1, -1}));
  EXPECT_EQ(got.token_of_row, (std::vector{0, 1, 0, 1, -1, -1}));
  EXPECT_EQ(got.weight_of_row, (std::vector<float>{2, 3, 1, 4, 0, 0}));
  EXPECT_TRUE(got.statuses[4].is_empty());
  EXPECT_TRUE(got.statuses[5].has(fault::expert));
  EXPECT_EQ(got.header.bad_count, 1u);
  EXPECT_EQ(got.header.first_bad, 5u);
  EXPECT_EQ(got.header.empty_count, 1u);
}

TEST(moe_reference, leaves_gaps_and_skips_what_does_not_fit) {
  const sorted_choices got = sort_by_expert({5, 2, 1, 2, 4}, {0, 1, 1, 1, 0}, {});
  EXPECT_EQ(got.begins, (std::vector{0, 2, 4}));
  EXPECT_EQ(got.ends, (std::vector{2, 4}));
  EXPECT_EQ(got.row_of_choice, (std::vector{0, 2, 3, -1, 1}));
  EXPECT_TRUE(got.statuses[3].has(fault::capacity));
  EXPECT_EQ(got.counts, (std::vector{2, 3}));
  EXPECT_EQ(sort_by_expert({3, 2, 1, 4}, {1, 0, 1}, {}).token_of_row, (std::vector{1, -1, -1, -1, 0, 2, -1, -1}));
}

TEST(moe_reference, chooses_the_lower_of_equal_experts) {
  const token_choices got = choose({1, 2, 2, 0}, {}, {}, 3);
  EXPECT_EQ(got.ids, (std::vector{1, 2, 0}));
  EXPECT_FALSE(got.is_unclear);
  EXPECT_DOUBLE_EQ(got.weights[0] / got.weights[2], std::exp(1.0));
  EXPECT_TRUE(choose({1, 1 + 1e-7, 0}, {}, {}, 1).is_unclear);
}

TEST(moe_reference, weighs_by_each_scoring) {
  score_settings with{.scoring = scoring::top_k_then_softmax};
  EXPECT_EQ(choose({5, 5, 5}, {}, with, 2).weights, (std::vector{0.5, 0.5}));
  with = {.scoring = scoring::sigmoid, .renormalise = true, .scale = 4};
  EXPECT_EQ(choose({0, 0, -100}, {0, 0, 2}, with, 2).ids, (std::vector{2, 0}));
  EXPECT_NEAR(choose({0, 0, -100}, {0, 0, 2}, with, 2).weights[1], 4, 1e-9);
  EXPECT_EQ(choose({NAN, NAN}, {}, {}, 2).weights, (std::vector{0.5, 0.5}));
}

TEST(moe_reference, takes_experts_of_the_best_groups) {
  score_settings with;
  with.groups = {.count = 2, .chosen = 1, .score = group_scoring::largest};
  EXPECT_EQ(choose({9, 0, 8, 8}, {}, with, 2).ids, (std::vector{0, 1}));
  with.groups.score = group_scoring::sum_of_two_largest;
  EXPECT_EQ(choose({9, 0, 8, 8}, {}, with, 2).ids, (std::vector{2, 3}));
}

}  // namespace
}  // namespace tmap::moe::testing
