// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compares the tile that the maps of one template move with a tile type. For the host.

#include <tmap/error.hpp>
#include <tmap/map_template.hpp>
#include <tmap/tensor_spec.hpp>

#include <cstdint>

namespace tmap::detail {

/// The shape of the tile that one copy moves. Rank 0: not known, or not the same for all maps.
struct tile_shape {
  element_type type{};
  std::uint32_t rank{};
  std::uint32_t dim[max_rank]{};  ///< as `tile_dim`; 0 where maps may differ
  tmap::interleave interleave{};
  tmap::swizzle swizzle{};

  friend constexpr bool operator==(const tile_shape& a, const tile_shape& b) {
    for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
      if (a.dim[axis] != b.dim[axis]) return false;
    }
    return a.type == b.type && a.rank == b.rank && a.interleave == b.interleave && a.swizzle == b.swizzle;
  }
};

constexpr tile_shape shape_of(const tensor_spec& spec, patch_fields fields = {}) {
  tile_shape shape;
  shape.type = spec.type;
  shape.rank = spec.rank;
  shape.interleave = spec.interleave;
  shape.swizzle = spec.swizzle;
  for (std::uint32_t axis = 0; axis < spec.rank && axis < max_rank; ++axis) {
    const bool differs = has_any(fields, patch_box(axis) | patch_element_stride(axis));
    shape.dim[axis] = differs ? 0 : tile_dim(spec, axis);
  }
  return shape;
}

inline failure other_tile(const char* argument, std::int32_t axis, std::uint64_t found, std::uint64_t allowed) {
  error e;
  e.argument = argument;
  e.reason = "is {found}; the tile has {allowed}";
  e.axis = axis;
  e.found = found;
  e.allowed = allowed;
  return failure{e};
}

/// @fails `invalid_argument`, naming the first field in which maps of shape `found` differ from the
/// tile of `wanted`. Enumerators are given as numbers.
[[nodiscard]] inline result<void> check_tile(const tile_shape& found, const tensor_spec& wanted) {
  constexpr const char* boxes[max_rank] = {"box_dim[0] of the maps", "box_dim[1] of the maps", "box_dim[2] of the maps",
                                           "box_dim[3] of the maps", "box_dim[4] of the maps"};
  if (found.rank == 0) {
    failure unknown = other_tile("template of the maps", -1, 0, 0);
    unknown.error().reason = "is not known, or not one for all of them; name it to `typed_maps_of`";
    return unknown;
  }
  if (found.type != wanted.type) {
    return other_tile("element type of the maps", -1, static_cast<std::uint32_t>(found.type),
                      static_cast<std::uint32_t>(wanted.type));
  }
  if (found.rank != wanted.rank) return other_tile("rank of the maps", -1, found.rank, wanted.rank);
  if (found.interleave != wanted.interleave) {
    return other_tile("interleave of the maps", -1, static_cast<std::uint32_t>(found.interleave),
                      static_cast<std::uint32_t>(wanted.interleave));
  }
  for (std::uint32_t axis = 0; axis < wanted.rank; ++axis) {
    const std::uint32_t dim = tile_dim(wanted, axis);
    if (found.dim[axis] != dim) return other_tile(boxes[axis], static_cast<std::int32_t>(axis), found.dim[axis], dim);
  }
  if (found.swizzle != wanted.swizzle) {
    return other_tile("swizzle of the maps", -1, static_cast<std::uint32_t>(found.swizzle),
                      static_cast<std::uint32_t>(wanted.swizzle));
  }
  return {};
}

}  // namespace tmap::detail
