// SPDX-License-Identifier: Apache-2.0
// Tests the known-answer test: the modes that it covers, and that it detects any wrong map.
#include "lib/service/self_test.hpp"

#include <tmap/validate.hpp>

#include <set>

#include "service/service_fixture.hpp"

namespace tmap::testing {
namespace {

using self_test = service_fixture;

constexpr std::uint64_t templates = 2;

TEST_F(self_test, golden_specs_are_legal_and_reach_every_mode) {
  std::set<std::uint32_t> ranks;
  std::set<interleave> interleaves;
  std::set<swizzle> swizzles;
  std::set<l2_promotion> promotions;
  std::set<std::uint64_t> dims;
  for (const tensor_spec& spec : service::golden_specs()) {
    EXPECT_TRUE(broken_rules(spec).empty()) << to_string(validate(spec));
    ranks.insert(spec.rank);
    interleaves.insert(spec.interleave);
    swizzles.insert(spec.swizzle);
    promotions.insert(spec.l2_promotion);
    dims.insert(spec.global_dim, spec.global_dim + spec.rank);
  }
  EXPECT_EQ(ranks.size(), max_rank);
  EXPECT_EQ(interleaves.size(), 3u);
  EXPECT_EQ(swizzles.size(), 4u);
  EXPECT_EQ(promotions.size(), 4u);
  EXPECT_TRUE(dims.contains(1));
  EXPECT_TRUE(dims.contains(std::uint64_t{1} << 31));
}

TEST_F(self_test, names_the_first_wrong_map) {
  const std::uint64_t cases = templates * service::golden_specs().size();
  for (std::uint64_t wrong = 1; wrong <= cases; ++wrong) {
    machine.wrong_map = wrong;
    const auto refused = try_make({.capacity = 8});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, status::self_test_failed);
    EXPECT_EQ(refused.error().found, wrong);
    EXPECT_EQ(refused.error().allowed, cases);
    EXPECT_TRUE(machine.is_clean());
  }
  EXPECT_EQ(log.count(log_level::error), cases);
  EXPECT_TRUE(try_make({.capacity = 8}).has_value());
  EXPECT_TRUE(log.has(log_level::info, "passed"));
}

TEST_F(self_test, passes_where_maps_are_marked_as_large_and_none_begins_as_zeros) {
  machine.is_blackwell = true;
  EXPECT_TRUE(try_make({.capacity = 8}).has_value());
  const std::uint64_t cases = service::golden_specs().size();
  for (const std::uint64_t wrong : {std::uint64_t{1}, cases}) {
    machine.push_context();
    machine.wrong_map = wrong;
    const auto refused = try_make({.capacity = 8});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().found, wrong);
  }
  machine.push_context();
  machine.wrong_map = cases + 1;
  EXPECT_TRUE(try_make({.capacity = 8}).has_value()) << "no more maps were encoded";
}

TEST_F(self_test, runs_once_for_each_context) {
  const auto wrong_after = [&] {
    machine.wrong_map = 1;
    const bool was_made = try_make({.capacity = 8}).has_value();
    machine.wrong_map = 0;
    return was_made;
  };
  EXPECT_FALSE(wrong_after());
  EXPECT_TRUE(try_make({.capacity = 8}).has_value());
  EXPECT_TRUE(wrong_after());
  machine.push_context();
  EXPECT_FALSE(wrong_after());
}

TEST_F(self_test, can_be_left_out) {
  machine.wrong_map = 1;
  EXPECT_TRUE(try_make({.capacity = 8, .self_test = false}).has_value());
  EXPECT_EQ(machine.wrong_map, 1u);
}

}  // namespace
}  // namespace tmap::testing
