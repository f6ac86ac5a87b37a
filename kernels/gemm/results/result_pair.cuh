// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rounds f32 to the types of results, two neighbours at a time, and reads them back.

#include <tmap/grouped_gemm.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>

namespace tmap::kernels {

/// Packs and unpacks pairs of neighbouring elements of 16 bits, of the type `like_operands`.
template <gemm::operand_type Type>
struct result_pair {
  static __device__ std::uint32_t pack(float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const std::uint32_t&>(pair);
  }
  static __device__ float2 unpack(std::uint32_t bits) {
    return __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(bits));
  }
};
template <>
struct result_pair<gemm::operand_type::f16> {
  static __device__ std::uint32_t pack(float low, float high) {
    const __half2 pair = __floats2half2_rn(low, high);
    return reinterpret_cast<const std::uint32_t&>(pair);
  }
  static __device__ float2 unpack(std::uint32_t bits) { return __half22float2(reinterpret_cast<const __half2&>(bits)); }
};

/// Packs a pair of e4m3.
__device__ inline std::uint16_t pack_e4m3(float low, float high) {
  return __nv_cvt_float2_to_fp8x2({low, high}, __NV_SATFINITE, __NV_E4M3);
}

}  // namespace tmap::kernels
