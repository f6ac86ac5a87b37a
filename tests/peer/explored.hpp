// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "lib/simulator/ranks/explore.hpp"
#include "support/run_seed.hpp"

namespace tmap::testing {

/// Prints and records how much was explored.
inline void report(const ranks::findings& found) {
  const char* const verdict = !found.failure.empty() ? ", the last of which failed"
                              : found.is_complete    ? ", all there are"
                                                     : "";
  std::printf("%llu executions%s\n", static_cast<unsigned long long>(found.executions), verdict);
  if (!found.failure.empty()) std::printf("  %s\n", found.failure.substr(0, found.failure.find('\n')).c_str());
  ::testing::Test::RecordProperty("executions", std::to_string(found.executions));
}

/// Expects that no execution of the program fails.
inline void expect_always(const ranks::program& given) {
  const ranks::findings found = ranks::explore_all(given);
  report(found);
  EXPECT_EQ(found.failure, "");
  EXPECT_TRUE(found.is_complete) << "stopped after " << found.executions << " executions";
}

/// Expects that the model finds an execution of the program whose failure contains `why`.
inline void expect_failure(const ranks::program& given, const std::string& why) {
  const ranks::findings found = ranks::explore_all(given);
  report(found);
  EXPECT_NE(found.failure, "");
  EXPECT_NE(found.failure.find(why), std::string::npos) << "found: " << found.failure;
}

/// Expects that random executions of the program do not fail.
inline void expect_at_random(const ranks::program& given, std::uint64_t executions) {
  const ranks::findings found = ranks::explore_random(given, run_random(executions)(), executions);
  report(found);
  EXPECT_EQ(found.failure, "");
}

/// Expects that the model finds a failure of a program that is too large for all its executions.
inline void expect_failure_at_random(const ranks::program& given, const std::string& why) {
  const ranks::findings found = ranks::explore_random(given, 1, 3000);
  report(found);
  EXPECT_NE(found.failure, "");
  EXPECT_NE(found.failure.find(why), std::string::npos) << "found: " << found.failure.substr(0, 500);
}

}  // namespace tmap::testing
