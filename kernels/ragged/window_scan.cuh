// SPDX-License-Identifier: Apache-2.0
#pragma once

// A warp computes running maxima of blocks in shared memory, from both ends.

#include <tmap/device/ptx.cuh>

#include <cstdint>

#include "kernels/batch/scan.cuh"

namespace tmap::kernels {

/// Returns a value that changes no maximum.
__device__ inline float lowest() {
  return -__int_as_float(0x7f800000);
}

/// A join of kernels/batch/scan.cuh.
struct larger_or_nan {
  __device__ float operator()(float a, float b) const { return device::ptx::max_nan(a, b); }
};

namespace detail {

/// Writes the running maxima of `count` values, `Step` apart, to `to`. It reads eight at a time, as
/// no load may pass a store.
template <int Step>
__device__ void scan_serially(const float* from, float* to, std::uint32_t count) {
  constexpr std::uint32_t batch = 8;
  float top = lowest();
  std::uint32_t i = 0;
  for (; i + batch <= count; i += batch) {
    float held[batch];
#pragma unroll
    for (std::uint32_t k = 0; k < batch; ++k) held[k] = from[Step * static_cast<int>(i + k)];
#pragma unroll
    for (std::uint32_t k = 0; k < batch; ++k) {
      top = device::ptx::max_nan(top, held[k]);
      to[Step * static_cast<int>(i + k)] = top;
    }
  }
  float held[batch];
#pragma unroll
  for (std::uint32_t k = 0; k < batch; ++k) held[k] = i + k < count ? from[Step * static_cast<int>(i + k)] : lowest();
#pragma unroll
  for (std::uint32_t k = 0; k < batch; ++k) {
    top = device::ptx::max_nan(top, held[k]);
    if (i + k < count) to[Step * static_cast<int>(i + k)] = top;
  }
}

}  // namespace detail

/// Does the same by all lanes, 32 places at a time, beginning with `top`, and returns the last
/// maximum. `from` may be `to`.
template <int Step>
__device__ float scan_together(const float* from, float* to, std::uint32_t count, float top) {
  const std::uint32_t lane = threadIdx.x % 32;
  for (std::uint32_t begin = 0; begin < count; begin += 32) {
    const bool is_inside = begin + lane < count;
    const int place = Step * static_cast<int>(begin + lane);
    float mine = join_up_to_lane(is_inside ? from[place] : lowest(), larger_or_nan{});
    mine = device::ptx::max_nan(mine, top);
    if (is_inside) to[place] = mine;
    top = __shfl_sync(~0u, mine, 31);
  }
  return top;
}

/// Cuts `x` into blocks of `block` values. `prefix[i]` becomes the largest value from the block's
/// beginning to i, `x[i]` the largest from i to its end. `block` is odd, so that lanes a block
/// apart use different banks.
__device__ inline void scan_blocks(float* x, float* prefix, std::uint32_t count, std::uint32_t block) {
  constexpr std::uint32_t longest_of_a_lane = 64;
  if (block == 1) {
    for (std::uint32_t i = threadIdx.x % 32; i < count; i += 32) prefix[i] = x[i];
    return;
  }
  if (block <= longest_of_a_lane) {
    for (std::uint32_t begin = threadIdx.x % 32 * block; begin < count; begin += 32 * block) {
      const std::uint32_t here = count - begin < block ? count - begin : block;
      detail::scan_serially<1>(x + begin, prefix + begin, here);
      detail::scan_serially<-1>(x + begin + here - 1, x + begin + here - 1, here);
    }
    return;
  }
  for (std::uint32_t begin = 0; begin < count; begin += block) {
    const std::uint32_t here = count - begin < block ? count - begin : block;
    scan_together<1>(x + begin, prefix + begin, here, lowest());
    __syncwarp();
    scan_together<-1>(x + begin + here - 1, x + begin + here - 1, here, lowest());
  }
}

}  // namespace tmap::kernels
