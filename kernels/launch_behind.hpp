// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tmap::kernels {

struct launch_size {
  dim3 blocks;
  std::uint32_t threads;
  std::uint32_t shared_bytes{0};  ///< dynamic
  std::uint32_t cluster_blocks{1};
};

/// Launches a kernel that may start before the previous one has ended (programmatic dependent
/// launch). The kernel waits for that by `cudaGridDependencySynchronize` before it touches memory.
template <class... Parameters, class... Arguments>
cudaError_t launch_behind(void (*kernel)(Parameters...), const launch_size& size, cudaStream_t stream,
                          const Arguments&... arguments) {
  if (size.shared_bytes != 0) {
    const cudaError_t raised =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(size.shared_bytes));
    if (raised != cudaSuccess) return raised;
  }
  cudaLaunchAttribute attributes[2]{};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {size.cluster_blocks, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = size.blocks;
  config.blockDim = size.threads;
  config.dynamicSmemBytes = size.shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = size.cluster_blocks > 1 ? 2 : 1;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

}  // namespace tmap::kernels
