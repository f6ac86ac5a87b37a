// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tensor_spec.hpp>

#include <cstdint>
#include <sstream>
#include <string>

// Specs as one line of numbers, for messages of failed tests and for golden files.

namespace tmap::testing {

/// Calls `visit` with every number of a spec, in a fixed order. `Spec` may be const.
template <class Spec, class Visit>
void for_each_number(Spec& spec, Visit&& visit) {
  visit(spec.type);
  visit(spec.rank);
  visit(spec.global_address);
  for (auto& dim : spec.global_dim) visit(dim);
  for (auto& stride : spec.global_stride_bytes) visit(stride);
  for (auto& extent : spec.box_dim) visit(extent);
  for (auto& step : spec.element_stride) visit(step);
  visit(spec.interleave);
  visit(spec.swizzle);
  visit(spec.l2_promotion);
  visit(spec.oob_fill);
}

template <class Spec, class Visit>
void for_each_im2col_number(Spec& spec, Visit&& visit) {
  for_each_number(spec.tensor, visit);
  for (auto& corner : spec.lower_corner) visit(corner);
  for (auto& corner : spec.upper_corner) visit(corner);
  visit(spec.channels_per_pixel);
  visit(spec.pixels_per_column);
}

inline constexpr const char* spec_columns =
    "type rank address dim[5] stride[4] box[5] element_stride[5] interleave swizzle l2_promotion oob_fill";
inline constexpr const char* im2col_columns = "lower_corner[3] upper_corner[3] channels_per_pixel pixels_per_column";

inline std::string to_text(const tensor_spec& spec) {
  std::ostringstream text;
  for_each_number(spec, [&](auto value) { text << static_cast<std::uint64_t>(value) << ' '; });
  return text.str();
}

inline std::string to_text(const im2col_spec& spec) {
  std::ostringstream text;
  for_each_im2col_number(spec, [&](auto value) { text << static_cast<std::int64_t>(value) << ' '; });
  return text.str();
}

/// Returns the spec with the defaults in fields that its rank does not use, as a decoder returns
/// it.
inline tensor_spec without_unused_axes(tensor_spec spec) {
  const tensor_spec blank;
  for (std::uint32_t axis = spec.rank; axis < max_rank; ++axis) {
    spec.global_dim[axis] = blank.global_dim[axis];
    spec.box_dim[axis] = blank.box_dim[axis];
    spec.element_stride[axis] = blank.element_stride[axis];
    spec.global_stride_bytes[axis - 1] = 0;
  }
  return spec;
}

}  // namespace tmap::testing
