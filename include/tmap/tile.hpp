// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// A type for the tile that a kernel moves, for host and device. The type fixes what a map must
/// move (element type, box and rank, interleave, swizzle), the bytes of a copy, and the layout in
/// shared memory.

#include <tmap/config.hpp>
#include <tmap/detail/spec_rules.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/device_limits.hpp>
#include <tmap/element_of.hpp>
#include <tmap/element_type.hpp>
#include <tmap/tensor_spec.hpp>
#include <tmap/tile_layout.hpp>

#include <cuda/std/span>

namespace tmap {

namespace detail {

template <element_type Type, interleave Interleave, swizzle Swizzle, std::uint32_t... Extents>
TMAP_HOST_DEVICE constexpr tensor_spec tile_spec() {
  const std::uint32_t extents[] = {Extents..., 0};
  tensor_spec spec;
  spec.type = Type;
  spec.rank = sizeof...(Extents);
  for (std::uint32_t axis = 0; axis < spec.rank && axis < max_rank; ++axis) spec.box_dim[axis] = extents[axis];
  spec.interleave = Interleave;
  spec.swizzle = Swizzle;
  return spec;
}

/// Returns the rules that a tile breaks for every tensor.
TMAP_HOST_DEVICE constexpr rule_set tile_faults(const tensor_spec& spec) {
  rule_set broken;
  auto report = [&broken](rule id, std::int32_t, std::uint64_t, std::uint64_t) { broken.insert(id); };
  const device_limits limits = hopper_limits();
  check_rank(spec, report);
  check_interleave_rank(spec, report);
  check_element_type(spec, limits, report);
  check_box_dims(spec, report);
  if (spec.rank != 0) check_inner_box(spec, spec.box_dim[0], report);
  check_interleave(spec, report);
  check_swizzle(spec, limits, report);
  check_box_bytes(spec, report);
  check_tile_size(tile_footprint_bytes(with_bounded_box(spec)), limits, report);
  return broken;
}

}  // namespace detail

/// A tile in shared memory: `__shared__ basic_tile<...> a;`, or a place in dynamic shared memory
/// that is aligned to `alignment`. It has no initial value. `Extents` are those of the tile,
/// innermost first, as `tile_dim` counts them. Without element strides they are the box. With an
/// interleave the innermost extent counts units, and the last but one, of channel slices, is 1. Any
/// thread may use the tile. Barriers order its accesses with those of the copy engine.
template <class T, element_type Type, interleave Interleave, swizzle Swizzle, std::uint32_t... Extents>
class alignas(shared_alignment(Swizzle)) basic_tile {
  static constexpr tensor_spec spec_ = detail::tile_spec<Type, Interleave, Swizzle, Extents...>();
  static_assert(sizeof(T) * 8 == element_bits(Type), "T has not the size of the map's elements");
  static_assert(detail::tile_faults(spec_).empty(),
                "no map moves this tile: extents are 1 to 256, rows are multiples of 16 bytes and no wider than the "
                "swizzle (docs/fields_and_rules.md, T02 to T04, T17 to T28, T35, T37)");
  static_assert(Interleave == interleave::none || spec_.rank < 2 || spec_.box_dim[spec_.rank - 2] == 1,
                "an interleaved tile holds one slice of channels: the last but one extent is 1");

 public:
  using element = T;
  static constexpr element_type type = Type;
  static constexpr std::uint32_t rank = sizeof...(Extents);
  /// The bytes of one load, which a barrier must expect. The tile itself may take more: `sizeof`.
  static constexpr std::uint32_t bytes = static_cast<std::uint32_t>(tile_bytes(spec_));
  /// 128 without swizzle, else 256, 512 or 1024: one repeat of the pattern.
  static constexpr std::uint32_t alignment = shared_alignment(Swizzle);
  static constexpr std::uint32_t elements = layout_of(spec_).elements();

  /// Returns the element type, rank, box, interleave and swizzle of a map that moves this tile. The
  /// caller fills in address, dims and strides.
  TMAP_HOST_DEVICE static constexpr tensor_spec spec() {
    return detail::tile_spec<Type, Interleave, Swizzle, Extents...>();
  }
  TMAP_HOST_DEVICE static constexpr tile_layout layout() {
    constexpr tile_layout made = layout_of(detail::tile_spec<Type, Interleave, Swizzle, Extents...>());
    return made;
  }

  /// Returns the element at these coordinates in the tile, innermost first: `t(column, row)`. They
  /// are not checked.
  template <class... At, std::enable_if_t<sizeof...(At) == rank, int> = 0>
  TMAP_HOST_DEVICE T& operator()(At... at) {
    return view()(at...);
  }
  template <class... At, std::enable_if_t<sizeof...(At) == rank, int> = 0>
  TMAP_HOST_DEVICE const T& operator()(At... at) const {
    return view()(at...);
  }

  /// Returns element `i`, below `elements`, in the order of coordinates.
  TMAP_HOST_DEVICE T& operator[](std::uint32_t i) { return view()[i]; }
  TMAP_HOST_DEVICE const T& operator[](std::uint32_t i) const { return view()[i]; }

  TMAP_HOST_DEVICE tile_view<T, rank> view() { return {bytes_, layout()}; }
  TMAP_HOST_DEVICE tile_view<const T, rank> view() const { return {bytes_, layout()}; }

 private:
  unsigned char bytes_[tile_footprint_bytes(spec_)];
};

/// The usual tile: no interleave, and the map's element type is that of `T` (`element_of`).
/// `tile<float, swizzle::bytes_128, 32, 64>` has 64 rows of 32 columns. For other types, such as
/// tf32, use `basic_tile`.
template <class T, swizzle Swizzle, std::uint32_t... Extents>
using tile = basic_tile<T, element_of<T>, interleave::none, Swizzle, Extents...>;

/// Returns the spec of a tensor without gaps between its rows, for maps that move a `Tile` without
/// an interleave: `packed_spec<tile<float, swizzle::bytes_128, 32, 64>>(data, {columns, rows})`.
/// Dims are innermost first.
template <class Tile, std::size_t Rank>
TMAP_HOST_DEVICE constexpr tensor_spec packed_spec(device_address data, const std::uint64_t (&dims)[Rank]) {
  static_assert(Tile::spec().interleave == interleave::none);
  static_assert(Rank == Tile::rank, "a tensor has as many dims as the tile");
  const tensor_spec tile = Tile::spec();
  tensor_spec spec = packed_spec(tile.type, data, {dims, Rank}, {tile.box_dim, tile.rank});
  spec.swizzle = tile.swizzle;
  return spec;
}

/// Returns the spec for any box, with the element type of the pointer: `packed_spec(data, {columns,
/// rows}, {32, 64})`.
template <class T, std::size_t Rank>
TMAP_HOST_DEVICE tensor_spec packed_spec(const T* data, const std::uint64_t (&dims)[Rank],
                                         const std::uint32_t (&box)[Rank], swizzle mode = swizzle::none) {
  static_assert(Rank <= max_rank);
  tensor_spec spec = packed_spec(element_of<T>, device_address{data}, {dims, Rank}, {box, Rank});
  spec.swizzle = mode;
  return spec;
}

}  // namespace tmap
