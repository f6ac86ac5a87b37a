// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>

namespace tmap {

/// The type of one element, as the copy engine sees it. Values equal `CUtensorMapDataType`.
/// There is no 8-bit signed, 8-bit float or bool type: use the unsigned type of the same width.
/// The 4- and 6-bit types need compute capability 10.
enum class element_type : std::uint32_t {
  u8 = 0,
  u16 = 1,
  u32 = 2,
  i32 = 3,
  u64 = 4,
  i64 = 5,
  f16 = 6,
  f32 = 7,
  f64 = 8,
  bf16 = 9,
  f32_ftz = 10,
  tf32 = 11,
  tf32_ftz = 12,
  u4_align8 = 13,
  u4_align16 = 14,
  u6_align16 = 15,
};

/// The number of values of `element_type`, and the number of them that a Hopper GPU copies.
inline constexpr std::uint32_t element_type_count = 16;
inline constexpr std::uint32_t hopper_element_type_count = 13;

/// Returns the bits that one element takes in global memory; 0 for a value that is no element type.
TMAP_HOST_DEVICE constexpr std::uint32_t element_bits(element_type type) {
  switch (type) {
    case element_type::u8: return 8;
    case element_type::u16:
    case element_type::f16:
    case element_type::bf16: return 16;
    case element_type::u32:
    case element_type::i32:
    case element_type::f32:
    case element_type::f32_ftz:
    case element_type::tf32:
    case element_type::tf32_ftz: return 32;
    case element_type::u64:
    case element_type::i64:
    case element_type::f64: return 64;
    case element_type::u4_align8:
    case element_type::u4_align16: return 4;
    case element_type::u6_align16: return 6;
  }
  return 0;
}

/// Returns the bytes of `count` elements, rounded up for the 4- and 6-bit types.
TMAP_HOST_DEVICE constexpr std::uint64_t element_bytes(element_type type, std::uint64_t count = 1) {
  return (element_bits(type) * count + 7) / 8;
}

/// True for the types whose out-of-bounds elements may read as NaN.
TMAP_HOST_DEVICE constexpr bool is_floating_point(element_type type) {
  switch (type) {
    case element_type::f16:
    case element_type::f32:
    case element_type::f64:
    case element_type::bf16:
    case element_type::f32_ftz:
    case element_type::tf32:
    case element_type::tf32_ftz: return true;
    default: return false;
  }
}

/// True for the packed types that exist from compute capability 10 on.
TMAP_HOST_DEVICE constexpr bool is_packed(element_type type) {
  return element_bits(type) < 8;
}

/// Returns "f16", "tf32_ftz", ...; "invalid" for a value that is no element type.
TMAP_HOST_DEVICE constexpr const char* name(element_type type) {
  switch (type) {
    case element_type::u8: return "u8";
    case element_type::u16: return "u16";
    case element_type::u32: return "u32";
    case element_type::i32: return "i32";
    case element_type::u64: return "u64";
    case element_type::i64: return "i64";
    case element_type::f16: return "f16";
    case element_type::f32: return "f32";
    case element_type::f64: return "f64";
    case element_type::bf16: return "bf16";
    case element_type::f32_ftz: return "f32_ftz";
    case element_type::tf32: return "tf32";
    case element_type::tf32_ftz: return "tf32_ftz";
    case element_type::u4_align8: return "u4_align8";
    case element_type::u4_align16: return "u4_align16";
    case element_type::u6_align16: return "u6_align16";
  }
  return "invalid";
}

}  // namespace tmap
