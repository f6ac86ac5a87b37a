// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdio>

#include "apps/tmap/pad/outcome.hpp"

namespace tmap::tool {

/// What the tool answers with, as diff(1) and grep(1) do.
inline constexpr int exit_success = 0;
inline constexpr int exit_no = 1;       ///< the answer is no: a rule is broken, maps differ, something does not work
inline constexpr int exit_trouble = 2;  ///< the question could not be asked

/// The exit code of a command, or its sentence on standard error.
inline int finish(const outcome<int>& answer) {
  if (answer) return *answer;
  fmt::print(stderr, "tmap: {}\n", answer.error());
  return exit_trouble;
}

}  // namespace tmap::tool
