// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Copies of a typed tile (tmap/tile.hpp) through maps of the same type (tmap/typed_maps.hpp).
/// Rank, bytes and element type come from the type, so they cannot disagree. Tiles lie in shared
/// memory. All else is as in tile_copy.cuh and reduce_copy.cuh:
///
/// - Coordinates are innermost first.
/// - One thread calls each function.
/// - Threads that wrote a tile call `fence_shared_writes` before it is stored.
/// - `commit_stores` closes a group of stores.

#include <tmap/detail/standard.hpp>
#include <tmap/device/acquire.cuh>
#include <tmap/device/cache_hint.cuh>
#include <tmap/device/reduce_copy.cuh>
#include <tmap/device/tile_copy.cuh>
#include <tmap/tile.hpp>
#include <tmap/typed_maps.hpp>

namespace tmap::device {

namespace detail {
struct typed_access;
}  // namespace detail

/// An `acquired_map` that moves a `Tile`: the only type the functions below accept.
template <class Tile>
class acquired_typed_map {
 public:
  /// Returns the map for calls that take no type, such as those whose rank is known only when the
  /// kernel runs.
  __device__ acquired_map untyped() const { return map_; }

 private:
  explicit __device__ acquired_typed_map(acquired_map map) : map_(map) {}
  friend struct detail::typed_access;

  acquired_map map_;
};

namespace detail {

struct typed_access {
  template <class Tile>
  static __device__ acquired_typed_map<Tile> as(acquired_map map) {
    return acquired_typed_map<Tile>(map);
  }
};

/// Requires as many coordinates as the tile has dims.
template <class Tile, std::uint32_t Rank>
using if_rank = std::enable_if_t<Rank == Tile::rank, int>;

}  // namespace detail

/// Acquires a typed map, as the untyped functions do (acquire.cuh).
template <class Tile>
__device__ acquired_typed_map<Tile> acquire(const typed_maps<Tile>& maps, std::uint32_t i,
                                            map_scope scope = map_scope::gpu) {
  return detail::typed_access::as<Tile>(acquire(maps.ref(), i, scope));
}

template <class Tile>
__device__ acquired_typed_map<Tile> parameter_map(const typed_map<Tile>& map) {
  return detail::typed_access::as<Tile>(parameter_map(map.map()));
}

template <class Tile>
__device__ acquired_typed_map<Tile> constant_map(const typed_map<Tile>& map) {
  return detail::typed_access::as<Tile>(constant_map(map.map()));
}

template <class Tile>
__device__ void prefetch(acquired_typed_map<Tile> map) {
  prefetch(map.untyped());
}

/// Starts loading `tile` from `at`. `barrier` must already expect `Tile::bytes`, by `announce` of a
/// stage ring, or together with the other bytes of its phase. Otherwise use `expect_and_load`.
template <class Tile, std::uint32_t Rank, detail::if_rank<Tile, Rank> = 0>
__device__ void load_tile(Tile& tile, acquired_typed_map<Tile> map, const std::int32_t (&at)[Rank],
                          tile_barrier& barrier) {
  load_tile(static_cast<void*>(&tile), map.untyped(), at, barrier);
}

template <class Tile, std::uint32_t Rank, detail::if_rank<Tile, Rank> = 0>
__device__ void load_tile(Tile& tile, acquired_typed_map<Tile> map, const std::int32_t (&at)[Rank],
                          tile_barrier& barrier, cache_hint hint) {
  load_tile(static_cast<void*>(&tile), map.untyped(), at, barrier, hint);
}

/// Makes `barrier` expect the bytes of `tile`, and starts loading it from `at`. It is one arrival:
/// a barrier that no other thread arrives on has `init(1)`.
template <class Tile, std::uint32_t Rank, detail::if_rank<Tile, Rank> = 0>
__device__ void expect_and_load(Tile& tile, acquired_typed_map<Tile> map, const std::int32_t (&at)[Rank],
                                tile_barrier& barrier) {
  barrier.arrive_expect(Tile::bytes);
  load_tile(tile, map, at, barrier);
}

template <class Tile, std::uint32_t Rank, detail::if_rank<Tile, Rank> = 0>
__device__ void expect_and_load(Tile& tile, acquired_typed_map<Tile> map, const std::int32_t (&at)[Rank],
                                tile_barrier& barrier, cache_hint hint) {
  barrier.arrive_expect(Tile::bytes);
  load_tile(tile, map, at, barrier, hint);
}

/// Starts loading `tile` into all `blocks` of the cluster. The barrier of each of them must already
/// expect `Tile::bytes` (tile_copy.cuh).
template <class Tile, std::uint32_t Rank, detail::if_rank<Tile, Rank> = 0>
__device__ void load_tile_multicast(Tile& tile, acquired_typed_map<Tile> map, const std::int32_t (&at)[Rank],
                                    tile_barrier& barrier, std::uint16_t blocks) {
  load_tile_multicast(static_cast<void*>(&tile), map.untyped(), at, barrier, blocks);
}

template <class Tile, std::uint32_t Rank, detail::if_rank<Tile, Rank> = 0>
__device__ void prefetch_tile(acquired_typed_map<Tile> map, const std::int32_t (&at)[Rank]) {
  prefetch_tile(map.untyped(), at);
}

/// Starts storing `tile` at `at`.
template <class Tile, std::uint32_t Rank, detail::if_rank<Tile, Rank> = 0>
__device__ void store_tile(acquired_typed_map<Tile> map, const std::int32_t (&at)[Rank], const Tile& tile) {
  store_tile(map.untyped(), at, static_cast<const void*>(&tile));
}

template <class Tile, std::uint32_t Rank, detail::if_rank<Tile, Rank> = 0>
__device__ void store_tile(acquired_typed_map<Tile> map, const std::int32_t (&at)[Rank], const Tile& tile,
                           cache_hint hint) {
  store_tile(map.untyped(), at, static_cast<const void*>(&tile), hint);
}

/// Starts reducing `tile` into the one at `at`, by an operation that its element type has.
template <reduction Operation, class Tile, std::uint32_t Rank, detail::if_rank<Tile, Rank> = 0,
          std::enable_if_t<detail::has_reduction(Tile::type, Operation), int> = 0>
__device__ void reduce_tile(acquired_typed_map<Tile> map, const std::int32_t (&at)[Rank], const Tile& tile) {
  reduce_tile<Operation, Tile::type>(map.untyped(), at, static_cast<const void*>(&tile));
}

}  // namespace tmap::device
