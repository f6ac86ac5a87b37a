// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/convert_spec.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace tmap::interop {
namespace {

template <class Enum>
constexpr bool same(int number, Enum value) {
  return number == static_cast<int>(value);
}
static_assert(TMAP_MAX_RANK == max_rank);
static_assert(same(TMAP_U8, element_type::u8) && same(TMAP_U16, element_type::u16));
static_assert(same(TMAP_U32, element_type::u32) && same(TMAP_I32, element_type::i32));
static_assert(same(TMAP_U64, element_type::u64) && same(TMAP_I64, element_type::i64));
static_assert(same(TMAP_F16, element_type::f16) && same(TMAP_F32, element_type::f32));
static_assert(same(TMAP_F64, element_type::f64) && same(TMAP_BF16, element_type::bf16));
static_assert(same(TMAP_F32_FTZ, element_type::f32_ftz) && same(TMAP_TF32, element_type::tf32));
static_assert(same(TMAP_TF32_FTZ, element_type::tf32_ftz) && same(TMAP_U4_ALIGN8, element_type::u4_align8));
static_assert(same(TMAP_U4_ALIGN16, element_type::u4_align16) && same(TMAP_U6_ALIGN16, element_type::u6_align16));
static_assert(TMAP_U6_ALIGN16 + 1 == element_type_count);
static_assert(same(TMAP_INTERLEAVE_NONE, interleave::none) && same(TMAP_INTERLEAVE_16B, interleave::bytes_16));
static_assert(same(TMAP_INTERLEAVE_32B, interleave::bytes_32));
static_assert(same(TMAP_SWIZZLE_NONE, swizzle::none) && same(TMAP_SWIZZLE_32B, swizzle::bytes_32));
static_assert(same(TMAP_SWIZZLE_64B, swizzle::bytes_64) && same(TMAP_SWIZZLE_128B, swizzle::bytes_128));
static_assert(same(TMAP_SWIZZLE_128B_ATOM_32B, swizzle::bytes_128_atom_32));
static_assert(same(TMAP_SWIZZLE_128B_ATOM_32B_FLIP_8B, swizzle::bytes_128_atom_32_flip_8));
static_assert(same(TMAP_SWIZZLE_128B_ATOM_64B, swizzle::bytes_128_atom_64));
static_assert(same(TMAP_L2_PROMOTION_NONE, l2_promotion::none) && same(TMAP_L2_PROMOTION_64B, l2_promotion::bytes_64));
static_assert(same(TMAP_L2_PROMOTION_128B, l2_promotion::bytes_128));
static_assert(same(TMAP_L2_PROMOTION_256B, l2_promotion::bytes_256));
static_assert(same(TMAP_OOB_FILL_ZERO, oob_fill::zero) && same(TMAP_OOB_FILL_NAN, oob_fill::nan));
static_assert(same(TMAP_MAP_TILED, map_kind::tiled) && same(TMAP_MAP_IM2COL, map_kind::im2col));
static_assert(sizeof(tmap_tensor_map) == sizeof(tensor_map));

/// One array to another of the same length.
template <class T, std::size_t Count>
void copy(const T (&from)[Count], T (&to)[Count]) {
  std::copy(std::begin(from), std::end(from), std::begin(to));
}

}  // namespace

tensor_spec spec_of(const tmap_tensor_spec& from) {
  tensor_spec spec;
  spec.global_address = from.global_address;
  spec.type = static_cast<element_type>(from.element_type);
  spec.rank = from.rank;
  copy(from.global_dim, spec.global_dim);
  copy(from.global_stride_bytes, spec.global_stride_bytes);
  copy(from.box_dim, spec.box_dim);
  copy(from.element_stride, spec.element_stride);
  spec.interleave = static_cast<interleave>(from.interleave);
  spec.swizzle = static_cast<swizzle>(from.swizzle);
  spec.l2_promotion = static_cast<l2_promotion>(from.l2_promotion);
  spec.oob_fill = static_cast<oob_fill>(from.oob_fill);
  return spec;
}

im2col_spec spec_of(const tmap_im2col_spec& from) {
  im2col_spec spec;
  spec.tensor = spec_of(from.tensor);
  copy(from.lower_corner, spec.lower_corner);
  copy(from.upper_corner, spec.upper_corner);
  spec.channels_per_pixel = from.channels_per_pixel;
  spec.pixels_per_column = from.pixels_per_column;
  return spec;
}

device_limits limits_of(const tmap_device_limits* limits) {
  if (limits == nullptr) return hopper_limits();
  return {limits->compute_capability, limits->shared_memory_bytes};
}

tensor_map map_of(const tmap_tensor_map& from) {
  tensor_map map;
  std::memcpy(&map, &from, sizeof map);
  return map;
}

tmap_tensor_spec c_spec_of(const tensor_spec& from) {
  tmap_tensor_spec spec{};
  spec.struct_size = sizeof spec;
  spec.rank = from.rank;
  spec.global_address = from.global_address;
  copy(from.global_dim, spec.global_dim);
  copy(from.global_stride_bytes, spec.global_stride_bytes);
  copy(from.box_dim, spec.box_dim);
  copy(from.element_stride, spec.element_stride);
  spec.element_type = static_cast<std::uint32_t>(from.type);
  spec.interleave = static_cast<std::uint32_t>(from.interleave);
  spec.swizzle = static_cast<std::uint32_t>(from.swizzle);
  spec.l2_promotion = static_cast<std::uint32_t>(from.l2_promotion);
  spec.oob_fill = static_cast<std::uint32_t>(from.oob_fill);
  return spec;
}

tmap_decoded_map c_decoded_of(const decoded_map& from) {
  tmap_decoded_map decoded{};
  decoded.struct_size = sizeof decoded;
  decoded.kind = static_cast<std::uint32_t>(from.kind);
  decoded.tensor = c_spec_of(from.spec);
  copy(from.lower_corner, decoded.lower_corner);
  copy(from.upper_corner, decoded.upper_corner);
  decoded.channels_per_pixel = from.channels_per_pixel;
  decoded.pixels_per_column = from.pixels_per_column;
  decoded.noted_box_bytes = from.noted_box_bytes;
  decoded.noted_shared_alignment = from.noted_shared_alignment;
  decoded.large_tensor = from.large_tensor ? 1 : 0;
  return decoded;
}

tmap_tensor_map c_map_of(const tensor_map& from) {
  tmap_tensor_map map;
  std::memcpy(&map, &from, sizeof map);
  return map;
}

}  // namespace tmap::interop
