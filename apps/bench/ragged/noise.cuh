// SPDX-License-Identifier: Apache-2.0
#pragma once

// The noise that fills the benchmarks' memory, so that a check knows the value of each byte.

#include <cstdint>

namespace tmap::apps::bench {

__device__ inline std::uint64_t noise(std::uint64_t z) {
  z = (z + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
  return z ^ (z >> 29);
}

/// Returns a float in [-1, 1). Another `series` gives other floats.
__device__ inline float noise_float(std::uint64_t i, std::uint32_t series) {
  const std::uint64_t bits = noise(i + (std::uint64_t{series} << 40));
  return static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-31f;
}

}  // namespace tmap::apps::bench
