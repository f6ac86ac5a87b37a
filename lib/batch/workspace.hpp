// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lib/support/arguments.hpp"

namespace tmap {

/// Every part of a workspace begins at a multiple of this; so does what cudaMalloc returns.
inline constexpr std::uint64_t workspace_alignment = 256;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// The names of a call's workspace arguments.
struct workspace_names {
  const support::argument& memory;
  const support::argument& bytes;
};

inline void check_workspace(support::arguments& given, const void* memory, std::uint64_t bytes, std::uint64_t needed,
                            const workspace_names& names) {
  given.at_least(bytes, needed, names.bytes);
  given.pointer(memory, workspace_alignment, names.memory);
}

}  // namespace tmap
