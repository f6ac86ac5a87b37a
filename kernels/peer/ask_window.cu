// SPDX-License-Identifier: Apache-2.0
#include "kernels/peer_launch.hpp"

#if __has_include(<nccl_device.h>)
#include <nccl.h>
#include <nccl_device.h>
#endif

namespace tmap::kernels {

#if defined(NCCL_VERSION_CODE)

namespace {

/// NCCL computes addresses without a check. Those by rank and those by place among the GPUs that
/// reach each other are the same on every rank only if all ranks reach each other.
__global__ void ask_window(ncclWindow_t window, std::uint32_t ranks, std::uint64_t* addresses) {
  for (std::uint32_t i = 0; i < ranks; ++i) {
    const void* const by_rank = ncclGetPeerPointer(window, 0, static_cast<int>(i));
    const void* const by_place = ncclGetLsaPointer(window, 0, static_cast<int>(i));
    addresses[i] = by_rank == by_place ? reinterpret_cast<std::uintptr_t>(by_rank) : 0;
  }
}

}  // namespace

int ask_window_version() {
  return NCCL_VERSION_CODE;
}

cudaError_t launch_ask_window(const void* window, std::uint32_t ranks, std::uint64_t* addresses, cudaStream_t stream) {
  cudaLaunchConfig_t config{};
  config.gridDim = 1;
  config.blockDim = 1;
  config.stream = stream;
  const auto handle = static_cast<ncclWindow_t>(const_cast<void*>(window));
  return cudaLaunchKernelEx(&config, ask_window, handle, ranks, addresses);
}

#else

int ask_window_version() {
  return 0;
}

cudaError_t launch_ask_window(const void*, std::uint32_t, std::uint64_t*, cudaStream_t) {
  return cudaErrorNotSupported;
}

#endif

}  // namespace tmap::kernels
