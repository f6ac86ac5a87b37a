// SPDX-License-Identifier: Apache-2.0
#pragma once

// The checks of `validate`, one function for each group of rules, in the order of the table
// (docs/fields_and_rules.md). They call report(rule, axis, found, allowed) for each broken rule.
// Any bits are a legal argument: no array is read past `max_rank`, and sums are 128 bits wide.

#include <tmap/config.hpp>
#include <tmap/detail/spec_arithmetic.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/device_limits.hpp>
#include <tmap/rule.hpp>
#include <tmap/tensor_spec.hpp>

namespace tmap::detail {

/// T02
template <class Report>
TMAP_HOST_DEVICE constexpr void check_element_type(const tensor_spec& spec, const device_limits& limits,
                                                   Report& report) {
  const bool has_packed_types = limits.compute_capability >= packed_type_compute_capability;
  const std::uint32_t count = has_packed_types ? element_type_count : hopper_element_type_count;
  const auto type = static_cast<std::uint32_t>(spec.type);
  if (type >= count) report(rule::t02_element_type, -1, type, count - 1);
}

/// T03
template <class Report>
TMAP_HOST_DEVICE constexpr void check_rank(const tensor_spec& spec, Report& report) {
  if (spec.rank < 1 || spec.rank > max_rank) report(rule::t03_rank, -1, spec.rank, max_rank);
}

/// T04
template <class Report>
TMAP_HOST_DEVICE constexpr void check_interleave_rank(const tensor_spec& spec, Report& report) {
  const bool interleaved = spec.interleave == interleave::bytes_16 || spec.interleave == interleave::bytes_32;
  if (interleaved && spec.rank < 3) report(rule::t04_interleave_rank, -1, spec.rank, 3);
}

/// T05 to T08, T33
template <class Report>
TMAP_HOST_DEVICE constexpr void check_address(const tensor_spec& spec, Report& report) {
  const std::uint64_t address = spec.global_address;
  if (address == 0) report(rule::t05_address_null, -1, address, 16);
  if (address % 16 != 0) report(rule::t06_address_multiple_of_16, -1, address, 16);
  if (spec.interleave == interleave::bytes_32 && address % 32 != 0) {
    report(rule::t07_address_interleave_32, -1, address, 32);
  }
  if (needs_32_byte_alignment(spec.type) && address % 32 != 0) report(rule::t08_address_packed_type, -1, address, 32);
  if (address >= address_limit) report(rule::t33_address_range, -1, address, address_limit);
}

/// T09 to T11, T36
template <class Report>
TMAP_HOST_DEVICE constexpr void check_global_dims(const tensor_spec& spec, Report& report) {
  for (std::uint32_t axis = 0; axis < readable_rank(spec); ++axis) {
    const std::uint64_t dim = spec.global_dim[axis];
    if (dim < 1 || dim > max_global_dim) {
      report(rule::t09_global_dim_range, static_cast<std::int32_t>(axis), dim, max_global_dim);
    } else if (dim > max_copied_dim) {
      report(rule::t36_global_dim_copied, static_cast<std::int32_t>(axis), dim, max_copied_dim);
    }
  }
  if (spec.rank == 0) return;
  const std::uint64_t inner = spec.global_dim[0];
  if (needs_32_byte_alignment(spec.type) && inner % 128 != 0) report(rule::t10_global_dim_packed_type, 0, inner, 128);
  if (spec.type == element_type::u4_align8 && inner % 2 != 0) report(rule::t11_global_dim_even, 0, inner, 2);
}

/// T13 to T15
template <class Report>
TMAP_HOST_DEVICE constexpr void check_global_strides(const tensor_spec& spec, Report& report) {
  const bool needs_32 = spec.interleave == interleave::bytes_32 || needs_32_byte_alignment(spec.type);
  for (std::uint32_t index = 0; index + 1 < readable_rank(spec); ++index) {
    const std::uint64_t stride = spec.global_stride_bytes[index];
    const auto axis = static_cast<std::int32_t>(index);
    if (stride % 16 != 0) report(rule::t13_stride_multiple_of_16, axis, stride, 16);
    if (stride >= global_stride_limit) report(rule::t14_stride_range, axis, stride, global_stride_limit);
    if (needs_32 && stride % 32 != 0) report(rule::t15_stride_multiple_of_32, axis, stride, 32);
  }
}

/// T16: a step is shorter than the reach of the dimensions below it. A dimension of size 1 has no
/// step.
template <class Report>
TMAP_HOST_DEVICE constexpr void check_overlap(const tensor_spec& spec, Report& report) {
  for (std::uint32_t index = 0; index + 1 < readable_rank(spec); ++index) {
    const std::uint64_t stride = spec.global_stride_bytes[index];
    const uint128 reach = reach_bytes(spec, index + 1);
    if (spec.global_dim[index + 1] > 1 && stride < reach) {
      report(rule::t16_stride_overlap, static_cast<std::int32_t>(index), stride, saturate(reach));
    }
  }
}

/// T17
template <class Report>
TMAP_HOST_DEVICE constexpr void check_box_dims(const tensor_spec& spec, Report& report) {
  for (std::uint32_t axis = 0; axis < readable_rank(spec); ++axis) {
    const std::uint32_t box = spec.box_dim[axis];
    if (box < 1 || box > max_box_dim) {
      report(rule::t17_box_dim_range, static_cast<std::int32_t>(axis), box, max_box_dim);
    }
  }
}

/// T22 to T24: the inner box is at most as wide as the swizzle span. Counts bits, for the packed
/// types.
template <class Report>
TMAP_HOST_DEVICE constexpr void check_swizzle_span(rule id, std::uint32_t span, element_type type, std::uint32_t inner,
                                                   Report& report) {
  const std::uint64_t bits = element_bits(type);
  if (bits != 0 && bits * inner > std::uint64_t{span} * 8) report(id, 0, inner, std::uint64_t{span} * 8 / bits);
}

/// T18, T19, T22 to T24. `inner` is box_dim[0] of a tiled map and channels_per_pixel of an im2col
/// map.
template <class Report>
TMAP_HOST_DEVICE constexpr void check_inner_box(const tensor_spec& spec, std::uint32_t inner, Report& report) {
  const std::uint64_t bits = element_bits(spec.type);
  if (needs_32_byte_alignment(spec.type) && inner != 128) report(rule::t19_inner_box_packed_type, 0, inner, 128);
  if (bits * inner % 128 != 0) {
    report(rule::t18_inner_box_multiple_of_16, 0, inner, elements_per_16_bytes(spec.type));
  }
  if (spec.interleave != interleave::none) return;
  switch (spec.swizzle) {
    case swizzle::none: return;
    case swizzle::bytes_32: return check_swizzle_span(rule::t22_inner_box_swizzle_32, 32, spec.type, inner, report);
    case swizzle::bytes_64: return check_swizzle_span(rule::t23_inner_box_swizzle_64, 64, spec.type, inner, report);
    case swizzle::bytes_128:
    case swizzle::bytes_128_atom_32:
    case swizzle::bytes_128_atom_32_flip_8:
    case swizzle::bytes_128_atom_64:
      return check_swizzle_span(rule::t24_inner_box_swizzle_128, 128, spec.type, inner, report);
  }
}

/// T20. The driver also judges dimension 0, whose element stride has no effect without an
/// interleave.
template <class Report>
TMAP_HOST_DEVICE constexpr void check_element_strides(const tensor_spec& spec, Report& report) {
  for (std::uint32_t axis = 0; axis < readable_rank(spec); ++axis) {
    const std::uint32_t step = spec.element_stride[axis];
    if (step < 1 || step > max_element_stride) {
      report(rule::t20_element_stride_range, static_cast<std::int32_t>(axis), step, max_element_stride);
    }
  }
}

/// T21, T25
template <class Report>
TMAP_HOST_DEVICE constexpr void check_interleave(const tensor_spec& spec, Report& report) {
  const auto value = static_cast<std::uint32_t>(spec.interleave);
  const std::uint32_t last = spec.type == element_type::u6_align16 ? 0 : 2;
  if (value > last) report(rule::t21_interleave_value, -1, value, last);
  if (spec.interleave == interleave::bytes_32 && spec.swizzle != swizzle::bytes_32) {
    report(rule::t25_interleave_32_swizzle, -1, static_cast<std::uint32_t>(spec.swizzle),
           static_cast<std::uint32_t>(swizzle::bytes_32));
  }
}

/// T26 to T28
template <class Report>
TMAP_HOST_DEVICE constexpr void check_swizzle(const tensor_spec& spec, const device_limits& limits, Report& report) {
  const auto value = static_cast<std::uint32_t>(spec.swizzle);
  const bool whole_or_atom_32 =
      spec.swizzle == swizzle::none || spec.swizzle == swizzle::bytes_128 || spec.swizzle == swizzle::bytes_128_atom_32;
  if (spec.type == element_type::u6_align16 && !whole_or_atom_32 && spec.swizzle != swizzle::bytes_128_atom_64) {
    report(rule::t26_swizzle_u6, -1, value, static_cast<std::uint32_t>(swizzle::bytes_128));
  }
  if (spec.type == element_type::u4_align16 && !whole_or_atom_32) {
    report(rule::t27_swizzle_u4, -1, value, static_cast<std::uint32_t>(swizzle::bytes_128));
  }
  const std::uint32_t last = limits.compute_capability >= packed_type_compute_capability ? 6 : 3;
  if (value > last) report(rule::t28_swizzle_value, -1, value, last);
}

/// T29, T30
template <class Report>
TMAP_HOST_DEVICE constexpr void check_promotion_and_fill(const tensor_spec& spec, Report& report) {
  const auto promotion = static_cast<std::uint32_t>(spec.l2_promotion);
  if (promotion > 3) report(rule::t29_l2_promotion_value, -1, promotion, 3);
  const auto fill = static_cast<std::uint32_t>(spec.oob_fill);
  const std::uint32_t last = element_bits(spec.type) == 0 || is_floating_point(spec.type) ? 1 : 0;
  if (fill > last) report(rule::t30_oob_fill, -1, fill, last);
}

/// T34. T33 reports an address out of range.
template <class Report>
TMAP_HOST_DEVICE constexpr void check_extent(const tensor_spec& spec, Report& report) {
  if (spec.rank == 0 || spec.global_address >= address_limit) return;
  const uint128 end = uint128{spec.global_address} + reach_bytes(spec, readable_rank(spec));
  if (end > address_limit) report(rule::t34_extent_range, -1, saturate(end), address_limit);
}

/// T35
template <class Report>
TMAP_HOST_DEVICE constexpr void check_tile_size(std::uint64_t bytes, const device_limits& limits, Report& report) {
  if (bytes > limits.shared_memory_bytes) {
    report(rule::t35_tile_fits_shared_memory, -1, bytes, limits.shared_memory_bytes);
  }
}

/// Returns the elements of a box, with or without the element strides. The driver divides by each
/// of them, rounding down.
TMAP_HOST_DEVICE constexpr std::uint64_t counted_elements(const tensor_spec& spec, bool is_strided) {
  std::uint64_t elements = 1;
  for (std::uint32_t axis = 0; axis < readable_rank(spec); ++axis) {
    const auto box = static_cast<std::uint32_t>(clamp_above(spec.box_dim[axis], max_box_dim));
    const std::uint32_t step = spec.element_stride[axis];
    elements *= is_strided && step != 0 ? box / step : box;
  }
  return elements;
}

/// T37. The driver counts box / element stride along every dimension, for every interleave. Nearly
/// every box is small enough without the divisions.
template <class Report>
TMAP_HOST_DEVICE constexpr void check_box_bytes(const tensor_spec& spec, Report& report) {
  if (element_bytes(spec.type, counted_elements(spec, false)) <= max_box_bytes) return;
  const std::uint64_t bytes = element_bytes(spec.type, counted_elements(spec, true));
  if (bytes > max_box_bytes) report(rule::t37_box_bytes, -1, bytes, max_box_bytes);
}

/// Returns the spec with no box dim above 256 (T17 reports larger ones), so that the bytes of its
/// tile cannot wrap.
TMAP_HOST_DEVICE constexpr tensor_spec with_bounded_box(tensor_spec spec) {
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    spec.box_dim[axis] = static_cast<std::uint32_t>(clamp_above(spec.box_dim[axis], max_box_dim));
  }
  return spec;
}

/// Checks the rules of both tiled and im2col maps, except those of rank, box and tile size.
template <class Report>
TMAP_HOST_DEVICE constexpr void check_tensor(const tensor_spec& spec, std::uint32_t inner, const device_limits& limits,
                                             Report& report) {
  check_element_type(spec, limits, report);
  check_address(spec, report);
  check_global_dims(spec, report);
  check_global_strides(spec, report);
  check_overlap(spec, report);
  if (spec.rank != 0) check_inner_box(spec, inner, report);
  check_element_strides(spec, report);
  check_interleave(spec, report);
  check_swizzle(spec, limits, report);
  check_promotion_and_fill(spec, report);
  check_extent(spec, report);
}

template <class Report>
TMAP_HOST_DEVICE constexpr void check_tiled(const tensor_spec& spec, const device_limits& limits, Report&& report) {
  check_rank(spec, report);
  check_interleave_rank(spec, report);
  check_tensor(spec, spec.box_dim[0], limits, report);
  check_box_dims(spec, report);
  check_box_bytes(spec, report);
  check_tile_size(tile_footprint_bytes(with_bounded_box(spec)), limits, report);
}

}  // namespace tmap::detail
