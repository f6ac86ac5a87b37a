// SPDX-License-Identifier: Apache-2.0
#include "apps/samples/moe_layer/kernels.hpp"

namespace moe {
namespace {

constexpr std::uint32_t lanes = 32;
constexpr std::uint32_t threads = 256;

/// Runs one warp per token.
__global__ void __launch_bounds__(threads) score(layer_sizes sizes, layer_arrays arrays) {
  const std::uint32_t token = (blockIdx.x * threads + threadIdx.x) / lanes;
  const std::uint32_t lane = threadIdx.x % lanes;
  if (token >= sizes.tokens) return;
  const __nv_bfloat16* const values = arrays.tokens + std::uint64_t{token} * sizes.width;
  for (std::uint32_t expert = 0; expert < sizes.experts; ++expert) {
    const __nv_bfloat16* const weights = arrays.router + std::uint64_t{expert} * sizes.width;
    float logit = 0;
    for (std::uint32_t i = lane; i < sizes.width; i += lanes) {
      logit += __bfloat162float(values[i]) * __bfloat162float(weights[i]);
    }
    for (std::uint32_t step = lanes / 2; step > 0; step /= 2) logit += __shfl_xor_sync(~0u, logit, step);
    if (lane == 0) arrays.logits[std::uint64_t{token} * sizes.experts + expert] = logit;
  }
}

}  // namespace

cudaError_t launch_scores(const layer_sizes& sizes, const layer_arrays& arrays, cudaStream_t stream) {
  constexpr std::uint32_t tokens_a_block = threads / lanes;
  score<<<(sizes.tokens + tokens_a_block - 1) / tokens_a_block, threads, 0, stream>>>(sizes, arrays);
  return cudaGetLastError();
}

}  // namespace moe
