// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/launch_behind.hpp"

namespace tmap::kernels {

/// Launches a kernel that starts when all work of the stream before it has ended.
template <class... Parameters, class... Arguments>
cudaError_t plain_launch(void (*kernel)(Parameters...), const launch_size& size, cudaStream_t stream,
                         const Arguments&... arguments) {
  if (const cudaError_t allowed = allow_size(kernel, size); allowed != cudaSuccess) return allowed;
  cudaLaunchConfig_t config{};
  config.gridDim = size.blocks;
  config.blockDim = size.threads;
  config.dynamicSmemBytes = size.shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

/// Loads the kernels of dispatches (experts.cu).
cudaError_t load_dispatch_kernels();
/// Loads the kernels of exchanges by parcels (parcels.cu).
cudaError_t load_parcel_kernels();
/// Loads the kernel of dispatches of few tokens (few_tokens.cu).
cudaError_t load_dispatch_few();
/// Loads the kernel of the self-test (self_test.cu).
cudaError_t load_self_test_kernel();

}  // namespace tmap::kernels
