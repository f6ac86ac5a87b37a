// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "lib/interop/convert.hpp"

namespace tmap::interop {
namespace {

static_assert(TMAP_MAX_RANK == max_rank);
static_assert(mirrors(TMAP_U8, element_type::u8) && mirrors(TMAP_U16, element_type::u16));
static_assert(mirrors(TMAP_U32, element_type::u32) && mirrors(TMAP_I32, element_type::i32));
static_assert(mirrors(TMAP_U64, element_type::u64) && mirrors(TMAP_I64, element_type::i64));
static_assert(mirrors(TMAP_F16, element_type::f16) && mirrors(TMAP_F32, element_type::f32));
static_assert(mirrors(TMAP_F64, element_type::f64) && mirrors(TMAP_BF16, element_type::bf16));
static_assert(mirrors(TMAP_F32_FTZ, element_type::f32_ftz) && mirrors(TMAP_TF32, element_type::tf32));
static_assert(mirrors(TMAP_TF32_FTZ, element_type::tf32_ftz) && mirrors(TMAP_U4_ALIGN8, element_type::u4_align8));
static_assert(mirrors(TMAP_U4_ALIGN16, element_type::u4_align16) && mirrors(TMAP_U6_ALIGN16, element_type::u6_align16));
static_assert(TMAP_U6_ALIGN16 + 1 == element_type_count);
static_assert(mirrors(TMAP_INTERLEAVE_NONE, interleave::none) && mirrors(TMAP_INTERLEAVE_16B, interleave::bytes_16));
static_assert(mirrors(TMAP_INTERLEAVE_32B, interleave::bytes_32));
static_assert(mirrors(TMAP_SWIZZLE_NONE, swizzle::none) && mirrors(TMAP_SWIZZLE_32B, swizzle::bytes_32));
static_assert(mirrors(TMAP_SWIZZLE_64B, swizzle::bytes_64) && mirrors(TMAP_SWIZZLE_128B, swizzle::bytes_128));
static_assert(mirrors(TMAP_SWIZZLE_128B_ATOM_32B, swizzle::bytes_128_atom_32));
static_assert(mirrors(TMAP_SWIZZLE_128B_ATOM_32B_FLIP_8B, swizzle::bytes_128_atom_32_flip_8));
static_assert(mirrors(TMAP_SWIZZLE_128B_ATOM_64B, swizzle::bytes_128_atom_64));
static_assert(mirrors(TMAP_L2_PROMOTION_NONE, l2_promotion::none) &&
              mirrors(TMAP_L2_PROMOTION_64B, l2_promotion::bytes_64));
static_assert(mirrors(TMAP_L2_PROMOTION_128B, l2_promotion::bytes_128));
static_assert(mirrors(TMAP_L2_PROMOTION_256B, l2_promotion::bytes_256));
static_assert(mirrors(TMAP_OOB_FILL_ZERO, oob_fill::zero) && mirrors(TMAP_OOB_FILL_NAN, oob_fill::nan));
static_assert(mirrors(TMAP_MAP_TILED, map_kind::tiled) && mirrors(TMAP_MAP_IM2COL, map_kind::im2col));
static_assert(sizeof(tmap_tensor_map) == sizeof(tensor_map));

}  // namespace

void check_members(arguments& all, const tmap_im2col_spec& spec, const support::argument& name) {
  all.structure(&spec.tensor, name.member("tensor"));
}

tensor_spec library_of(const tmap_tensor_spec& from) {
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

im2col_spec library_of(const tmap_im2col_spec& from) {
  im2col_spec spec;
  spec.tensor = library_of(from.tensor);
  copy(from.lower_corner, spec.lower_corner);
  copy(from.upper_corner, spec.upper_corner);
  spec.channels_per_pixel = from.channels_per_pixel;
  spec.pixels_per_column = from.pixels_per_column;
  return spec;
}

device_limits library_of(const tmap_device_limits& limits) {
  return {limits.compute_capability, limits.shared_memory_bytes};
}

tensor_map library_of(const tmap_tensor_map& from) {
  return std::bit_cast<tensor_map>(from);
}

tmap_tensor_spec c_of(const tensor_spec& from) {
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

tmap_decoded_map c_of(const decoded_map& from) {
  tmap_decoded_map decoded{};
  decoded.struct_size = sizeof decoded;
  decoded.kind = static_cast<std::uint32_t>(from.kind);
  decoded.tensor = c_of(from.spec);
  copy(from.lower_corner, decoded.lower_corner);
  copy(from.upper_corner, decoded.upper_corner);
  decoded.channels_per_pixel = from.channels_per_pixel;
  decoded.pixels_per_column = from.pixels_per_column;
  decoded.noted_box_bytes = from.noted_box_bytes;
  decoded.noted_shared_alignment = from.noted_shared_alignment;
  decoded.large_tensor = from.large_tensor ? 1 : 0;
  return decoded;
}

tmap_tensor_map c_of(const tensor_map& from) {
  return std::bit_cast<tmap_tensor_map>(from);
}

tmap_device_limits c_of(const device_limits& limits) {
  return {sizeof(tmap_device_limits), limits.compute_capability, limits.shared_memory_bytes, 0};
}

}  // namespace tmap::interop
