// SPDX-License-Identifier: Apache-2.0
#include <tmap/detail/quantization.hpp>

#include <cuda_fp8.h>

#include <algorithm>
#include <cstdint>

#include "kernels/launch_behind.hpp"
#include "kernels/moe_launch.hpp"

namespace tmap::kernels {
namespace {

// Half a warp takes 128 elements of a token. They stay in registers from the search for the largest
// one until they are stored, once for each row of the token.

constexpr std::uint32_t width = tmap::detail::scale_block_width;
constexpr std::uint32_t lane_values = 8;  // a load of 16 bytes, and a store of 8
constexpr std::uint32_t half_warp = width / lane_values;
constexpr std::uint32_t threads = 256;
constexpr std::uint64_t most_blocks = 1u << 20;
constexpr std::uint32_t value_bytes = 2;

__device__ std::uint32_t larger_pair(std::uint32_t a, std::uint32_t b) {
  return __vmaxu2(a, b);
}

/// Returns the largest magnitude of the elements of half a warp. Bits of magnitudes are in the
/// order of their numbers, and those of infinities and NaNs come last.
__device__ float top_of(const uint4& values) {
  constexpr std::uint32_t magnitudes = 0x7fff7fffu;
  std::uint32_t top = larger_pair(larger_pair(values.x & magnitudes, values.y & magnitudes),
                                  larger_pair(values.z & magnitudes, values.w & magnitudes));
#pragma unroll
  for (std::uint32_t step = half_warp / 2; step != 0; step /= 2) {
    top = larger_pair(top, __shfl_xor_sync(~0u, top, step));
  }
  return __uint_as_float(max(top & 0xffffu, top >> 16) << 16);
}

/// Rounds the two bf16 of a word.
__device__ std::uint32_t rounded_pair(std::uint32_t pair, float factor) {
  const float2 values{__uint_as_float(pair << 16) * factor, __uint_as_float(pair & 0xffff0000u) * factor};
  return __nv_cvt_float2_to_fp8x2(values, __NV_SATFINITE, __NV_E4M3);
}

__device__ uint2 rounded(const uint4& values, float factor) {
  return {rounded_pair(values.x, factor) | rounded_pair(values.y, factor) << 16,
          rounded_pair(values.z, factor) | rounded_pair(values.w, factor) << 16};
}

__global__ void __launch_bounds__(threads) quantize_tokens_kernel(const __grid_constant__ token_rows work) {
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
  const std::uint64_t per_token = (work.columns + width - 1) / width;
  const std::uint64_t all = work.tokens * per_token;
  const std::uint32_t half = threadIdx.x % 32 / half_warp;
  const std::uint32_t lane = threadIdx.x % half_warp;
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (threads / 32);
  const std::uint64_t warp = std::uint64_t{blockIdx.x} * (threads / 32) + threadIdx.x / 32;
  for (std::uint64_t first = 2 * warp; first < all; first += 2 * warps) {
    const std::uint64_t block = first + half;
    const std::uint64_t token = block / per_token;
    const std::uint64_t column = block % per_token * width + lane * lane_values;
    const bool has_values = block < all && column < work.columns;
    uint4 values{};
    if (has_values) {
      values = *reinterpret_cast<const uint4*>(work.x.address + token * work.x.pitch_bytes + column * value_bytes);
    }
    const auto made = tmap::detail::scale_of(top_of(values), tmap::detail::largest_f8(ragged::value_type::f8_e4m3),
                                             work.powers_of_two);
    const uint2 result = rounded(values, made.inverse);
    if (!has_values) continue;
    for (std::uint32_t j = 0; j < work.k; ++j) {
      const std::int32_t row = work.row_of_choice[token * work.k + j];
      if (row < 0) continue;
      const auto at = static_cast<std::uint64_t>(row);
      *reinterpret_cast<uint2*>(work.rows.address + at * work.rows.pitch_bytes + column) = result;
      if (lane == 0) work.scales[at * per_token + column / width] = made.scale;
    }
  }
}

}  // namespace

cudaError_t launch_quantize_tokens(const token_rows& work, cudaStream_t stream) {
  const std::uint64_t halves = work.tokens * ((work.columns + width - 1) / width);
  const std::uint64_t blocks = (halves * half_warp + threads - 1) / threads;
  const launch_size size{static_cast<std::uint32_t>(std::min(blocks, most_blocks)), threads};
  return launch_behind(quantize_tokens_kernel, size, stream, work);
}

}  // namespace tmap::kernels
