// SPDX-License-Identifier: Apache-2.0
#pragma once

// Running sums of 64-bit counts that a device callable computes. Up to `sum_block` counts take one
// launch. More take two, of which the second starts while the first still runs. Each launch calls
// the callable once for each count.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/batch/scan.cuh"
#include "kernels/launch.hpp"
#include "kernels/load_kernel.hpp"

namespace tmap::kernels {
namespace detail {

inline constexpr std::uint32_t sum_lanes = device::warp_lanes;
inline constexpr std::uint32_t sum_lane_counts = 8;
inline constexpr std::uint32_t sum_warp_counts = sum_lanes * sum_lane_counts;
inline constexpr std::uint32_t sum_max_warps = sum_block / sum_warp_counts;
inline constexpr std::uint32_t sum_tile_warps = sum_tile / sum_warp_counts;
static_assert(sum_max_warps == sum_lanes, "one warp adds up the sums of a block's warps");

/// This lane's counts: every 32nd of its warp's, 0 from index `n` on.
template <class Count>
struct lane_counts {
  std::uint64_t first;
  std::uint64_t values[sum_lane_counts];

  __device__ lane_counts(const Count& count_of, std::uint64_t n)
      : first{blockIdx.x * std::uint64_t{sum_tile} + threadIdx.x / sum_lanes * sum_warp_counts +
              threadIdx.x % sum_lanes} {
#pragma unroll
    for (std::uint32_t k = 0; k < sum_lane_counts; ++k) values[k] = index(k) < n ? count_of(index(k)) : 0;
  }
  __device__ std::uint64_t index(std::uint32_t k) const {
    return first + k * sum_lanes;
  }
};

template <class Count>
__global__ void __launch_bounds__(sum_tile_warps* sum_lanes)
    tile_sums_kernel(const __grid_constant__ Count count_of, std::uint64_t* tile_sums, std::uint64_t n) {
  __shared__ std::uint64_t warp_sums[sum_tile_warps];
  cudaTriggerProgrammaticLaunchCompletion();
  const lane_counts<Count> counts(count_of, n);
  std::uint64_t sum = 0;
#pragma unroll
  for (const std::uint64_t value : counts.values) sum += value;
  sum = join_lanes(sum, add{});
  if (threadIdx.x % sum_lanes == 0) warp_sums[threadIdx.x / sum_lanes] = sum;
  __syncthreads();
  if (threadIdx.x >= sum_lanes) return;
  sum = join_lanes(threadIdx.x < sum_tile_warps ? warp_sums[threadIdx.x] : 0, add{});
  if (threadIdx.x == 0) tile_sums[blockIdx.x] = sum;
}

/// All blocks but the first read `tile_sums`.
template <class Count>
__global__ void __launch_bounds__(sum_max_warps* sum_lanes)
    running_sum_kernel(const __grid_constant__ Count count_of, const std::uint64_t* tile_sums, std::uint64_t* ends,
                       std::uint64_t n) {
  __shared__ std::uint64_t warp_sums[sum_max_warps];
  __shared__ std::uint64_t sums_before[sum_max_warps];  // of the tiles before this one, each warp a part of them
  const std::uint32_t lane = threadIdx.x % sum_lanes;
  const std::uint32_t warp = threadIdx.x / sum_lanes;
  cudaGridDependencySynchronize();
  lane_counts<Count> counts(count_of, n);
  std::uint64_t sum = 0;
#pragma unroll
  for (std::uint64_t& value : counts.values) {
    value = sum + join_up_to_lane(value, add{});
    sum = __shfl_sync(~0u, value, sum_lanes - 1);
  }
  std::uint64_t before = 0;
  for (std::uint32_t tile = threadIdx.x; tile < blockIdx.x; tile += blockDim.x) before += tile_sums[tile];
  before = join_lanes(before, add{});
  if (lane == 0) {
    warp_sums[warp] = sum;
    sums_before[warp] = before;
  }
  __syncthreads();
  const bool has_warp = lane < blockDim.x / sum_lanes;
  before = join_lanes((has_warp ? sums_before[lane] : 0) + (lane < warp ? warp_sums[lane] : 0), add{});
#pragma unroll
  for (std::uint32_t k = 0; k < sum_lane_counts; ++k) {
    if (counts.index(k) < n) ends[counts.index(k)] = before + counts.values[k];
  }
}

}  // namespace detail

/// Sets ends[i] = count_of(0) + ... + count_of(i), modulo 2^64, for i below `n`, which is at least
/// 1. `count_of` is a device callable `std::uint64_t -> std::uint64_t`, passed as a kernel's
/// parameter. `scratch` is `inclusive_sum_scratch(n)` bytes of device memory, aligned to 8, with
/// any content.
template <class Count>
cudaError_t launch_inclusive_sum(const Count& count_of, std::uint64_t* ends, std::uint64_t n, void* scratch,
                                 std::size_t scratch_bytes, cudaStream_t stream) {
  if (scratch_bytes < inclusive_sum_scratch(n)) return cudaErrorInvalidValue;
  auto* const tile_sums = static_cast<std::uint64_t*>(scratch);
  const bool is_one_block = n <= sum_block;
  const std::uint64_t warps = is_one_block ? (n + detail::sum_warp_counts - 1) / detail::sum_warp_counts
                                           : std::uint64_t{detail::sum_tile_warps};
  cudaLaunchConfig_t config{};
  config.gridDim = is_one_block ? 1 : static_cast<std::uint32_t>((n + sum_tile - 1) / sum_tile);
  config.blockDim = static_cast<std::uint32_t>(warps) * detail::sum_lanes;
  config.stream = stream;
  cudaLaunchAttribute overlap{};
  if (!is_one_block) {
    const cudaError_t code = cudaLaunchKernelEx(&config, detail::tile_sums_kernel<Count>, count_of, tile_sums, n);
    if (code != cudaSuccess) return code;
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &overlap;
    config.numAttrs = 1;
  }
  const std::uint64_t* const sums_before = tile_sums;
  return cudaLaunchKernelEx(&config, detail::running_sum_kernel<Count>, count_of, sums_before, ends, n);
}

template <class Count>
cudaError_t load_inclusive_sum() {
  const cudaError_t code = load(detail::tile_sums_kernel<Count>);
  return code == cudaSuccess ? load(detail::running_sum_kernel<Count>) : code;
}

}  // namespace tmap::kernels
