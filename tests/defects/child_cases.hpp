// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "device/child_process.hpp"

// Seeded runs that end a CUDA context: each in a process of its own.

namespace tmap::testing {

inline constexpr const char* child_argument = "--seeded-case=";

/// What a child says through its exit code: which error, if any, became of its context.
enum child_code : int { fine = 0, illegal_instruction = 15, misaligned_address = 16, other = 99 };

/// In the child.
int run_child_case(const std::string& name);

inline int run_in_child(const std::string& name) {
  return run_self(child_argument + name);
}

}  // namespace tmap::testing
