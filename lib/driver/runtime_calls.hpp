// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

namespace tmap::driver {

/// The CUDA runtime calls of this folder, as pointers, so that tests can simulate every driver and
/// its absence.
struct runtime_calls {
  cudaError_t (*driver_version)(int* version);
  cudaError_t (*device_count)(int* count);
  cudaError_t (*current_device)(int* device);
  cudaError_t (*set_device)(int device);
  cudaError_t (*device_attribute)(int* value, cudaDeviceAttr attribute, int device);
  cudaError_t (*entry_point)(const char* symbol, void** function, unsigned int cuda_version, unsigned long long flags,
                             cudaDriverEntryPointQueryResult* found);
};

const runtime_calls& real_runtime();

}  // namespace tmap::driver
