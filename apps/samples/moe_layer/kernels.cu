// SPDX-License-Identifier: Apache-2.0
#include "apps/samples/moe_layer/kernels.hpp"

#include <cub/block/block_scan.cuh>

#include "apps/samples/moe_layer/router.hpp"

namespace moe {
namespace {

constexpr std::uint32_t lanes = 32;
constexpr std::uint32_t threads = 256;

/// Runs one warp per token.
__global__ void __launch_bounds__(threads) route(layer_sizes sizes, layer_arrays arrays) {
  const std::uint32_t token = (blockIdx.x * threads + threadIdx.x) / lanes;
  const std::uint32_t lane = threadIdx.x % lanes;
  if (token >= sizes.tokens) return;
  const __nv_bfloat16* const values = arrays.tokens + std::uint64_t{token} * sizes.width;
  top_two best;
  for (std::uint32_t expert = 0; expert < sizes.experts; ++expert) {
    const __nv_bfloat16* const weights = arrays.router + std::uint64_t{expert} * sizes.width;
    float logit = 0;
    for (std::uint32_t i = lane; i < sizes.width; i += lanes) {
      logit += __bfloat162float(values[i]) * __bfloat162float(weights[i]);
    }
    for (std::uint32_t step = lanes / 2; step > 0; step /= 2) logit += __shfl_xor_sync(~0u, logit, step);
    best.take(static_cast<std::int32_t>(expert), logit);
  }
  if (lane != 0) return;
  arrays.experts[choices * token] = best.first();
  arrays.experts[choices * token + 1] = best.second();
  arrays.shares[choices * token] = best.share_of_first();
  arrays.shares[choices * token + 1] = best.share_of_second();
}

/// Runs one block per expert. It counts the choices of the experts before it, then numbers its own.
/// Without atomics, every run gives the same order.
__global__ void __launch_bounds__(threads) place(std::uint32_t count, layer_arrays arrays) {
  using scan = cub::BlockScan<std::uint32_t, threads>;
  __shared__ typename scan::TempStorage memory;
  const auto expert = static_cast<std::int32_t>(blockIdx.x);
  std::uint32_t begin = 0;
  for (std::uint32_t first = 0; first < count; first += threads) {
    const std::uint32_t i = first + threadIdx.x;
    begin += static_cast<std::uint32_t>(__syncthreads_count(i < count && arrays.experts[i] < expert));
  }
  std::uint32_t end = begin;
  for (std::uint32_t first = 0; first < count; first += threads) {
    const std::uint32_t i = first + threadIdx.x;
    const bool is_mine = i < count && arrays.experts[i] == expert;
    std::uint32_t before = 0;
    std::uint32_t all = 0;
    scan(memory).ExclusiveSum(is_mine ? 1u : 0u, before, all);
    if (is_mine) {
      arrays.row_of[i] = static_cast<std::int32_t>(end + before);
      arrays.token_of[end + before] = static_cast<std::int32_t>(i / choices);
    }
    end += all;
    __syncthreads();
  }
  if (threadIdx.x == 0) arrays.sizes[expert] = static_cast<std::int32_t>(end - begin);
}

/// Runs one block per token.
__global__ void __launch_bounds__(threads) combine(layer_sizes sizes, layer_arrays arrays) {
  const std::uint64_t token = blockIdx.x;
  for (std::uint32_t column = threadIdx.x; column < sizes.width; column += threads) {
    float sum = 0;
    for (std::uint64_t i = choices * token; i < choices * (token + 1); ++i) {
      const auto row = static_cast<std::uint64_t>(arrays.row_of[i]);
      sum += arrays.shares[i] * __bfloat162float(arrays.answers[row * sizes.width + column]);
    }
    arrays.output[token * sizes.width + column] = __float2bfloat16(sum);
  }
}

}  // namespace

cudaError_t launch_route(const layer_sizes& sizes, const layer_arrays& arrays, cudaStream_t stream) {
  constexpr std::uint32_t tokens_a_block = threads / lanes;
  route<<<(sizes.tokens + tokens_a_block - 1) / tokens_a_block, threads, 0, stream>>>(sizes, arrays);
  return cudaGetLastError();
}

cudaError_t launch_place(const layer_sizes& sizes, const layer_arrays& arrays, cudaStream_t stream) {
  place<<<sizes.experts, threads, 0, stream>>>(sizes.rows(), arrays);
  return cudaGetLastError();
}

cudaError_t launch_combine(const layer_sizes& sizes, const layer_arrays& arrays, cudaStream_t stream) {
  combine<<<sizes.tokens, threads, 0, stream>>>(sizes, arrays);
  return cudaGetLastError();
}

}  // namespace moe
