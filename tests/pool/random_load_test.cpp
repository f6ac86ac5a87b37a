// SPDX-License-Identifier: Apache-2.0
#include "pool/random_load.hpp"

#include <gtest/gtest.h>

#include "pool/faults.hpp"
#include "support/scaled.hpp"

// Tests random orders of all operations: no batch sees another batch's maps, and with a fault in
// the pool some do.

namespace tmap::testing {
namespace {

constexpr std::uint64_t takes_of_a_load = 2000;

TEST(random_load, a_million_recycled_slots_without_a_foreign_id) {
  const std::uint64_t wanted = scaled(1000000);
  load_report sum;
  for (std::uint64_t seed = 1; sum.recycled_slots < wanted; ++seed) {
    const load_report load = run_random_load(fake_streams::calls(), seed, takes_of_a_load);
    ASSERT_EQ(load.foreign_ids, 0u) << "seed " << seed;
    ASSERT_EQ(load.problem, "") << "seed " << seed;
    sum.recycled_slots += load.recycled_slots;
    sum.refused_takes += load.refused_takes;
    sum.replays += load.replays;
    sum.released_in_captures += load.released_in_captures;
  }
  EXPECT_GT(sum.refused_takes, 0u) << "the pool was full at times";
  EXPECT_GT(sum.replays, 0u);
  EXPECT_GT(sum.released_in_captures, 0u);
  RecordProperty("recycled_slots", static_cast<int>(sum.recycled_slots));
}

TEST(random_load, where_memory_runs_out_nothing_is_lost) {
  const std::uint64_t wanted = scaled(20000);
  load_report sum;
  for (std::uint64_t seed = 1; sum.without_memory < wanted; ++seed) {
    const load_report load = run_random_load(fake_streams::calls(), seed, takes_of_a_load, true);
    ASSERT_EQ(load.foreign_ids, 0u) << "seed " << seed;
    ASSERT_EQ(load.problem, "") << "seed " << seed;
    sum.without_memory += load.without_memory;
    sum.released_in_captures += load.released_in_captures;
  }
  EXPECT_GT(sum.released_in_captures, 0u);
}

class random_load_with_fault : public ::testing::TestWithParam<fault> {};

TEST_P(random_load_with_fault, foreign_ids_are_seen) {
  std::uint64_t foreign_ids = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    foreign_ids += run_random_load(GetParam().calls, seed, takes_of_a_load).foreign_ids;
  }
  EXPECT_GT(foreign_ids, 0u);
  RecordProperty("foreign_ids", static_cast<int>(foreign_ids));
}

INSTANTIATE_TEST_SUITE_P(pool, random_load_with_fault, ::testing::ValuesIn(faults), name_of);
INSTANTIATE_TEST_SUITE_P(captures, random_load_with_fault, ::testing::Values(see_no_capture()), name_of);

}  // namespace
}  // namespace tmap::testing
