// SPDX-License-Identifier: Apache-2.0
#pragma once

// Holds neighbouring values of a row in the registers of a lane, mostly eight.

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
template <value_type From, std::uint32_t Values = chunk_values>
struct chunk {
  using word = value_word<From>;
  static constexpr std::uint32_t bytes = Values * sizeof(word);
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

  __device__ uint4 unit(std::uint32_t i) const {
    return {bits[4 * i], bits[4 * i + 1], bits[4 * i + 2], bits[4 * i + 3]};
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
      alignas(sizeof(std::uint32_t)) word words[Values];
#pragma unroll
      for (std::uint32_t i = 0; i < Values; ++i) {
        words[i] = i < count ? reinterpret_cast<const word*>(address)[i] : word{};
      }
#pragma unroll
      for (std::uint32_t i = 0; i < Values / per_register; ++i) {
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
#pragma unroll
    for (const std::uint32_t held : bits) most_bits = larger(most_bits, held);
    if constexpr (From == value_type::f32) {
      return most_bits;
    } else {
      return max(most_bits & 0xffffu, most_bits >> 16);
    }
  }

  /// Replaces each value by the bits of its own magnitude or the other's, the larger one. The
  /// values are such bits already, or 0.
  __device__ void raise_to(const chunk& other) {
#pragma unroll
    for (std::uint32_t i = 0; i < Values / per_register; ++i) bits[i] = larger(bits[i], other.bits[i]);
  }
  /// Returns the bits of value `i`, which are a magnitude.
  __device__ std::uint32_t magnitude(std::uint32_t i) const {
    if constexpr (From == value_type::f32) {
      return bits[i];
    } else {
      return bits[i / 2] >> i % 2 * 16 & 0xffffu;
    }
  }

  /// Returns the values times `factor`, rounded.
  template <value_type To>
  __device__ f8_chunk rounded(float factor) const {
    static_assert(Values == chunk_values);
    std::uint32_t pairs[Values / 2];
#pragma unroll
    for (std::uint32_t i = 0; i < Values / 2; ++i) {
      pairs[i] = f8_pair<To>((*this)[2 * i] * factor, (*this)[2 * i + 1] * factor);
    }
    return {{pairs[0] | pairs[1] << 16, pairs[2] | pairs[3] << 16}};
  }

 private:
  /// Returns the larger magnitude of each value in a register, the first of which are magnitudes.
  __device__ static std::uint32_t larger(std::uint32_t magnitudes, std::uint32_t values) {
    if constexpr (From == value_type::f32) {
      return max(magnitudes, values & 0x7fffffffu);
    } else {
      return __vmaxu2(magnitudes, values & 0x7fff7fffu);
    }
  }
};

/// Returns the number of values that a chunk has from `column` on.
__device__ inline std::uint32_t chunk_count(std::uint64_t column, std::uint64_t columns) {
  if (column >= columns) return 0;
  return columns - column < chunk_values ? static_cast<std::uint32_t>(columns - column) : chunk_values;
}

}  // namespace tmap::kernels
