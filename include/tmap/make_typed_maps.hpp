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

// Maps for kernels that move a `Tile` (tile.hpp). Each fails with `invalid_argument` where the maps
// move another one: `argument` names the first field that differs, `found` is its value in the maps
// and `allowed` in the tile (the value of the enumerator for a type, an interleave or a swizzle; 0
// for a box that maps may change themselves). Pure but for the encode. The maps of a `map_batch`
// know their template: `map_batch::as`.

/// A map for a parameter or for constant memory: `encode(spec)`, and fails as it does, too.
template <class Tile>
[[nodiscard]] result<typed_map<Tile>> typed_map_of(const tensor_spec& spec) {
  const result<void> checked = detail::check_tile(detail::shape_of(spec), Tile::spec());
  if (!checked) return failure{checked.error()};
  const result<tensor_map> map = encode(spec);
  if (!map) return failure{map.error()};
  return detail::typed_access::as<Tile>(*map);
}

/// Maps made from `base`: those of a reserved batch, which its kernel encodes.
template <class Tile>
[[nodiscard]] result<typed_maps<Tile>> typed_maps_of(const map_template& base, const map_batch_ref& maps) {
  const result<void> checked = detail::check_tile(detail::shape_of(base.spec, base.fields), Tile::spec());
  if (!checked) return failure{checked.error()};
  return detail::typed_access::as<Tile>(maps);
}

/// Maps made from `base` in slots of the caller, `count` of them in device memory.
template <class Tile>
[[nodiscard]] result<typed_maps<Tile>> typed_maps_of(const map_template& base, const tensor_map* slots,
                                                     std::uint32_t count) {
  map_batch_ref maps;
  maps.slots = slots;
  maps.count = count;
  return typed_maps_of<Tile>(base, maps);
}

}  // namespace tmap
