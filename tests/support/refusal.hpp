// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks that a refused argument comes with its name and a sentence that gives the error and the
// legal values.

#include <tmap/error.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace tmap::testing {

/// Returns the name in a refusal; empty if the error does not refuse an argument.
template <class T>
std::string refused_argument(const result<T>& answer) {
  if (answer || answer.error().code != status::invalid_argument) return {};
  return answer.error().argument.c_str();
}

/// Expects that the call refused the argument of this name in a whole sentence. `what` names the
/// case of the test.
template <class T>
void expect_refused(const result<T>& answer, const std::string& name, const std::string& what = {}) {
  ASSERT_FALSE(answer.has_value()) << name << ", " << what;
  const std::string text = to_string(answer.error());
  EXPECT_EQ(answer.error().code, status::invalid_argument) << what << ": " << text;
  EXPECT_EQ(answer.error().argument.view(), name) << what << ": " << text;
  EXPECT_EQ(text.rfind("`" + name + "` ", 0), 0u) << what << ": " << text;
  EXPECT_GT(text.size(), name.size() + std::string{"`` is null"}.size()) << what;
  EXPECT_EQ(text.find('{'), std::string::npos) << text;
}

/// Does the same and compares the numbers.
template <class T>
void expect_refused(const result<T>& answer, const std::string& name, std::uint64_t found, std::uint64_t allowed,
                    const std::string& what) {
  expect_refused(answer, name, what);
  if (answer) return;
  EXPECT_EQ(answer.error().found, found) << what;
  EXPECT_EQ(answer.error().allowed, allowed) << what;
}

}  // namespace tmap::testing
