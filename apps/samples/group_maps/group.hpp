// SPDX-License-Identifier: Apache-2.0
#pragma once

// The work: groups of rows, one after another in one tensor of 16-bit elements. A *tile* is 128
// rows of one group and all columns; it is loaded box by box.

#include <tmap/config.hpp>
#include <tmap/map_patch.hpp>

#include <cstdint>

namespace group_maps {

inline constexpr std::uint32_t box_columns = 64;
inline constexpr std::uint32_t box_rows = 128;
inline constexpr std::uint32_t row_bytes = box_columns * sizeof(std::uint16_t);  // of a box
inline constexpr std::uint32_t box_bytes = box_rows * row_bytes;

/// One group as kernels read it. Tiles are numbered through all groups; a group without rows has
/// none.
struct alignas(16) group {
  std::uint64_t address;    ///< of its first row
  std::uint32_t first_row;  ///< where all groups are one tensor
  std::uint32_t rows;
  std::uint32_t columns;
  std::uint32_t pitch_bytes;
  std::uint32_t first_tile;
  std::uint32_t end_tile;
};
static_assert(sizeof(group) == 32);

/// What the map of a group alone has in place of the template's fields.
TMAP_HOST_DEVICE inline tmap::map_patch patch_of(const group& of) {
  tmap::map_patch patch{};
  patch.global_address = of.address;
  patch.global_dim[0] = of.columns;
  patch.global_dim[1] = of.rows;
  patch.global_stride_bytes[0] = of.pitch_bytes;
  return patch;
}

/// Element [row, column] of the tensor of all groups: at least 1, as the fill is 0, and below 2^15.
TMAP_HOST_DEVICE constexpr std::uint32_t row_value(std::uint32_t row) {
  return row * 2654435761u >> 18;
}
TMAP_HOST_DEVICE constexpr std::uint32_t column_value(std::uint32_t column) {
  return (column + 1) * 2246822519u >> 18;
}
TMAP_HOST_DEVICE constexpr std::uint16_t element(std::uint32_t row, std::uint32_t column) {
  return static_cast<std::uint16_t>(1 + row_value(row) + column_value(column));
}

/// Each tile is summed up by four warps, each its 32 rows.
inline constexpr std::uint32_t consumer_warps = 4;
inline constexpr std::uint32_t warp_rows = box_rows / consumer_warps;
/// A warp's sum of a tile then fits in 32 bits.
inline constexpr std::uint32_t most_columns = 2048;

/// What a warp found in its part of a tile.
struct alignas(8) part_sum {
  std::uint32_t elements;        ///< of the group's rows, added up
  std::uint32_t foreign_chunks;  ///< 16 bytes each that were loaded of rows behind the group's last

  friend bool operator==(const part_sum&, const part_sum&) = default;
};

/// How the blocks come by a group's map.
enum class map_way : std::uint32_t {
  one_static_map,  ///< one for all groups, a kernel parameter: a group is an offset in its rows
  made_ahead,      ///< one a group, made by a launch of the encoder
  changed_here,    ///< a few a block, which its loading warp writes anew whenever the group changes
};
inline constexpr map_way all_ways[] = {map_way::one_static_map, map_way::made_ahead, map_way::changed_here};

}  // namespace group_maps
