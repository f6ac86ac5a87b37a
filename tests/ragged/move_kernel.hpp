// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "device/gpu_fixture.hpp"
#include "kernels/ragged_launch.hpp"
#include "support/random_spec.hpp"

// Shared parts of the tests of the moving kernels: the device, random bytes, and the sizes of both
// memories.

namespace tmap::kernels {

using testing::device_array;
using testing::random_source;

class move_kernel : public testing::gpu_test {
 protected:
  static device_shape shape() {
    cudaDeviceProp properties{};
    EXPECT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    return {static_cast<std::uint32_t>(properties.multiProcessorCount),
            static_cast<std::uint32_t>(properties.sharedMemPerBlockOptin)};
  }
};

inline constexpr std::uint64_t side_bytes = 6 << 20;
inline constexpr std::uint64_t guard_bytes = 64;

inline std::vector<unsigned char> random_bytes(std::uint64_t count, std::uint64_t seed) {
  random_source random(seed);
  std::vector<unsigned char> bytes(count);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random.below32(256));
  return bytes;
}

inline std::uint64_t rounded_up(std::uint64_t value, std::uint64_t to) {
  return (value + to - 1) / to * to;
}

}  // namespace tmap::kernels
