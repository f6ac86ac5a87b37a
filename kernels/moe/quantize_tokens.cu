// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "kernels/launch_behind.hpp"
#include "kernels/moe_launch.hpp"
#include "kernels/values/chunk_scales.cuh"

namespace tmap::kernels {
namespace {

// Half a warp takes 128 elements of a token. They stay in registers from the search for the largest
// one until they are stored, once for each row of the token.

using word = value_word<value_type::bf16>;

constexpr std::uint32_t width = tmap::detail::scale_block_width;
constexpr std::uint32_t threads = 256;
constexpr std::uint64_t most_blocks = 1u << 20;

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
    const std::uint64_t column = block % per_token * width + lane * chunk_values;
    const bool has_values = block < all && column < work.columns;
    uint4 values{};
    if (has_values) {
      values = *reinterpret_cast<const uint4*>(work.x.address + token * work.x.pitch_bytes + column * sizeof(word));
    }
    chunk<value_type::bf16> held;
    held.set_unit(0, values);
    const std::uint32_t top = join_tops<half_warp>(held.top());
    const auto made = scale_of_top<value_type::bf16, value_type::f8_e4m3>(top, work.powers_of_two);
    const f8_chunk result = held.rounded<value_type::f8_e4m3>(made.inverse);
    if (!has_values) continue;
    for (std::uint32_t j = 0; j < work.k; ++j) {
      const std::int32_t row = work.row_of_choice[token * work.k + j];
      if (row < 0) continue;
      const auto at = static_cast<std::uint64_t>(row);
      result.store<true>(work.rows.address + at * work.rows.pitch_bytes + column, chunk_values);
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
