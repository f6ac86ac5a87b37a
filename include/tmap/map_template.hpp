// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/tensor_map.hpp>
#include <tmap/tensor_spec.hpp>

namespace tmap {

/// A set of fields that a batch may change, such as `patch_address | patch_dim(0)`.
/// `patch_fields{}` is the empty set. No integer converts to it. `patch_fields{bits}` makes one
/// from the bits of `TMAP_PATCH_...` (c/batch.h). nvcc 13.0 takes no value of it as an argument of
/// a kernel template: pass `bits_of(fields)`.
enum class patch_fields : std::uint32_t {};

TMAP_HOST_DEVICE constexpr std::uint32_t bits_of(patch_fields fields) {
  return static_cast<std::uint32_t>(fields);
}
TMAP_HOST_DEVICE constexpr patch_fields operator|(patch_fields a, patch_fields b) {
  return patch_fields{bits_of(a) | bits_of(b)};
}
TMAP_HOST_DEVICE constexpr patch_fields operator&(patch_fields a, patch_fields b) {
  return patch_fields{bits_of(a) & bits_of(b)};
}
TMAP_HOST_DEVICE constexpr patch_fields operator~(patch_fields a) {
  return patch_fields{~bits_of(a)};
}
TMAP_HOST_DEVICE constexpr patch_fields& operator|=(patch_fields& a, patch_fields b) {
  return a = a | b;
}
/// Whether `fields` holds at least one of `wanted`.
TMAP_HOST_DEVICE constexpr bool has_any(patch_fields fields, patch_fields wanted) {
  return (fields & wanted) != patch_fields{};
}

namespace detail {

/// The first bit of each kind of field. A kind has one bit for each axis.
inline constexpr std::uint32_t first_dim_bit = 1;
inline constexpr std::uint32_t first_stride_bit = 6;
inline constexpr std::uint32_t first_box_bit = 10;
inline constexpr std::uint32_t first_element_stride_bit = 15;

/// Returns the fields of the first `count` axes of one kind.
TMAP_HOST_DEVICE constexpr patch_fields first_fields(std::uint32_t first_bit, std::uint32_t count) {
  return patch_fields{((1u << count) - 1) << first_bit};
}

inline constexpr patch_fields any_dim = first_fields(first_dim_bit, max_rank);
inline constexpr patch_fields any_stride = first_fields(first_stride_bit, max_rank - 1);
inline constexpr patch_fields any_box = first_fields(first_box_bit, max_rank);
inline constexpr patch_fields any_element_stride = first_fields(first_element_stride_bit, max_rank);

/// Returns the field of an axis that no tensor has. Every template refuses it. Not constexpr, so
/// that a constant which needs it does not compile.
TMAP_HOST_DEVICE inline patch_fields no_such_field() {
  return patch_fields{1u << 31};
}

TMAP_HOST_DEVICE constexpr patch_fields field_of(std::uint32_t first_bit, std::uint32_t axis, std::uint32_t count) {
  return axis < count ? patch_fields{1u << (first_bit + axis)} : no_such_field();
}

}  // namespace detail

inline constexpr patch_fields patch_address{1};

/// @file
/// An axis that is too large does not compile in a constant. Elsewhere `make_template` refuses it.

/// `axis` is 0 to 4.
TMAP_HOST_DEVICE constexpr patch_fields patch_dim(std::uint32_t axis) {
  return detail::field_of(detail::first_dim_bit, axis, max_rank);
}
/// `index` is 0 to 3 and names the step of dimension `index + 1`.
TMAP_HOST_DEVICE constexpr patch_fields patch_stride(std::uint32_t index) {
  return detail::field_of(detail::first_stride_bit, index, max_rank - 1);
}
/// `axis` is 0 to 4.
TMAP_HOST_DEVICE constexpr patch_fields patch_box(std::uint32_t axis) {
  return detail::field_of(detail::first_box_bit, axis, max_rank);
}
/// `axis` is 0 to 4.
TMAP_HOST_DEVICE constexpr patch_fields patch_element_stride(std::uint32_t axis) {
  return detail::field_of(detail::first_element_stride_bit, axis, max_rank);
}

/// Address, every dim and every stride of a tensor of rank 1 to 5: what a ragged batch changes.
TMAP_HOST_DEVICE constexpr patch_fields patch_extents(std::uint32_t rank) {
  return patch_address | detail::first_fields(detail::first_dim_bit, rank) |
         detail::first_fields(detail::first_stride_bit, rank == 0 ? 0 : rank - 1);
}

/// `patch_extents`, and every box dim and element stride.
TMAP_HOST_DEVICE constexpr patch_fields patch_everything(std::uint32_t rank) {
  return patch_extents(rank) | detail::first_fields(detail::first_box_bit, rank) |
         detail::first_fields(detail::first_element_stride_bit, rank);
}

/// The part that all maps of one batch have in common: an encoded map, the spec it was made from,
/// and the fields that each map may change. It is trivially copyable and goes to kernels by value.
/// Element type, interleave, swizzle, L2 promotion and fill hold for every map of the batch,
/// because `tensormap.replace` cannot change L2 promotion or clear a TF32 bit. It takes the other
/// modes as immediates only.
struct map_template {
  tensor_map map{};
  tensor_spec spec;
  patch_fields fields{};
};

}  // namespace tmap
