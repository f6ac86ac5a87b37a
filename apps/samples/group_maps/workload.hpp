// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "apps/samples/group_maps/group.hpp"

// Groups, and what their tiles must sum up to.

namespace group_maps {

/// Groups of so many rows each, one after another from `address` on, rows packed.
std::vector<group> make_groups(const std::vector<std::uint32_t>& rows, std::uint32_t columns, std::uint64_t address);

/// Rows of groups that have `tiles_a_group` tiles each and `tiles` together. The last tile of a
/// group lacks up to 7 rows, so that it is hardly less work than the others.
std::vector<std::uint32_t> nearly_full_groups(std::uint32_t tiles, std::uint32_t tiles_a_group);

/// What the consuming warps must find in each tile: with one map of all groups also the rows that
/// follow.
std::vector<part_sum> expected_sums(const std::vector<group>& groups, map_way way);

/// Sums that differ. Both are of the same tiles.
std::size_t count_wrong(const std::vector<part_sum>& got, const std::vector<part_sum>& want);

/// Rows that were loaded with the tiles of other groups.
std::uint64_t foreign_rows(const std::vector<part_sum>& sums, std::uint32_t columns);

}  // namespace group_maps
