// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

namespace tmap::kernels {

struct launch_size {
  dim3 blocks;
  std::uint32_t threads;
  std::uint32_t shared_bytes{0};  ///< dynamic
  std::uint32_t cluster_blocks{1};
  /// Set it if launches of the kernel differ. The limit belongs to the kernel, and threads may
  /// launch it at the same time.
  std::uint32_t most_shared_bytes{0};
};

/// Allows a kernel the shared memory and the cluster of a launch.
template <class... Parameters>
cudaError_t allow_size(void (*kernel)(Parameters...), const launch_size& size) {
  constexpr std::uint32_t most_portable = 8;
  cudaError_t allowed = cudaSuccess;
  if (size.shared_bytes != 0) {
    const auto bytes = static_cast<int>(std::max(size.shared_bytes, size.most_shared_bytes));
    allowed = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  }
  if (allowed == cudaSuccess && size.cluster_blocks > most_portable) {
    allowed = cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  }
  return allowed;
}

/// The description of a launch. It must stay where it is: CUDA's structure points into it.
class launch_settings {
 public:
  launch_settings(const launch_size& size, cudaStream_t stream) {
    attributes_[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes_[0].val.programmaticStreamSerializationAllowed = 1;
    attributes_[1].id = cudaLaunchAttributeClusterDimension;
    attributes_[1].val.clusterDim = {size.cluster_blocks, 1, 1};
    config_.gridDim = size.blocks;
    config_.blockDim = size.threads;
    config_.dynamicSmemBytes = size.shared_bytes;
    config_.stream = stream;
    config_.attrs = attributes_;
    config_.numAttrs = size.cluster_blocks > 1 ? 2 : 1;
  }
  launch_settings(const launch_settings&) = delete;
  launch_settings& operator=(const launch_settings&) = delete;

  const cudaLaunchConfig_t* get() const { return &config_; }

 private:
  cudaLaunchAttribute attributes_[2]{};
  cudaLaunchConfig_t config_{};
};

/// Launches a kernel that may start before the previous one has ended (programmatic dependent
/// launch). The kernel waits for that by `cudaGridDependencySynchronize` before it touches memory.
template <class... Parameters, class... Arguments>
cudaError_t launch_behind(void (*kernel)(Parameters...), const launch_size& size, cudaStream_t stream,
                          const Arguments&... arguments) {
  if (const cudaError_t allowed = allow_size(kernel, size); allowed != cudaSuccess) return allowed;
  return cudaLaunchKernelEx(launch_settings(size, stream).get(), kernel, arguments...);
}

/// Counts the clusters of this size that the current GPU has room for at once. It has none if a
/// cluster is too large.
template <class... Parameters>
cudaError_t count_clusters(void (*kernel)(Parameters...), const launch_size& size, int& clusters) {
  if (const cudaError_t allowed = allow_size(kernel, size); allowed != cudaSuccess) return allowed;
  const cudaError_t counted = cudaOccupancyMaxActiveClusters(&clusters, kernel, launch_settings(size, nullptr).get());
  if (counted != cudaErrorInvalidClusterSize) return counted;
  clusters = 0;
  static_cast<void>(cudaGetLastError());
  return cudaSuccess;
}

}  // namespace tmap::kernels
