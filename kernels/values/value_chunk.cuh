// SPDX-License-Identifier: Apache-2.0
#pragma once

// Holds eight neighbouring values of a row in the registers of a lane.

#include "kernels/values/value_words.cuh"

#include <cstdint>

namespace tmap::kernels {

inline constexpr std::uint32_t chunk_values = 8;
inline constexpr std::uint32_t lane_bytes = 128;  ///< of values that a lane holds at once

/// A chunk of 8-bit numbers, four in a register.
struct f8_chunk {
  uint2 bits;

  /// Stores the first `count` numbers. With `IsWide`, there are all or none, and the address is a
  /// multiple of 8.
  template <bool IsWide>
  __device__ void store(std::uint64_t address, std::uint32_t count) const {
    if constexpr (IsWide) {
      if (count != 0) *reinterpret_cast<uint2*>(address) = bits;
    } else {
#pragma unroll
      for (std::uint32_t i = 0; i < chunk_values; ++i) {
        const auto value = static_cast<std::uint8_t>((i < 4 ? bits.x : bits.y) >> i % 4 * 8);
        if (i < count) reinterpret_cast<std::uint8_t*>(address)[i] = value;
      }
    }
  }
};

/// Values next to each other in a row, in the registers of a lane. A register holds all that fit in
/// it: a loop that loads ahead would else need one for each value.
template <value_type From>
struct chunk {
  using word = value_word<From>;
  static constexpr std::uint32_t bytes = chunk_values * sizeof(word);
  static constexpr std::uint32_t per_register = sizeof(std::uint32_t) / sizeof(word);
  /// The chunks that a lane holds at once.
  static constexpr std::uint32_t most = lane_bytes / bytes;

  std::uint32_t bits[bytes / sizeof(std::uint32_t)];

  /// Sets 16 bytes of the values: the unit `i`.
  __device__ void set_unit(std::uint32_t i, const uint4& unit) {
    bits[4 * i] = unit.x;
    bits[4 * i + 1] = unit.y;
    bits[4 * i + 2] = unit.z;
    bits[4 * i + 3] = unit.w;
  }

  /// Loads the first `count` values. The others become 0. With `IsWide`, there are all or none, and
  /// the address is a multiple of 16.
  template <bool IsWide>
  __device__ void load(std::uint64_t address, std::uint32_t count) {
    if constexpr (IsWide) {
#pragma unroll
      for (std::uint32_t i = 0; i < bytes / sizeof(uint4); ++i) {
        uint4 unit{};
        if (count != 0) unit = __ldcs(reinterpret_cast<const uint4*>(address) + i);
        set_unit(i, unit);
      }
    } else {
      alignas(sizeof(std::uint32_t)) word words[chunk_values];
#pragma unroll
      for (std::uint32_t i = 0; i < chunk_values; ++i) {
        words[i] = i < count ? reinterpret_cast<const word*>(address)[i] : word{};
      }
#pragma unroll
      for (std::uint32_t i = 0; i < chunk_values / per_register; ++i) {
        bits[i] = reinterpret_cast<const std::uint32_t*>(words)[i];
      }
    }
  }

  /// Returns value `i`.
  __device__ float operator[](std::uint32_t i) const {
    const std::uint32_t held = bits[i / per_register];
    if constexpr (From == value_type::f32) return __uint_as_float(held);
    if constexpr (From == value_type::bf16) return __uint_as_float(i % 2 == 0 ? held << 16 : held & 0xffff0000u);
    if constexpr (From == value_type::f16) return to_float<From>(static_cast<word>(held >> i % 2 * 16));
  }

  /// Returns the bits of the largest magnitude, without a sign. Those of infinities and NaNs are
  /// larger than all others.
  __device__ std::uint32_t top() const {
    std::uint32_t most_bits = 0;
    if constexpr (From == value_type::f32) {
#pragma unroll
      for (const std::uint32_t value : bits) most_bits = max(most_bits, value & 0x7fffffffu);
      return most_bits;
    } else {
#pragma unroll
      for (const std::uint32_t both : bits) most_bits = __vmaxu2(most_bits, both & 0x7fff7fffu);
      return max(most_bits & 0xffffu, most_bits >> 16);
    }
  }

  /// Returns the values times `factor`, rounded.
  template <value_type To>
  __device__ f8_chunk rounded(float factor) const {
    std::uint32_t pairs[chunk_values / 2];
#pragma unroll
    for (std::uint32_t i = 0; i < chunk_values / 2; ++i) {
      const float2 both{(*this)[2 * i] * factor, (*this)[2 * i + 1] * factor};
      pairs[i] = __nv_cvt_float2_to_fp8x2(both, __NV_SATFINITE, To == value_type::f8_e4m3 ? __NV_E4M3 : __NV_E5M2);
    }
    return {{pairs[0] | pairs[1] << 16, pairs[2] | pairs[3] << 16}};
  }
};

/// Returns the number of values that a chunk has from `column` on.
__device__ inline std::uint32_t chunk_count(std::uint64_t column, std::uint64_t columns) {
  if (column >= columns) return 0;
  return columns - column < chunk_values ? static_cast<std::uint32_t>(columns - column) : chunk_values;
}

}  // namespace tmap::kernels
