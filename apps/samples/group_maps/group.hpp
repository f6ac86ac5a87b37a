// SPDX-License-Identifier: Apache-2.0
#pragma once

// The work: groups of rows, one after another in one tensor of 16-bit elements. A *tile* is 128
// rows of one group with all columns. A block loads it box by box.

#include <tmap/config.hpp>
#include <tmap/map_patch.hpp>

#include <cstdint>

namespace group_maps {

inline constexpr std::uint32_t box_columns = 64;
inline constexpr std::uint32_t box_rows = 128;
inline constexpr std::uint32_t row_bytes = box_columns * sizeof(std::uint16_t);  // per box
inline constexpr std::uint32_t box_bytes = box_rows * row_bytes;

/// Describes one group to the kernels. Tiles are numbered through all groups; a group without rows
/// has no tiles.
struct alignas(16) group {
  std::uint64_t address;    ///< of the group's first row
  std::uint32_t first_row;  ///< in the tensor of all groups
  std::uint32_t rows;
  std::uint32_t columns;
  std::uint32_t pitch_bytes;
  std::uint32_t first_tile;
  std::uint32_t end_tile;
};
static_assert(sizeof(group) == 32);

/// Returns the fields in which the map of one group differs from the template.
TMAP_HOST_DEVICE inline tmap::map_patch patch_of(const group& of) {
  tmap::map_patch patch{};
  patch.global_address = of.address;
  patch.global_dim[0] = of.columns;
  patch.global_dim[1] = of.rows;
  patch.global_stride_bytes[0] = of.pitch_bytes;
  return patch;
}

/// Returns element [row, column] of the tensor of all groups. It is at least 1, because the fill is
/// 0, and below 2^15.
TMAP_HOST_DEVICE constexpr std::uint32_t row_value(std::uint32_t row) {
  return row * 2654435761u >> 18;
}
TMAP_HOST_DEVICE constexpr std::uint32_t column_value(std::uint32_t column) {
  return (column + 1) * 2246822519u >> 18;
}
TMAP_HOST_DEVICE constexpr std::uint16_t element(std::uint32_t row, std::uint32_t column) {
  return static_cast<std::uint16_t>(1 + row_value(row) + column_value(column));
}

/// Four warps sum up each tile, 32 rows each.
inline constexpr std::uint32_t consumer_warps = 4;
inline constexpr std::uint32_t warp_rows = box_rows / consumer_warps;
/// With this limit, a warp's sum of a tile fits in 32 bits.
inline constexpr std::uint32_t most_columns = 2048;

/// Holds the result of one warp for its part of a tile.
struct alignas(8) part_sum {
  std::uint32_t elements;        ///< sum of the elements in the group's rows
  std::uint32_t foreign_chunks;  ///< chunks of 16 bytes that were loaded from rows past the group's last

  friend bool operator==(const part_sum&, const part_sum&) = default;
};

/// States how the blocks get a group's map.
enum class map_way : std::uint32_t {
  one_static_map,  ///< one for all groups, a kernel parameter: a group is an offset in its rows
  made_ahead,      ///< one per group, encoded by an earlier launch
  changed_here,    ///< a few per block, which its loading warp rewrites at each change of group
};
inline constexpr map_way all_ways[] = {map_way::one_static_map, map_way::made_ahead, map_way::changed_here};

}  // namespace group_maps
