// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tile_layout.hpp>

#include <cstdint>
#include <cstring>
#include <vector>

#include "conformance/case_source.hpp"

// Reads tiles element by element in the order of coordinates. The expected elements follow from the
// tensor's strides alone, independently of the rows of a tile and of the swizzle.

namespace tmap::testing {

inline constexpr std::uint64_t no_element = ~std::uint64_t{0};

/// Returns the bytes from the beginning of the arena to the element of the tensor that belongs at
/// `at` in the tile; `no_element` outside the tensor.
inline std::uint64_t place_of_element(const conformance::tile_case& tile, const std::uint32_t* at) {
  const tensor_spec& spec = tile.spec;
  const bool is_interleaved = spec.interleave != interleave::none;
  const std::uint64_t size = element_bytes(spec.type);
  const std::uint64_t unit = !is_interleaved ? size : spec.interleave == interleave::bytes_16 ? 16 : 32;
  std::int64_t place = static_cast<std::int64_t>(spec.global_address + at[0] * size % unit);
  for (std::uint32_t axis = 0; axis < spec.rank; ++axis) {
    const std::int64_t step = axis == 0 && !is_interleaved ? 1 : spec.element_stride[axis];
    const std::int64_t index = axis == 0 ? static_cast<std::int64_t>(at[0] * size / unit) : at[axis];
    const std::int64_t coordinate = tile.coordinates[axis] + index * step;
    if (coordinate < 0 || coordinate >= static_cast<std::int64_t>(spec.global_dim[axis])) return no_element;
    place += coordinate * static_cast<std::int64_t>(axis == 0 ? unit : spec.global_stride_bytes[axis - 1]);
  }
  return static_cast<std::uint64_t>(place);
}

/// Returns all elements of a tile that is loaded with fill zero.
inline std::vector<unsigned char> expected_elements(const conformance::tile_case& tile,
                                                    const std::vector<unsigned char>& arena) {
  const tile_layout layout = layout_of(tile.spec);
  std::vector<unsigned char> elements(std::size_t{layout.elements()} * layout.element_bytes);
  std::uint32_t at[max_rank]{};
  for (std::size_t i = 0; i < layout.elements(); ++i) {
    const std::uint64_t place = place_of_element(tile, at);
    if (place != no_element) {
      std::memcpy(elements.data() + i * layout.element_bytes, arena.data() + place, layout.element_bytes);
    }
    for (std::uint32_t axis = 0; axis < max_rank && ++at[axis] == layout.dim[axis]; ++axis) at[axis] = 0;
  }
  return elements;
}

/// Returns loads of every layout: inside the tensor, over its low edges and over its high ones,
/// with and without element strides. Leaves out types whose loads round.
inline std::vector<conformance::tile_case> loads_of_every_layout() {
  std::vector<conformance::tile_case> cases;
  conformance::case_source source{20261122};
  for (conformance::case_class wanted : conformance::all_layouts()) {
    if (wanted.type == element_type::tf32 || wanted.type == element_type::tf32_ftz) continue;
    for (const auto where : {conformance::place::inside, conformance::place::low, conformance::place::high}) {
      wanted.where = where;
      wanted.has_steps = where == conformance::place::inside && !wanted.has_steps;
      cases.push_back(source.draw(wanted));
    }
  }
  return cases;
}

/// Calls visit(T{}, rank) with the unsigned type of an element's size and the rank as a constant.
template <class Visit>
void with_element_and_rank(const tensor_spec& spec, Visit&& visit) {
  const auto with_rank = [&](auto element) {
    switch (spec.rank) {
      case 1: return visit(element, std::integral_constant<std::uint32_t, 1>{});
      case 2: return visit(element, std::integral_constant<std::uint32_t, 2>{});
      case 3: return visit(element, std::integral_constant<std::uint32_t, 3>{});
      case 4: return visit(element, std::integral_constant<std::uint32_t, 4>{});
      default: return visit(element, std::integral_constant<std::uint32_t, 5>{});
    }
  };
  switch (element_bytes(spec.type)) {
    case 1: return with_rank(std::uint8_t{});
    case 2: return with_rank(std::uint16_t{});
    case 4: return with_rank(std::uint32_t{});
    default: return with_rank(std::uint64_t{});
  }
}

/// Returns the elements of the tile that `view` shows, in the order of coordinates.
template <std::uint32_t Rank, class View>
TMAP_HOST_DEVICE auto& element_at(const View& view, const std::uint32_t (&at)[Rank]) {
  if constexpr (Rank == 1) return view(at[0]);
  if constexpr (Rank == 2) return view(at[0], at[1]);
  if constexpr (Rank == 3) return view(at[0], at[1], at[2]);
  if constexpr (Rank == 4) return view(at[0], at[1], at[2], at[3]);
  if constexpr (Rank == 5) return view(at[0], at[1], at[2], at[3], at[4]);
}

}  // namespace tmap::testing
