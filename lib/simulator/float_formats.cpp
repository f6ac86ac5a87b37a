// SPDX-License-Identifier: Apache-2.0
#include "lib/simulator/float_formats.hpp"

#include <bit>
#include <cstring>

namespace tmap::simulator {
namespace {

constexpr std::uint32_t infinity_32 = 0x7f800000;
constexpr std::uint32_t first_normal_f16 = 0x38800000;    // 2^-14
constexpr std::uint32_t rounds_to_infinity = 0x477ff000;  // 65520
constexpr std::uint32_t exponent_gap = (127u - 15u) << 23;

/// Drops the low `bits` bits, to nearest even. A carry into the exponent gives the right number.
constexpr std::uint32_t drop_bits(std::uint32_t value, std::uint32_t bits) {
  const std::uint32_t below_half = (1u << (bits - 1)) - 1;
  return (value + below_half + ((value >> bits) & 1)) >> bits;
}

/// Adding one half lines the last mantissa bit up with 2^-24, the unit of an f16 denormal.
std::uint32_t denormal_f16(std::uint32_t magnitude) {
  return std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<std::uint32_t>(0.5f);
}

}  // namespace

float f16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1f;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | infinity_32 | mantissa << 13);
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign == 0 ? magnitude : -magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent << 23 | mantissa << 13) + exponent_gap));
}

std::uint16_t float_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > infinity_32) return canonical_nan_16;
  if (magnitude >= rounds_to_infinity) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < first_normal_f16) return static_cast<std::uint16_t>(sign | denormal_f16(magnitude));
  return static_cast<std::uint16_t>(sign | drop_bits(magnitude - exponent_gap, 13));
}

float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > infinity_32) return canonical_nan_16;
  return static_cast<std::uint16_t>((bits >> 16 & 0x8000u) | drop_bits(bits & 0x7fffffffu, 16));
}

std::uint32_t round_to_tf32(std::uint32_t bits) {
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > infinity_32) return canonical_nan_tf32;
  return (bits & 0x80000000u) | drop_bits(magnitude, 13) << 13;
}

void round_row_to_tf32(std::byte* row, std::uint64_t count) {
  for (std::uint64_t done = 0; done < count; done += 4) {
    std::uint32_t value;
    std::memcpy(&value, row + done, 4);
    value = round_to_tf32(value);
    std::memcpy(row + done, &value, 4);
  }
}

}  // namespace tmap::simulator
