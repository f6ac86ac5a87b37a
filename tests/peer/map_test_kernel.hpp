// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/map_template.hpp>
#include <tmap/peer_memory_ref.hpp>

#include <cuda_runtime.h>

#include <cstdint>

namespace tmap::testing {

/// Loads the kernel, which may wait for the GPU.
cudaError_t load_map_test();

/// Runs the part of the self-test that has maps. Maps and additions go to `mapped`, signals to
/// `window`. Both have the same address for the own window. A test may seed faults into `mapped`
/// and `base`. `patience` counts nanoseconds.
void launch_map_test(const peer_memory_ref& window, const peer_memory_ref& mapped, const map_template& base,
                     std::uint64_t patience, cudaStream_t stream);

}  // namespace tmap::testing
