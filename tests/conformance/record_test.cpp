// SPDX-License-Identifier: Apache-2.0
#include "conformance/case_source.hpp"
#include "conformance/golden_record.hpp"

#include <tmap/simulator.hpp>

#include <gtest/gtest.h>

namespace tmap::conformance {
namespace {

TEST(golden_record, covers_at_least_twenty_thousand_tiles) {
  EXPECT_GE(read_record(record_path()).digests.size(), 20'000u);
  EXPECT_NE(read_record(record_path()).origin.find("H200"), std::string::npos);
}

TEST(golden_record, is_what_the_fidelity_table_counts) {
  auto expected = count_features(all_cases());
  for (const auto& row : simulator::fidelity_table()) {
    EXPECT_EQ(row.cases, expected[row.feature]) << row.feature;
    EXPECT_EQ(row.fidelity, simulator::fidelity::verified_on_hardware) << row.feature;
    expected.erase(row.feature);
  }
  for (const auto& [feature, cases] : expected) ADD_FAILURE() << feature << " is missing, " << cases << " cases";
}

TEST(cases, visit_every_feature_often) {
  const auto counts = count_features(all_cases());
  EXPECT_EQ(counts.size(), 46u);
  for (const auto& [feature, cases] : counts) EXPECT_GE(cases, 100u) << feature;
}

TEST(cases, are_the_same_each_time) {
  EXPECT_EQ(digest_of_cases(all_cases()), digest_of_cases(all_cases()));
}

}  // namespace
}  // namespace tmap::conformance
