// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tmap::kernels {

struct launch_size {
  dim3 blocks;
  std::uint32_t threads;
  std::uint32_t shared_bytes{0};  ///< dynamic
};

/// Launches a kernel that may start before the one ahead of it has ended (programmatic dependent launch), and that
/// waits for it by `cudaGridDependencySynchronize` before it touches memory.
template <class... Parameters, class... Arguments>
cudaError_t launch_behind(void (*kernel)(Parameters...), const launch_size& size, cudaStream_t stream,
                          const Arguments&... arguments) {
  if (size.shared_bytes != 0) {
    const cudaError_t raised =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(size.shared_bytes));
    if (raised != cudaSuccess) return raised;
  }
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = size.blocks;
  config.blockDim = size.threads;
  config.dynamicSmemBytes = size.shared_bytes;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

}  // namespace tmap::kernels
