// SPDX-License-Identifier: Apache-2.0
#pragma once

// The GPU that a program runs on.

#include <cuda_runtime_api.h>
#include <tmap/device_limits.hpp>
#include <tmap/encode.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "apps/support/device_array.hpp"

namespace tmap::apps {

inline bool has_hopper() {
  int major = 0;
  return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess &&
         major == static_cast<int>(hopper_limits().compute_capability / 10);
}

/// Prints that the program needs a Hopper GPU, and what there is instead. Returns its exit code.
inline int lack_of_hopper(const char* program) {
  const auto limits = query_device_limits();
  const std::string found = limits ? "the compute capability of this one is " +
                                         std::to_string(limits->compute_capability / 10) + "." +
                                         std::to_string(limits->compute_capability % 10)
                                   : to_string(limits.error());
  std::fprintf(stderr, "%s: needs a Hopper GPU: %s\n", program, found.c_str());
  return 1;
}

inline std::uint32_t multiprocessors() {
  int value = 0;
  require(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
  return static_cast<std::uint32_t>(value);
}

inline void print_device() {
  cudaDeviceProp properties{};
  int driver = 0;
  require(cudaGetDeviceProperties(&properties, 0));
  require(cudaDriverGetVersion(&driver));
  std::printf("%s, %u multiprocessors, CUDA %d.%d driver\n", properties.name, multiprocessors(), driver / 1000,
              driver % 1000 / 10);
}

/// Keeps the GPU busy until its clocks have left their idle state.
inline void wake_device() {
  using clock = std::chrono::steady_clock;
  const device_array<unsigned char> memory(std::size_t{256} << 20);
  const auto end = clock::now() + std::chrono::milliseconds{500};
  while (clock::now() < end) memory.fill(0);
}

}  // namespace tmap::apps
