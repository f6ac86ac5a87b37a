// SPDX-License-Identifier: Apache-2.0
#include "apps/samples/group_maps/workload.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace group_maps {
namespace {

constexpr std::uint32_t chunk_elements = 8;  // 16 bytes

/// Returns the sum of 32 rows of the group from `row` on. `end` counts from the group's first row
/// to the end of the rows that the map has.
part_sum expected_part(const group& of, std::uint32_t row, std::uint32_t end, std::uint32_t column_sum) {
  part_sum sum{};
  for (std::uint32_t r = row; r < row + warp_rows; ++r) {
    if (r < of.rows) {
      sum.elements += of.columns * (1 + row_value(of.first_row + r)) + column_sum;
    } else if (r < end) {
      sum.foreign_chunks += of.columns / chunk_elements;
    }
  }
  return sum;
}

}  // namespace

std::vector<group> make_groups(const std::vector<std::uint32_t>& rows, std::uint32_t columns, std::uint64_t address) {
  const auto pitch = static_cast<std::uint32_t>(columns * sizeof(std::uint16_t));
  std::vector<group> made;
  std::uint32_t row = 0;
  std::uint32_t tile = 0;
  for (const std::uint32_t count : rows) {
    const std::uint32_t end = tile + (count + box_rows - 1) / box_rows;
    made.push_back({address + std::uint64_t{row} * pitch, row, count, columns, pitch, tile, end});
    row += count;
    tile = end;
  }
  return made;
}

std::vector<std::uint32_t> nearly_full_groups(std::uint32_t tiles, std::uint32_t tiles_a_group) {
  std::vector<std::uint32_t> rows;
  for (std::uint32_t tile = 0; tile < tiles; tile += tiles_a_group) {
    const std::uint32_t full = std::min(tiles_a_group, tiles - tile) * box_rows;
    rows.push_back(full - static_cast<std::uint32_t>(rows.size() % 8));
  }
  return rows;
}

std::vector<part_sum> expected_sums(const std::vector<group>& groups, map_way way) {
  std::vector<part_sum> sums;
  if (groups.empty()) return sums;
  const std::uint32_t all_rows = groups.back().first_row + groups.back().rows;
  std::uint32_t column_sum = 0;
  for (std::uint32_t column = 0; column < groups.back().columns; ++column) column_sum += column_value(column);
  for (const group& of : groups) {
    const std::uint32_t end = way == map_way::one_static_map ? all_rows - of.first_row : of.rows;
    const std::uint32_t tile_rows = (of.end_tile - of.first_tile) * box_rows;
    for (std::uint32_t row = 0; row < tile_rows; row += warp_rows) {
      sums.push_back(expected_part(of, row, end, column_sum));
    }
  }
  return sums;
}

std::size_t count_wrong(const std::vector<part_sum>& got, const std::vector<part_sum>& want) {
  return std::inner_product(got.begin(), got.end(), want.begin(), std::size_t{0}, std::plus<>{},
                            [](const part_sum& a, const part_sum& b) { return a == b ? 0u : 1u; });
}

std::uint64_t foreign_rows(const std::vector<part_sum>& sums, std::uint32_t columns) {
  std::uint64_t chunks = 0;
  for (const part_sum& sum : sums) chunks += sum.foreign_chunks;
  return chunks * chunk_elements / columns;
}

}  // namespace group_maps
