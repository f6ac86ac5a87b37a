// SPDX-License-Identifier: Apache-2.0
#pragma once

// Accepts most good patches quickly. The rules need some 1,500 instructions, and a small batch pays
// to fetch all of them for one run. These comparisons need a tenth. They name no rule and may
// refuse a good patch, but a patch that they accept breaks no rule (tests compare).

#include <tmap/config.hpp>
#include <tmap/detail/spec_arithmetic.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/item_status.hpp>
#include <tmap/map_template.hpp>
#include <tmap/tensor_spec.hpp>

namespace tmap::detail {

/// All sums count units of 16 bytes, so that they fit in 64 bits.
inline constexpr std::uint32_t unit_bytes = 16;
/// A plain address is at most half of `address_limit`. The terms of an extent must stay below the
/// other half: up to four terms of strides, each below this limit, and the row, which is far
/// shorter.
inline constexpr std::uint64_t plain_units = address_limit / 2 / unit_bytes / 8;

/// log2 of the bytes of each type of a Hopper GPU, two bits each: a shift instead of a search.
TMAP_HOST_DEVICE constexpr std::uint32_t pack_byte_shifts() {
  std::uint32_t packed = 0;
  for (std::uint32_t type = 0; type < hopper_element_type_count; ++type) {
    std::uint32_t shift = 0;
    while (8u << shift < element_bits(static_cast<element_type>(type))) ++shift;
    packed |= shift << 2 * type;
  }
  return packed;
}

TMAP_HOST_DEVICE constexpr std::uint32_t plain_byte_shift(element_type type) {
  constexpr std::uint32_t packed = pack_byte_shifts();
  return packed >> 2 * static_cast<std::uint32_t>(type) & 3;
}

/// Returns log2 of the bytes of one step along dimension 0, which counts units of 16 or 32 bytes in
/// an interleaved map.
TMAP_HOST_DEVICE constexpr std::uint32_t plain_row_shift(const tensor_spec& spec) {
  if (spec.interleave == interleave::none) return plain_byte_shift(spec.type);
  return spec.interleave == interleave::bytes_16 ? 4 : 5;
}

/// Returns the units from element 0 to the tensor's end, rounded up; 0 if the extents are not
/// plain.
TMAP_HOST_DEVICE constexpr std::uint64_t plain_extent_units(const tensor_spec& spec) {
  bool is_plain = spec.global_dim[0] - 1 < max_copied_dim;
  const std::uint64_t row = std::uint64_t{static_cast<std::uint32_t>(spec.global_dim[0])} << plain_row_shift(spec);
  std::uint64_t units = (row + unit_bytes - 1) / unit_bytes;
  for (std::uint32_t axis = 1; axis < max_rank; ++axis) {
    if (axis >= spec.rank) break;
    const std::uint64_t steps = spec.global_dim[axis] - 1;
    const std::uint64_t stride_units = spec.global_stride_bytes[axis - 1] / unit_bytes;
    const std::uint64_t term =
        std::uint64_t{static_cast<std::uint32_t>(steps)} * static_cast<std::uint32_t>(stride_units);
    is_plain &= steps < max_copied_dim && stride_units >> 32 == 0 && term < plain_units;
    units += term;
  }
  return is_plain ? units : 0;
}

TMAP_HOST_DEVICE constexpr bool is_plainly_aligned(const tensor_spec& spec) {
  std::uint64_t bits = spec.global_address;
  for (std::uint32_t axis = 0; axis + 1 < max_rank; ++axis) {
    if (axis + 1 < spec.rank) bits |= spec.global_stride_bytes[axis];
  }
  const std::uint64_t alignment = spec.interleave == interleave::bytes_32 ? 32 : 16;
  return bits % alignment == 0;
}

TMAP_HOST_DEVICE constexpr bool has_plain_box(const tensor_spec& spec) {
  const std::uint32_t span = spec.swizzle == swizzle::none || spec.interleave != interleave::none
                                 ? std::uint32_t{max_box_dim * 8}
                                 : 16u << static_cast<std::uint32_t>(spec.swizzle);
  std::uint64_t bytes = std::uint64_t{spec.box_dim[0]} << plain_byte_shift(spec.type);
  bool is_plain = bytes % unit_bytes == 0 && bytes <= span && spec.swizzle <= swizzle::bytes_128;
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    if (axis >= spec.rank) break;
    is_plain &= spec.box_dim[axis] - 1 < max_box_dim && spec.element_stride[axis] - 1 < max_element_stride;
    if (axis > 0) bytes *= spec.box_dim[axis];
  }
  return is_plain && bytes <= max_box_bytes;
}

/// Whether every address that a copy may touch plainly lies in a window, or there are no windows.
TMAP_HOST_DEVICE constexpr bool is_plainly_inside(std::uint64_t begin, std::uint64_t end, const address_window* windows,
                                                  std::uint32_t window_count) {
  bool is_inside = window_count == 0;
  TMAP_KEEP_ROLLED
  for (std::uint32_t i = 0; i < window_count; ++i) is_inside |= windows[i].begin <= begin && end <= windows[i].end;
  return is_inside;
}

/// Whether a patched spec of a valid template certainly has elements and breaks no rule.
TMAP_HOST_DEVICE constexpr bool is_plainly_good(const tensor_spec& spec, patch_fields fields,
                                                const address_window* windows, std::uint32_t window_count) {
  if (static_cast<std::uint32_t>(spec.type) >= hopper_element_type_count) return false;
  const std::uint64_t units = plain_extent_units(spec);
  const std::uint64_t begin = spec.global_address;
  const bool has_plain_place = units != 0 && begin - 1 < address_limit / 2 && is_plainly_aligned(spec);
  if (!has_plain_place || (has_any(fields, any_box | any_element_stride) && !has_plain_box(spec))) return false;
  return is_plainly_inside(begin, begin + units * unit_bytes, windows, window_count);
}

}  // namespace tmap::detail
