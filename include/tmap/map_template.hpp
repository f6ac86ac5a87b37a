// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/tensor_map.hpp>
#include <tmap/tensor_spec.hpp>

namespace tmap {

/// The fields a batch may change, as a bit set: `patch_address | patch_dim(0) | patch_stride(0)`.
using patch_fields = std::uint32_t;

namespace detail {
/// Where the bits of each kind of field begin: one for each axis.
inline constexpr std::uint32_t first_dim_bit = 1;
inline constexpr std::uint32_t first_stride_bit = 6;
inline constexpr std::uint32_t first_box_bit = 10;
inline constexpr std::uint32_t first_element_stride_bit = 15;

/// What an axis that no tensor has names: a field that no template takes. Not constexpr, so that a
/// constant which needs it does not compile.
TMAP_HOST_DEVICE inline patch_fields no_such_field() {
  return patch_fields{1} << 31;
}
}  // namespace detail

inline constexpr patch_fields patch_address = 1;
/// Of axis 0 to 4. An axis beyond does not compile where it is a constant, and is refused with the
/// template elsewhere.
TMAP_HOST_DEVICE constexpr patch_fields patch_dim(std::uint32_t axis) {
  return axis < max_rank ? 1u << (detail::first_dim_bit + axis) : detail::no_such_field();
}
/// Of index 0 to 3: the step of dimension `index + 1`.
TMAP_HOST_DEVICE constexpr patch_fields patch_stride(std::uint32_t index) {
  return index < max_rank - 1 ? 1u << (detail::first_stride_bit + index) : detail::no_such_field();
}
TMAP_HOST_DEVICE constexpr patch_fields patch_box(std::uint32_t axis) {
  return axis < max_rank ? 1u << (detail::first_box_bit + axis) : detail::no_such_field();
}
TMAP_HOST_DEVICE constexpr patch_fields patch_element_stride(std::uint32_t axis) {
  return axis < max_rank ? 1u << (detail::first_element_stride_bit + axis) : detail::no_such_field();
}

/// Address, every dim and every stride of a tensor of this rank, at most 5: what a ragged batch
/// changes.
TMAP_HOST_DEVICE constexpr patch_fields patch_extents(std::uint32_t rank) {
  patch_fields fields = patch_address;
  for (std::uint32_t axis = 0; axis < rank; ++axis) {
    fields |= 1u << (detail::first_dim_bit + axis);
    if (axis + 1 < rank) fields |= 1u << (detail::first_stride_bit + axis);
  }
  return fields;
}

/// `patch_extents` and also every box dim and element stride.
TMAP_HOST_DEVICE constexpr patch_fields patch_everything(std::uint32_t rank) {
  patch_fields fields = patch_extents(rank);
  for (std::uint32_t axis = 0; axis < rank; ++axis) {
    fields |= 1u << (detail::first_box_bit + axis) | 1u << (detail::first_element_stride_bit + axis);
  }
  return fields;
}

/// What the maps of one batch share: an encoded map, the spec it was made from, and the fields each
/// map may change. A plain value, trivially copyable, passed to kernels by value. The element type,
/// interleave, swizzle, L2 promotion and fill of a template hold for every map made from it:
/// tensormap.replace cannot change L2 promotion, nor clear a TF32 bit, and its other modes are
/// immediates.
struct map_template {
  tensor_map map{};
  tensor_spec spec;
  patch_fields fields{};
};

}  // namespace tmap
