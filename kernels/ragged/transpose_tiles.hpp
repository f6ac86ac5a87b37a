// SPDX-License-Identifier: Apache-2.0
#pragma once

// Cuts a tensor into tiles when its dims 0 and 1 are exchanged. The planning kernel counts pieces
// by these functions, and the transposing kernel runs the pieces. A piece is one tile of dims 0 and
// 1.
//
// Only the source is loaded through a map. Ordinary stores write the destination at any alignment.
// So only the source decides the route of such a tensor, and its destination map is never used.

#include "kernels/ragged/planned_tensor.hpp"

#include <tmap/config.hpp>
#include <tmap/element_type.hpp>
#include <tmap/tensor_spec.hpp>

#include <cstdint>

namespace tmap::kernels {

/// Returns the bytes of an element, rounded up to a power of two.
TMAP_HOST_DEVICE constexpr std::uint32_t transpose_unit_bytes(std::uint32_t element_bytes) {
  std::uint32_t unit = 1;
  while (unit < element_bytes) unit *= 2;
  return unit;
}

/// A tile's columns are counted in panels. A panel is as wide as a box: the span of its swizzle.
inline constexpr std::uint32_t transpose_panel_bytes = 128;
inline constexpr std::uint32_t transpose_box_rows = 32;
/// Longer columns leave with fewer partial sectors and cost fewer tiles.
inline constexpr std::uint32_t transpose_tile_rows = 256;

/// Returns the rule for tiles of at most `panels` panels and `rows` rows, which are its `box_dim`.
/// Its `tile` is the number of columns of a panel. Both counts are powers of two.
TMAP_HOST_DEVICE constexpr piece_rule transpose_rule(std::uint32_t element_bytes,
                                                     std::uint32_t rows = transpose_tile_rows,
                                                     std::uint32_t panels = 1) {
  piece_rule rule{};
  rule.tile = transpose_panel_bytes / transpose_unit_bytes(element_bytes);
  rule.box_dim[0] = panels * rule.tile;
  rule.box_dim[1] = rows;
  for (std::uint32_t axis = 2; axis < max_rank; ++axis) rule.box_dim[axis] = 1;
  rule.piece_elements = rule.box_dim[0] * rule.box_dim[1];
  return rule;
}

/// The fields that the template of the source maps must have in addition to address, dims and
/// strides. A tile is loaded as boxes of 128-byte rows, next to and below each other. Elements of
/// 1, 2, 4 or 8 bytes have maps, others none.
struct transpose_box {
  bool exists;
  element_type type;
  std::uint32_t box_dim[max_rank];
  tmap::swizzle swizzle;
};
TMAP_HOST_DEVICE constexpr transpose_box transpose_map_box(std::uint32_t element_bytes) {
  switch (element_bytes) {
    case 1: return {true, element_type::u8, {128, transpose_box_rows, 1, 1, 1}, swizzle::bytes_128};
    case 2: return {true, element_type::u16, {64, transpose_box_rows, 1, 1, 1}, swizzle::bytes_128};
    case 4: return {true, element_type::u32, {32, transpose_box_rows, 1, 1, 1}, swizzle::bytes_128};
    case 8: return {true, element_type::u64, {16, transpose_box_rows, 1, 1, 1}, swizzle::bytes_128};
    default: return {};
  }
}

/// The extents of a tile along dims 0 and 1.
struct transpose_tile {
  std::uint32_t dim[2];
  bool is_narrow;  ///< too thin to be worth rows and columns of their own in shared memory
};

/// Cuts `dim` into as few parts as `most` allows, of nearly equal length, and returns that length,
/// rounded up to a multiple of `step`.
TMAP_HOST_DEVICE constexpr std::uint32_t even_part(std::uint64_t dim, std::uint32_t most, std::uint32_t step) {
  if (dim > std::uint64_t{64} * most) return most;
  const auto length = static_cast<std::uint32_t>(dim == 0 ? 1 : dim);
  const std::uint32_t parts = (length + most - 1) / most;
  const std::uint32_t each = (length + parts - 1) / parts;
  return (each + step - 1) / step * step;
}

/// Returns the tile of a narrow matrix. It is longer in the other dim by the same factor. Both
/// extents are powers of two.
TMAP_HOST_DEVICE constexpr transpose_tile narrow_tile(const planned_tensor& tensor, const piece_rule& rule) {
  transpose_tile tile{{rule.tile, rule.piece_elements / rule.tile}, true};
  const std::uint32_t shrinking = tensor.dim[0] <= rule.tile / 2 ? 0 : 1;
  while (tile.dim[shrinking] > 1 && tile.dim[shrinking] / 2 >= tensor.dim[shrinking]) {
    tile.dim[shrinking] /= 2;
    tile.dim[1 - shrinking] *= 2;
  }
  return tile;
}

/// Returns whether boxes of 32 rows of 128 bytes would be mostly empty.
TMAP_HOST_DEVICE constexpr bool is_thin(const std::uint64_t* dim, const piece_rule& rule) {
  return dim[0] <= rule.tile / 2 || dim[1] <= transpose_box_rows / 2;
}

/// Returns the tile of a tensor. Rows come first, as long columns matter most. Then it takes as
/// many panels next to each other as shared memory holds before and after the exchange.
TMAP_HOST_DEVICE constexpr transpose_tile tile_of(const planned_tensor& tensor, const piece_rule& rule) {
  if (is_thin(tensor.dim, rule) && tensor.way != route::tensor_map) return narrow_tile(tensor, rule);
  const std::uint32_t rows = even_part(tensor.dim[1], rule.box_dim[1], transpose_box_rows);
  const std::uint32_t unit = transpose_panel_bytes / rule.tile;
  const std::uint32_t panel = (rows * unit + 16) * rule.tile;
  const std::uint32_t room = rule.piece_elements / rule.tile * (transpose_panel_bytes + 16);
  const std::uint32_t loaded = rule.piece_elements / rule.tile / rows;
  const std::uint32_t panels = room / panel < loaded ? room / panel : loaded;
  return {{even_part(tensor.dim[0], panels * rule.tile, rule.tile), rows}, false};
}

/// Returns the number of pieces of one tensor, or 0 if a dim is 0. Pieces are numbered along dim 0,
/// then dim 1, then the outer dims.
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
