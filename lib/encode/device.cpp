// SPDX-License-Identifier: Apache-2.0
#include "lib/encode/device.hpp"

#include "lib/support/check.hpp"

#include <cuda_runtime_api.h>

namespace tmap {

result<device_properties> current_device() {
  int device = 0;
  int multiprocessors = 0;
  int per_block = 0;
  int per_multiprocessor = 0;
  TMAP_TRY_CUDA(cudaGetDevice(&device));
  TMAP_TRY_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  TMAP_TRY_CUDA(cudaDeviceGetAttribute(&per_block, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  TMAP_TRY_CUDA(cudaDeviceGetAttribute(&per_multiprocessor, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
  return device_properties{static_cast<std::uint32_t>(multiprocessors), static_cast<std::uint32_t>(per_block),
                           static_cast<std::uint32_t>(per_multiprocessor)};
}

}  // namespace tmap
