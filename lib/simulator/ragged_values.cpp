// SPDX-License-Identifier: Apache-2.0
#include "lib/simulator/ragged_values.hpp"

#include "lib/simulator/float_formats.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace tmap::simulator {
namespace {

using ragged::value_type;

struct small_float {
  int mantissa_bits;
  int smallest_exponent;  ///< of a normal number
  std::uint32_t largest;  ///< bits of the largest finite value
};
constexpr small_float e4m3{3, -6, 0x7e};
constexpr small_float e5m2{2, -14, 0x7b};
constexpr std::uint8_t canonical_nan_8 = 0x7f;

template <class Word>
Word load_word(const std::byte* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

template <class Word>
void store_word(Word word, std::byte* to) {
  std::memcpy(to, &word, sizeof word);
}

std::uint8_t float_to_small(small_float format, float value) {
  if (std::isnan(value)) return canonical_nan_8;
  const std::uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isinf(value)) return static_cast<std::uint8_t>(sign | format.largest);
  const double magnitude = std::fabs(double{value});
  const int exponent =
      magnitude == 0 ? format.smallest_exponent : std::max(std::ilogb(magnitude), format.smallest_exponent);
  // A count of units of the last place. One unit too many for this exponent is the next exponent's
  // first number.
  const double units = std::nearbyint(std::ldexp(magnitude, format.mantissa_bits - exponent));
  const double bits = std::ldexp(exponent - format.smallest_exponent, format.mantissa_bits) + units;
  return static_cast<std::uint8_t>(sign | std::min(static_cast<std::uint32_t>(bits), format.largest));
}

float small_to_float(small_float format, bool has_infinity, std::uint8_t bits) {
  const float sign = (bits & 0x80) != 0 ? -1.0f : 1.0f;
  const std::uint32_t magnitude = bits & 0x7fu;
  if (magnitude > format.largest) {
    const bool is_infinite = has_infinity && magnitude == format.largest + 1;
    return is_infinite ? sign * std::numeric_limits<float>::infinity() : canonical(std::nanf(""));
  }
  const std::uint32_t one = 1u << format.mantissa_bits;
  const int exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  const std::uint32_t units = (magnitude & (one - 1)) + (exponent == 0 ? 0 : one);
  const int scale = format.smallest_exponent - format.mantissa_bits + std::max(exponent, 1) - 1;
  return sign * std::ldexp(static_cast<float>(units), scale);
}

std::uint8_t float_to_u8(float value) {
  if (std::isnan(value)) return 0;
  return static_cast<std::uint8_t>(std::clamp(std::nearbyint(value), 0.0f, 255.0f));
}

}  // namespace

float load_value(value_type type, const std::byte* from) {
  switch (type) {
    case value_type::u8: return static_cast<float>(load_word<std::uint8_t>(from));
    case value_type::f16: return f16_to_float(load_word<std::uint16_t>(from));
    case value_type::bf16: return bf16_to_float(load_word<std::uint16_t>(from));
    case value_type::f32: return load_word<float>(from);
    case value_type::f8_e4m3: return small_to_float(e4m3, false, load_word<std::uint8_t>(from));
    case value_type::f8_e5m2: return small_to_float(e5m2, true, load_word<std::uint8_t>(from));
  }
  return 0;
}

void store_value(value_type type, float value, std::byte* to) {
  switch (type) {
    case value_type::u8: return store_word(float_to_u8(value), to);
    case value_type::f16: return store_word(float_to_f16(value), to);
    case value_type::bf16: return store_word(float_to_bf16(value), to);
    case value_type::f32: return store_word(value, to);
    case value_type::f8_e4m3: return store_word(float_to_small(e4m3, value), to);
    case value_type::f8_e5m2: return store_word(float_to_small(e5m2, value), to);
  }
}

}  // namespace tmap::simulator
