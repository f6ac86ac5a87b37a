// SPDX-License-Identifier: Apache-2.0
#pragma once

// Computes the scale of a block of `quantize` (ragged.hpp), for every engine.

#include <tmap/config.hpp>
#include <tmap/ragged.hpp>

#include <cuda/std/bit>

#include <cstdint>

namespace tmap::detail {

inline constexpr std::uint32_t scale_block_width = 128;

TMAP_HOST_DEVICE constexpr float largest_f8(ragged::value_type type) {
  return type == ragged::value_type::f8_e4m3 ? 448.0f : 57344.0f;
}

/// A block's scale, and the factor of its elements. Both are normal numbers, or NaN.
struct block_scale {
  float scale;
  float inverse;
};

/// Rounds a positive normal number up to a power of two.
TMAP_HOST_DEVICE inline float round_up_to_power_of_two(float value) {
  constexpr std::uint32_t mantissa = 0x7fffffu;
  const auto bits = cuda::std::bit_cast<std::uint32_t>(value);
  return cuda::std::bit_cast<float>((bits + mantissa) & ~mantissa);
}

/// Returns the scale of a block. `top` is the largest magnitude in it, and not finite if a NaN or
/// an infinity is in it.
TMAP_HOST_DEVICE inline block_scale scale_of(float top, float most, bool powers_of_two) {
  constexpr float largest = 3.402823466e38f;
  constexpr float smallest_normal = 1.175494351e-38f;
  if (!(top <= largest)) {
    const auto nan = cuda::std::bit_cast<float>(0x7fffffffu);
    return {nan, nan};
  }
  if (top == 0) return {1, 1};
  const float quotient = top / most;
  const float exact = quotient < smallest_normal ? smallest_normal : quotient;
  const float scale = powers_of_two ? round_up_to_power_of_two(exact) : exact;
  return {scale, 1 / scale};
}

}  // namespace tmap::detail
