// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The floating-point formats the host has no type for, as bits. Every rounding is to nearest, ties
// to even.

namespace tmap::simulator {

inline constexpr std::uint16_t canonical_nan_16 = 0x7fff;
inline constexpr std::uint32_t canonical_nan_32 = 0x7fffffff;
inline constexpr std::uint32_t canonical_nan_tf32 = 0x7fffe000;

float f16_to_float(std::uint16_t bits);
std::uint16_t float_to_f16(float value);
float bf16_to_float(std::uint16_t bits);
std::uint16_t float_to_bf16(float value);

/// FLOAT32 bits with 10 bits of mantissa left. Denormals are rounded like any other number.
std::uint32_t round_to_tf32(std::uint32_t bits);

/// A denormal becomes a zero of the same sign.
constexpr std::uint32_t flush_denormal(std::uint32_t bits) {
  return (bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits;
}

/// Rounds `count` bytes of FLOAT32 in place; `count` is a multiple of 4.
void round_row_to_tf32(std::byte* row, std::uint64_t count);

}  // namespace tmap::simulator
