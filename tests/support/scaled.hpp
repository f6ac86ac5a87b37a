// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace tmap::testing {

/// How much of a long test to run: all, or one part in TMAP_TEST_DIVISOR (under a sanitizer, say).
inline std::uint64_t scaled(std::uint64_t amount) {
  const char* const divisor = std::getenv("TMAP_TEST_DIVISOR");
  return divisor == nullptr ? amount : std::max<std::uint64_t>(1, amount / std::strtoull(divisor, nullptr, 10));
}

}  // namespace tmap::testing
