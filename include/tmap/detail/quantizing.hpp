// SPDX-License-Identifier: Apache-2.0
#pragma once

// Returns the scale of numbers that share one as e4m3. All that quantizes uses it, so that the same
// numbers become the same bits everywhere.

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>

namespace tmap::detail {

inline constexpr float largest_e4m3 = 448;
/// The least scale other than 0 would be. Its reciprocal is finite.
inline constexpr float least_scale = 1.17549435e-38f;  // 2^-126

/// Returns the next power of two that is not below `x`, a finite number from `least_scale` on.
TMAP_HOST_DEVICE inline float rounded_up_to_power(float x) {
  std::uint32_t bits{};
  memcpy(&bits, &x, sizeof(bits));
  constexpr std::uint32_t fraction = (1u << 23) - 1;
  bits = (bits + fraction) & ~fraction;
  memcpy(&x, &bits, sizeof(x));
  return x;
}

/// Returns the scale of numbers of which `largest` is the largest absolute value. A number x is
/// stored as e4m3(x * (1 / scale)), to the nearest and saturating.
TMAP_HOST_DEVICE inline float scale_of_largest(float largest, bool is_power_of_two) {
  if (largest == 0) return 1;
  const float exact = largest / largest_e4m3;
  const float scale = exact < least_scale ? least_scale : exact;
  return is_power_of_two ? rounded_up_to_power(scale) : scale;
}

}  // namespace tmap::detail
