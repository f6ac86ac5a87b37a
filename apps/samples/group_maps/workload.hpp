// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "apps/samples/group_maps/group.hpp"

// Creates groups and the expected sums of their tiles.

namespace group_maps {

/// Returns groups with these numbers of rows, one after another from `address` on, with packed
/// rows.
std::vector<group> make_groups(const std::vector<std::uint32_t>& rows, std::uint32_t columns, std::uint64_t address);

/// Returns the rows of groups that have `tiles_a_group` tiles each and `tiles` in total. The last
/// tile of a group lacks up to 7 rows, so it is nearly as much work as the others.
std::vector<std::uint32_t> nearly_full_groups(std::uint32_t tiles, std::uint32_t tiles_a_group);

/// Returns the sums that the consuming warps must find in each tile. With one map of all groups,
/// they include the rows that follow.
std::vector<part_sum> expected_sums(const std::vector<group>& groups, map_way way);

/// Counts the sums that differ. Both vectors are of the same tiles.
std::size_t count_wrong(const std::vector<part_sum>& got, const std::vector<part_sum>& want);

/// Counts the rows that were loaded with the tiles of other groups.
std::uint64_t foreign_rows(const std::vector<part_sum>& sums, std::uint32_t columns);

}  // namespace group_maps
