// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/element_type.hpp>

struct __half;
struct __nv_bfloat16;
struct __nv_fp8_e4m3;
struct __nv_fp8_e5m2;

namespace tmap {

namespace detail {

template <class T>
TMAP_HOST_DEVICE constexpr element_type integer_type() {
  if constexpr (!std::is_integral_v<T>) {
    return static_cast<element_type>(~0u);
  } else if constexpr (sizeof(T) <= 2) {
    return sizeof(T) == 1 ? element_type::u8 : element_type::u16;
  } else if constexpr (sizeof(T) == 4) {
    return std::is_signed_v<T> ? element_type::i32 : element_type::u32;
  } else {
    return std::is_signed_v<T> ? element_type::i64 : element_type::u64;
  }
}

}  // namespace detail

/// The element type of tensors of `T`: an integer, float, double, `__half`, `__nv_bfloat16` or an
/// 8-bit float. For any other type it is no enumerator. Specialise it for a type of your own with
/// the same bits.
template <class T>
inline constexpr element_type element_of = detail::integer_type<T>();
template <>
inline constexpr element_type element_of<float> = element_type::f32;
template <>
inline constexpr element_type element_of<double> = element_type::f64;
template <>
inline constexpr element_type element_of<__half> = element_type::f16;
template <>
inline constexpr element_type element_of<__nv_bfloat16> = element_type::bf16;
template <>
inline constexpr element_type element_of<__nv_fp8_e4m3> = element_type::u8;
template <>
inline constexpr element_type element_of<__nv_fp8_e5m2> = element_type::u8;

}  // namespace tmap
