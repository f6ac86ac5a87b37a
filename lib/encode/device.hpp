// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the batch functions share: checks of arguments, and what they must know of the current device.

#include <tmap/error.hpp>

#include <cstdint>

namespace tmap {

/// Every part of a workspace begins at a multiple of this; so does what cudaMalloc returns.
inline constexpr std::uint64_t workspace_alignment = 256;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

inline failure invalid_argument(std::uint64_t found, std::uint64_t allowed) {
  error e{status::invalid_argument};
  e.found = found;
  e.allowed = allowed;
  return failure(e);
}

/// A null or misaligned pointer is an invalid argument; where it points to cannot be checked.
inline result<void> check_device_array(const void* array, std::uint64_t alignment) {
  const auto address = reinterpret_cast<std::uintptr_t>(array);
  if (address == 0 || address % alignment != 0) return invalid_argument(address, alignment);
  return {};
}

inline result<void> check_workspace(const void* workspace, std::uint64_t bytes, std::uint64_t needed) {
  if (bytes < needed) return invalid_argument(bytes, needed);
  return check_device_array(workspace, workspace_alignment);
}

// Of the calling thread's current device. Both fail with `no_driver`, `no_device` or `cuda_failure`.

result<std::uint32_t> multiprocessor_count();

struct shared_memory_limits {
  std::uint32_t per_block;           ///< the most a block can opt in to
  std::uint32_t per_multiprocessor;  ///< all its blocks together
};
result<shared_memory_limits> query_shared_memory();

}  // namespace tmap
