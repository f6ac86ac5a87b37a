// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "lib/simulator/ranks/explore.hpp"

namespace tmap::testing {

/// Prints and records how much was explored.
inline void report(const ranks::findings& found) {
  const char* const verdict = !found.failure.empty() ? ", the last of which failed"
                              : found.is_complete    ? ", all there are"
                                                     : "";
  std::printf("%llu executions%s\n", static_cast<unsigned long long>(found.executions), verdict);
  ::testing::Test::RecordProperty("executions", std::to_string(found.executions));
}

/// Expects that no execution of the program fails.
inline void expect_always(const ranks::program& given) {
  const ranks::findings found = ranks::explore_all(given);
  report(found);
  EXPECT_EQ(found.failure, "");
  EXPECT_TRUE(found.is_complete) << "stopped after " << found.executions << " executions";
}

/// Expects that the model finds an execution of the program that fails as `why` says.
inline void expect_failure(const ranks::program& given, const std::string& why) {
  const ranks::findings found = ranks::explore_all(given);
  report(found);
  EXPECT_NE(found.failure.find(why), std::string::npos) << "found: " << found.failure;
}

}  // namespace tmap::testing
