// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/detail/tile_shape.hpp>
#include <tmap/encode.hpp>
#include <tmap/error.hpp>
#include <tmap/map_batch_ref.hpp>
#include <tmap/map_template.hpp>
#include <tmap/typed_maps.hpp>

#include <cstdint>

namespace tmap {

/// @file
/// Makes maps for kernels that move a `Tile` (tile.hpp). For the maps of a `map_batch`, which know
/// their template, use `map_batch::as`. Each function fails with `invalid_argument` if the maps
/// move another tile. `argument` names the first field that differs, `found` is its value in the
/// maps and `allowed` its value in the tile. A type, an interleave or a swizzle is given as the
/// number of its enumerator, a box that patches may change as 0. Pure, except for the encode.

/// Makes a map for a parameter or for constant memory: `encode(spec)`. Also fails as that does.
template <class Tile>
[[nodiscard]] result<typed_map<Tile>> typed_map_of(const tensor_spec& spec) {
  const result<void> checked = detail::check_tile(detail::shape_of(spec), Tile::spec());
  if (!checked) return failure{checked.error()};
  const result<tensor_map> map = encode(spec);
  if (!map) return failure{map.error()};
  return detail::typed_access::as<Tile>(*map);
}

/// Types the maps of a reserved batch, which its kernel makes from `base`.
template <class Tile>
[[nodiscard]] result<typed_maps<Tile>> typed_maps_of(const map_template& base, const map_batch_ref& maps) {
  const result<void> checked = detail::check_tile(detail::shape_of(base.spec, base.fields), Tile::spec());
  if (!checked) return failure{checked.error()};
  return detail::typed_access::as<Tile>(maps);
}

/// Types `count` maps made from `base` in slots of the caller, in device memory.
template <class Tile>
[[nodiscard]] result<typed_maps<Tile>> typed_maps_of(const map_template& base, const tensor_map* slots,
                                                     std::uint32_t count) {
  map_batch_ref maps;
  maps.slots = slots;
  maps.count = count;
  return typed_maps_of<Tile>(base, maps);
}

}  // namespace tmap
