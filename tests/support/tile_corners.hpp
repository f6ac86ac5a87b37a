// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/patch_rules.hpp>

#include <cstdint>

// The corners at which tests copy through untrusted maps: every kind of corner that an instruction
// may use.

namespace tmap::testing {

/// The kinds of corners along an axis: the origin, the last tile, past the end, the largest. Loads
/// also use one before the beginning and the smallest.
inline constexpr std::uint32_t store_corners = 4;
inline constexpr std::uint32_t load_corners = 6;

/// Returns the coordinate along `axis` at `turn`, one of `2 * corners`: first the same kind on
/// every axis, then a mixture. The innermost one is a multiple of 16 bytes.
TMAP_HOST_DEVICE inline std::int32_t corner_coordinate(const tensor_spec& spec, std::uint32_t axis, std::uint32_t turn,
                                                       std::uint32_t corners) {
  const auto elements = static_cast<std::int32_t>(detail::elements_per_16_bytes(spec.type));
  const std::int32_t unit = axis == 0 ? elements : 1;
  const auto dim = static_cast<std::int64_t>(spec.global_dim[axis]);
  const auto box = static_cast<std::int64_t>(spec.box_dim[axis]);
  const std::int64_t kinds[load_corners] = {0, dim - 1, dim + 1000, INT32_MAX, -box, INT32_MIN};
  const std::int64_t wanted = kinds[turn < corners ? turn : (turn + axis) % corners];
  return static_cast<std::int32_t>(wanted > INT32_MAX ? INT32_MAX : wanted) & ~(unit - 1);
}

}  // namespace tmap::testing
