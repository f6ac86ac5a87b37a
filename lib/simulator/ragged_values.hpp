// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/ragged.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

// Numbers of every `value_type`, read as f32 and written rounded, as a GPU rounds them: to nearest
// even, one pattern for every NaN.

namespace tmap::simulator {

float load_value(ragged::value_type type, const std::byte* from);

/// Stores results beyond the largest finite value as the comment of `value_type` describes.
void store_value(ragged::value_type type, float value, std::byte* to);

/// f32 arithmetic of a GPU: a NaN that comes out of it has this one pattern.
inline float canonical(float value) {
  return std::isnan(value) ? std::bit_cast<float>(0x7fffffffu) : value;
}

inline float multiply_add(float a, float b, float c) {
  return canonical(std::fma(a, b, c));
}

/// Returns the larger of both; a NaN wins, and +0 is larger than -0.
inline float larger(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return canonical(std::nanf(""));
  if (a == b) return std::signbit(a) ? b : a;
  return a < b ? b : a;
}

}  // namespace tmap::simulator
