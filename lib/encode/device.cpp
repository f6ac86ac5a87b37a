// SPDX-License-Identifier: Apache-2.0
#include "lib/encode/device.hpp"

#include "lib/support/check.hpp"

#include <cuda_runtime_api.h>

namespace tmap {

result<std::uint32_t> multiprocessor_count() {
  int device = 0;
  int count = 0;
  TMAP_TRY_CUDA(cudaGetDevice(&device));
  TMAP_TRY_CUDA(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return static_cast<std::uint32_t>(count);
}

result<shared_memory_limits> query_shared_memory() {
  int device = 0;
  int per_block = 0;
  int per_multiprocessor = 0;
  TMAP_TRY_CUDA(cudaGetDevice(&device));
  TMAP_TRY_CUDA(cudaDeviceGetAttribute(&per_block, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  TMAP_TRY_CUDA(cudaDeviceGetAttribute(&per_multiprocessor, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
  return shared_memory_limits{static_cast<std::uint32_t>(per_block), static_cast<std::uint32_t>(per_multiprocessor)};
}

}  // namespace tmap
