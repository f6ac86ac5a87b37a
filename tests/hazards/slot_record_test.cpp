// SPDX-License-Identifier: Apache-2.0
#include <tmap/slot_record.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tmap {
namespace {

#if defined(TMAP_CHECK_HAZARDS)
static_assert(checks_hazards);
#else
static_assert(!checks_hazards);
#endif

TEST(slot_record, every_hazard_has_a_name_of_its_own) {
  std::set<std::string> names;
  for (std::uint32_t i = 0; i < hazard_count; ++i) names.insert(name(static_cast<hazard>(i)));
  EXPECT_EQ(names.size(), hazard_count);
  EXPECT_EQ(names.count("invalid"), 0u);
  EXPECT_STREQ(name(static_cast<hazard>(hazard_count)), "invalid");
}

// Zeroed memory must mean that the slot was never lent and nothing was reported.
TEST(slot_record, zero_is_the_beginning) {
  const slot_record record{};
  EXPECT_EQ(record.generation, 0u);
  EXPECT_EQ(record.edition & (edition_written | edition_published), 0u);
  EXPECT_EQ(hazard_log{}.first_complete, 0u);
}

}  // namespace
}  // namespace tmap
