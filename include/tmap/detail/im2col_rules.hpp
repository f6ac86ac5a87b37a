// SPDX-License-Identifier: Apache-2.0
#pragma once

// The checks that only im2col and im2col-wide maps have; spec_rules.hpp has those of all maps.

#include <tmap/detail/spec_rules.hpp>

namespace tmap::detail {

inline constexpr std::uint32_t min_im2col_rank = 3;
inline constexpr std::uint64_t max_channels_per_pixel = 256;
inline constexpr std::uint64_t max_pixels_per_column = 1024;
inline constexpr std::int64_t wide_corner_limit = 32768;

TMAP_HOST_DEVICE constexpr std::uint32_t spatial_dims(const tensor_spec& spec) {
  return spec.rank < min_im2col_rank ? 0 : readable_rank(spec) - 2;
}

/// Corners lie in [-limit, limit): a map keeps 16, 8 or 5 bits for each, by the number of spatial
/// dimensions.
TMAP_HOST_DEVICE constexpr std::int64_t corner_limit(std::uint32_t spatial) {
  return spatial == 1 ? 32768 : spatial == 2 ? 128 : 16;
}

TMAP_HOST_DEVICE constexpr bool in_corner_range(std::int64_t corner, std::int64_t limit) {
  return corner >= -limit && corner < limit;
}

/// I01
template <class Report>
TMAP_HOST_DEVICE constexpr void check_im2col_rank(const tensor_spec& spec, Report& report) {
  if (spec.rank < min_im2col_rank || spec.rank > max_rank) report(rule::i01_rank, -1, spec.rank, max_rank);
}

/// Returns the dimension of the tensor for a spatial axis (0 is W). Spatial dimensions follow the
/// channels. With an interleave, whose channels lie inside a unit of dimension 0, they begin at
/// dimension 0.
TMAP_HOST_DEVICE constexpr std::uint32_t spatial_dimension(const tensor_spec& spec, std::uint32_t axis) {
  return spec.interleave == interleave::none ? axis + 1 : axis;
}

/// I04, along one spatial axis. `found` is the signed extent; as in the driver, dim + upper corner
/// wraps at 32 bits.
template <class Report>
TMAP_HOST_DEVICE constexpr void check_box_extent(const tensor_spec& spec, std::uint32_t axis, std::int64_t lower,
                                                 std::int64_t upper, Report& report) {
  const std::uint64_t dim = spec.global_dim[spatial_dimension(spec, axis)];
  const auto end = static_cast<std::int32_t>(static_cast<std::uint32_t>(dim + static_cast<std::uint64_t>(upper)));
  const std::int64_t extent = end - lower;
  if (extent < 1) report(rule::i04_box_area, static_cast<std::int32_t>(axis), static_cast<std::uint64_t>(extent), 1);
}

/// I02 to I04
template <class Report>
TMAP_HOST_DEVICE constexpr void check_corners(const im2col_spec& spec, Report& report) {
  const std::uint32_t spatial = spatial_dims(spec.tensor);
  const std::int64_t limit = corner_limit(spatial);
  for (std::uint32_t axis = 0; axis < spatial; ++axis) {
    const std::int64_t lower = spec.lower_corner[axis];
    const std::int64_t upper = spec.upper_corner[axis];
    const auto signed_axis = static_cast<std::int32_t>(axis);
    const auto bound = static_cast<std::uint64_t>(limit);
    if (!in_corner_range(lower, limit)) {
      report(rule::i02_lower_corner_range, signed_axis, static_cast<std::uint64_t>(lower), bound);
    }
    if (!in_corner_range(upper, limit)) {
      report(rule::i03_upper_corner_range, signed_axis, static_cast<std::uint64_t>(upper), bound);
    }
    check_box_extent(spec.tensor, axis, lower, upper, report);
  }
}

/// I05
template <class Report>
TMAP_HOST_DEVICE constexpr void check_channels(std::uint32_t channels, Report& report) {
  if (channels < 1 || channels > max_channels_per_pixel) {
    report(rule::i05_channels_range, -1, channels, max_channels_per_pixel);
  }
}

/// I06
template <class Report>
TMAP_HOST_DEVICE constexpr void check_pixels(std::uint32_t pixels, Report& report) {
  if (pixels < 1 || pixels > max_pixels_per_column) {
    report(rule::i06_pixels_range, -1, pixels, max_pixels_per_column);
  }
}

/// Returns the bytes of one column. Counts that are too large count as the largest legal ones (I05
/// and I06 report them).
TMAP_HOST_DEVICE constexpr std::uint64_t column_bytes(element_type type, std::uint32_t channels, std::uint32_t pixels) {
  return element_bytes(type,
                       clamp_above(channels, max_channels_per_pixel) * clamp_above(pixels, max_pixels_per_column));
}

/// T37 and T35, for one column.
template <class Report>
TMAP_HOST_DEVICE constexpr void check_column_size(std::uint64_t bytes, const device_limits& limits, Report& report) {
  if (bytes > max_box_bytes) report(rule::t37_box_bytes, -1, bytes, max_box_bytes);
  check_tile_size(bytes, limits, report);
}

template <class Report>
TMAP_HOST_DEVICE constexpr void check_im2col(const im2col_spec& spec, const device_limits& limits, Report&& report) {
  check_tensor(spec.tensor, spec.channels_per_pixel, limits, report);
  check_im2col_rank(spec.tensor, report);
  check_corners(spec, report);
  check_channels(spec.channels_per_pixel, report);
  check_pixels(spec.pixels_per_column, report);
  check_column_size(column_bytes(spec.tensor.type, spec.channels_per_pixel, spec.pixels_per_column), limits, report);
}

/// W02, and I04 along W
template <class Report>
TMAP_HOST_DEVICE constexpr void check_wide_corners(const im2col_wide_spec& spec, Report& report) {
  const auto bound = static_cast<std::uint64_t>(wide_corner_limit);
  const std::int64_t lower = spec.lower_corner_w;
  const std::int64_t upper = spec.upper_corner_w;
  if (!in_corner_range(lower, wide_corner_limit)) {
    report(rule::w02_corner_range, 0, static_cast<std::uint64_t>(lower), bound);
  }
  if (!in_corner_range(upper, wide_corner_limit)) {
    report(rule::w02_corner_range, 0, static_cast<std::uint64_t>(upper), bound);
  }
  if (spatial_dims(spec.tensor) > 0) check_box_extent(spec.tensor, 0, lower, upper, report);
}

/// W01, W03 to W05
template <class Report>
TMAP_HOST_DEVICE constexpr void check_wide_modes(const im2col_wide_spec& spec, const device_limits& limits,
                                                 Report& report) {
  if (limits.compute_capability < packed_type_compute_capability) {
    report(rule::w01_compute_capability, -1, limits.compute_capability, packed_type_compute_capability);
  }
  const swizzle mode = spec.tensor.swizzle;
  if (mode != swizzle::bytes_64 && mode != swizzle::bytes_128 && mode != swizzle::bytes_128_atom_32) {
    report(rule::w03_swizzle, -1, static_cast<std::uint32_t>(mode), static_cast<std::uint32_t>(swizzle::bytes_128));
  }
  if (spec.tensor.interleave != interleave::none) {
    report(rule::w04_interleave, -1, static_cast<std::uint32_t>(spec.tensor.interleave), 0);
  }
  if (static_cast<std::uint32_t>(spec.mode) > 1) report(rule::w05_mode, -1, static_cast<std::uint32_t>(spec.mode), 1);
}

template <class Report>
TMAP_HOST_DEVICE constexpr void check_im2col_wide(const im2col_wide_spec& spec, const device_limits& limits,
                                                  Report&& report) {
  check_tensor(spec.tensor, spec.channels_per_pixel, limits, report);
  check_im2col_rank(spec.tensor, report);
  check_channels(spec.channels_per_pixel, report);
  const bool whole_128 = spec.mode == im2col_wide_mode::w128;
  if (!whole_128) check_pixels(spec.pixels_per_column, report);
  check_wide_modes(spec, limits, report);
  check_wide_corners(spec, report);
  const std::uint32_t pixels = whole_128 ? 128 : spec.pixels_per_column;
  check_column_size(column_bytes(spec.tensor.type, spec.channels_per_pixel, pixels), limits, report);
}

/// Checks any of the three kinds of spec.
template <class Report>
TMAP_HOST_DEVICE constexpr void check(const tensor_spec& spec, const device_limits& limits, Report&& report) {
  check_tiled(spec, limits, report);
}

template <class Report>
TMAP_HOST_DEVICE constexpr void check(const im2col_spec& spec, const device_limits& limits, Report&& report) {
  check_im2col(spec, limits, report);
}

template <class Report>
TMAP_HOST_DEVICE constexpr void check(const im2col_wide_spec& spec, const device_limits& limits, Report&& report) {
  check_im2col_wide(spec, limits, report);
}

}  // namespace tmap::detail
