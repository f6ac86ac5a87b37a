// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "apps/support/terminal.hpp"
#include "apps/tmap/pad/outcome.hpp"

namespace tmap::tool {

// The exit codes of the tool, as diff(1) and grep(1) have them.
inline constexpr int exit_success = 0;
inline constexpr int exit_no = 1;       ///< the result is no: a rule is broken, maps differ, something does not work
inline constexpr int exit_trouble = 2;  ///< the command could not run

/// Prints one sentence on standard error.
inline void print_error(const std::string& sentence) {
  fmt::print(stderr, "{} {}\n", apps::styled_error(apps::style::bad, "tmap:"), sentence);
}

/// Returns the exit code of a command, or prints its sentence on standard error.
inline int finish(const outcome<int>& result) {
  if (result) return *result;
  print_error(result.error());
  return exit_trouble;
}

}  // namespace tmap::tool
