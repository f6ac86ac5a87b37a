// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads numbers of every `value_type` as f32, and writes them rounded as ragged.hpp defines.

#include <tmap/ragged.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <type_traits>

namespace tmap::kernels {

using ragged::value_type;

/// The type that holds the bits of one number.
template <value_type Type>
using value_word = std::conditional_t<Type == value_type::f32, float,
                                      std::conditional_t<ragged::value_bytes(Type) == 2, std::uint16_t, std::uint8_t>>;

template <value_type Type>
__device__ float to_float(value_word<Type> word) {
  if constexpr (Type == value_type::f32) return word;
  if constexpr (Type == value_type::u8) return static_cast<float>(word);
  if constexpr (Type == value_type::f16) return __half2float(__ushort_as_half(word));
  if constexpr (Type == value_type::bf16) return __bfloat162float(__ushort_as_bfloat16(word));
  if constexpr (Type == value_type::f8_e4m3) return __half2float(__half(__nv_cvt_fp8_to_halfraw(word, __NV_E4M3)));
  if constexpr (Type == value_type::f8_e5m2) return __half2float(__half(__nv_cvt_fp8_to_halfraw(word, __NV_E5M2)));
}

template <value_type Type>
__device__ value_word<Type> from_float(float value) {
  if constexpr (Type == value_type::f32) return value;
  if constexpr (Type == value_type::u8) {
    const std::uint32_t whole = __float2uint_rn(value);  // NaN and negative: 0
    return static_cast<std::uint8_t>(whole < 255 ? whole : 255);
  }
  if constexpr (Type == value_type::f16) return __half_as_ushort(__float2half_rn(value));
  if constexpr (Type == value_type::bf16) return __bfloat16_as_ushort(__float2bfloat16_rn(value));
  if constexpr (Type == value_type::f8_e4m3) return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
  if constexpr (Type == value_type::f8_e5m2) return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E5M2);
}

/// Rounds two values to 8 bits. The first one is the lower byte.
template <value_type To>
__device__ std::uint32_t f8_pair(float first, float second) {
  return __nv_cvt_float2_to_fp8x2({first, second}, __NV_SATFINITE, To == value_type::f8_e4m3 ? __NV_E4M3 : __NV_E5M2);
}

/// Calls `use` with a constant for each type.
template <class Use>
__host__ __device__ auto with_type(value_type type, const Use& use) {
  switch (type) {
    case value_type::u8: return use(std::integral_constant<value_type, value_type::u8>{});
    case value_type::f16: return use(std::integral_constant<value_type, value_type::f16>{});
    case value_type::bf16: return use(std::integral_constant<value_type, value_type::bf16>{});
    case value_type::f8_e4m3: return use(std::integral_constant<value_type, value_type::f8_e4m3>{});
    case value_type::f8_e5m2: return use(std::integral_constant<value_type, value_type::f8_e5m2>{});
    default: return use(std::integral_constant<value_type, value_type::f32>{});
  }
}

}  // namespace tmap::kernels
