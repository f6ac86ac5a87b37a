// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Maps whose type names the tile that they move, as kernels take them. The host makes them with
/// `map_batch::as`, `typed_maps_of` or `typed_map_of` (make_typed_maps.hpp), which fail if maps and
/// tile differ. Then neither the rank of a copy nor the bytes that a barrier expects can be wrong
/// (device/tile.cuh). Plain values, trivially copyable.

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/map_batch_ref.hpp>
#include <tmap/tensor_map.hpp>

namespace tmap {

namespace detail {
struct typed_access;
}  // namespace detail

/// A map that moves a `Tile` (tile.hpp). A kernel takes it as `const __grid_constant__
/// typed_map<Tile>`, or it is in `__constant__` memory. `typed_map_of` makes it. It has no initial
/// value.
template <class Tile>
class typed_map {
 public:
  typed_map() = default;
  TMAP_HOST_DEVICE constexpr const tensor_map& map() const { return map_; }

 private:
  friend struct detail::typed_access;
  tensor_map map_;
};

/// Maps each of which moves a `Tile`. Passed to kernels by value. Valid as long as the `ref` it was
/// made from. Initially empty.
template <class Tile>
class typed_maps {
 public:
  typed_maps() = default;
  TMAP_HOST_DEVICE constexpr const map_batch_ref& ref() const { return ref_; }
  TMAP_HOST_DEVICE constexpr std::uint32_t count() const { return ref_.count; }

 private:
  friend struct detail::typed_access;
  map_batch_ref ref_;
};

namespace detail {

/// Gives maps a type. Only for functions that have compared them with the tile.
struct typed_access {
  template <class Tile>
  static TMAP_HOST_DEVICE typed_map<Tile> as(const tensor_map& map) {
    typed_map<Tile> typed;
    typed.map_ = map;
    return typed;
  }
  template <class Tile>
  static TMAP_HOST_DEVICE typed_maps<Tile> as(const map_batch_ref& ref) {
    typed_maps<Tile> typed;
    typed.ref_ = ref;
    return typed;
  }
};

}  // namespace detail
}  // namespace tmap
