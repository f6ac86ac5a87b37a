// SPDX-License-Identifier: Apache-2.0
#include "kernels/launch.hpp"

#include <algorithm>

namespace tmap::kernels {
namespace {

__global__ void reset_header_kernel(batch_header* header) {
  *header = batch_header{};
}

}  // namespace

encode_plan plan_encode(std::uint64_t count, std::uint32_t multiprocessors) {
  constexpr std::uint64_t warps_per_multiprocessor = 4;
  constexpr std::uint64_t most = 16;
  const std::uint64_t warps = multiprocessors * warps_per_multiprocessor;
  return {static_cast<std::uint32_t>(std::clamp<std::uint64_t>((count + warps - 1) / warps, 1, most))};
}

cudaError_t launch_header_reset(batch_header* header, cudaStream_t stream) {
  reset_header_kernel<<<1, 1, 0, stream>>>(header);
  return cudaGetLastError();
}

}  // namespace tmap::kernels
