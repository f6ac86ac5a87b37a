// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a tensor is cut when its dims 0 and 1 are exchanged. The planning kernel counts pieces by it, the transposing
// kernel runs them. A piece is one tile of dims 0 and 1.
//
// Only the source is loaded through a map; the destination is written by ordinary stores, whatever its alignment. So
// the route of such a tensor is chosen by its source alone, and its destination map is never used.

#include "kernels/ragged/planned_tensor.hpp"

#include <tmap/config.hpp>
#include <tmap/element_type.hpp>
#include <tmap/tensor_spec.hpp>

#include <cstdint>

namespace tmap::kernels {

/// Bytes of a tile's element rounded up to a power of two.
TMAP_HOST_DEVICE constexpr std::uint32_t transpose_unit_bytes(std::uint32_t element_bytes) {
  std::uint32_t unit = 1;
  while (unit < element_bytes) unit *= 2;
  return unit;
}

inline constexpr std::uint32_t transpose_tile_bytes = 16 * 1024;
/// One row of a box: the span of its swizzle.
inline constexpr std::uint32_t transpose_box_row_bytes = 128;

/// The ordinary tile: rows of 128 bytes and more on both sides.
TMAP_HOST_DEVICE constexpr piece_rule transpose_rule(std::uint32_t element_bytes) {
  const std::uint32_t unit = transpose_unit_bytes(element_bytes);
  const std::uint32_t elements = transpose_tile_bytes / unit;
  const std::uint32_t row = unit == 1 ? 128 : unit <= 4 ? 64 : 32;
  piece_rule rule{};
  rule.piece_elements = elements;
  rule.box_dim[0] = row;
  rule.box_dim[1] = elements / row;
  for (std::uint32_t axis = 2; axis < max_rank; ++axis) rule.box_dim[axis] = 1;
  rule.tile = row;
  return rule;
}

/// What the template of the source maps must say beside address, dims and strides: `box_dim`, `swizzle` and `type`. A
/// tile is loaded as boxes of 128-byte rows side by side. Elements of 1, 2, 4 or 8 bytes have maps, others none.
struct transpose_box {
  bool exists;
  element_type type;
  std::uint32_t box_dim[max_rank];
  tmap::swizzle swizzle;
};
TMAP_HOST_DEVICE constexpr transpose_box transpose_map_box(std::uint32_t element_bytes) {
  const piece_rule rule = transpose_rule(element_bytes);
  switch (element_bytes) {
    case 1: return {true, element_type::u8, {128, rule.box_dim[1], 1, 1, 1}, swizzle::bytes_128};
    case 2: return {true, element_type::u16, {64, rule.box_dim[1], 1, 1, 1}, swizzle::bytes_128};
    case 4: return {true, element_type::u32, {32, rule.box_dim[1], 1, 1, 1}, swizzle::bytes_128};
    case 8: return {true, element_type::u64, {16, rule.box_dim[1], 1, 1, 1}, swizzle::bytes_128};
    default: return {};
  }
}

/// Extents of a tile along dims 0 and 1, powers of two. On route `tensor_map` the rule's box. On the others a matrix
/// that is narrow in one dim gets a tile that is as much longer in the other one.
struct transpose_tile {
  std::uint32_t dim[2];
};
TMAP_HOST_DEVICE constexpr transpose_tile tile_of(const planned_tensor& tensor, const piece_rule& rule) {
  transpose_tile tile{{rule.box_dim[0], rule.box_dim[1]}};
  if (tensor.way == route::tensor_map) return tile;
  const bool is_narrow = tensor.dim[0] < tile.dim[0];
  const std::uint32_t shrinking = is_narrow ? 0 : 1;
  while (tile.dim[shrinking] > 1 && tile.dim[shrinking] / 2 >= tensor.dim[shrinking]) {
    tile.dim[shrinking] /= 2;
    tile.dim[1 - shrinking] *= 2;
  }
  return tile;
}

/// Pieces of one tensor, dim 0 first, then dim 1, then the outer dims. 0 when a dim is 0.
TMAP_HOST_DEVICE constexpr std::uint64_t transpose_piece_count(const planned_tensor& tensor, const piece_rule& rule) {
  const transpose_tile tile = tile_of(tensor, rule);
  std::uint64_t pieces = 1;
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    const std::uint64_t step = axis < 2 ? tile.dim[axis] : 1;
    pieces *= (tensor.dim[axis] + step - 1) / step;
  }
  return pieces;
}

}  // namespace tmap::kernels
