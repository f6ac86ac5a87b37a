// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace tmap::testing {

/// Returns the amount of a long test to run: all of it, or one part in TMAP_TEST_DIVISOR (for
/// example, under a sanitizer).
inline std::uint64_t scaled(std::uint64_t amount) {
  const char* const divisor = std::getenv("TMAP_TEST_DIVISOR");
  return divisor == nullptr ? amount : std::max<std::uint64_t>(1, amount / std::strtoull(divisor, nullptr, 10));
}

}  // namespace tmap::testing
