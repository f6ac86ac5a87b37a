// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "device/child_process.hpp"

// Runs the seeded cases that end a CUDA context, each in a process of its own.

namespace tmap::testing {

inline constexpr const char* child_argument = "--seeded-case=";

/// A child's exit code names the error that ended its context, if any.
enum child_code : int { fine = 0, illegal_instruction = 15, misaligned_address = 16, other = 99 };

/// Runs one case in the child.
int run_child_case(const std::string& name);

inline int run_in_child(const std::string& name) {
  return run_self(child_argument + name);
}

}  // namespace tmap::testing
