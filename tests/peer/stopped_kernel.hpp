// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/peer_launch.hpp"

namespace tmap::testing {

/// Counts the steps that a rank has taken, in device memory.
struct taken_steps {
  std::uint32_t count;
  std::uint32_t has_stopped;
};

/// Loads the kernel on the current GPU.
[[nodiscard]] cudaError_t load_stopped_exchange();

/// Runs a rank's part of an exchange in one thread, which stops before step number `stop`. A step
/// writes a window or begins to read one.
[[nodiscard]] cudaError_t launch_stopped_exchange(const peer_memory_ref& window,
                                                  const kernels::peer::exchange_request& request, std::uint32_t stop,
                                                  std::uint64_t patience, taken_steps* steps, cudaStream_t stream);

}  // namespace tmap::testing
