// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the batch functions must know of the current device.

#include <tmap/error.hpp>
#include <tmap/map_template.hpp>

#include <cstdint>

namespace tmap {

// Of the calling thread's current device. Both fail with `no_driver`, `no_device` or
// `cuda_failure`.

[[nodiscard]] result<std::uint32_t> multiprocessor_count();

struct shared_memory_limits {
  std::uint32_t per_block;           ///< the most a block can opt in to
  std::uint32_t per_multiprocessor;  ///< all its blocks together
};
[[nodiscard]] result<shared_memory_limits> query_shared_memory();

/// `unsupported` for a zeroed template on a GPU of which CUDA's guide does not say that 128 zero
/// bytes are a map to begin with.
[[nodiscard]] result<void> require_start(const map_template& base);

}  // namespace tmap
