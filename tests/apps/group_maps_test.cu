// SPDX-License-Identifier: Apache-2.0
// Tests the walk through the tiles of groups, and the expected sums of tiles, without a GPU.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "apps/samples/group_maps/group.hpp"
#include "apps/samples/group_maps/group_walk.cuh"
#include "apps/samples/group_maps/workload.hpp"

namespace group_maps {
namespace {

using rows_of_groups = std::vector<std::uint32_t>;

constexpr std::uint64_t address = 0x7000000;

std::vector<rows_of_groups> cases() {
  return {{1},
          {128},
          {129},
          {0, 0, 300, 0},
          {100, 200, 0, 30},
          {0, 1, 1, 0, 0, 0, 128, 127, 129, 1000, 0, 5, 0},
          rows_of_groups(200, 3),
          nearly_full_groups(132 * 64, 1),
          nearly_full_groups(132 * 64, 16)};
}

group_list list_of(const std::vector<group>& groups) {
  return {groups.data(), static_cast<std::uint32_t>(groups.size()), groups.back().end_tile};
}

/// Expects that all tiles of one stop of a walk belong to the group that it names.
void expect_stop(const group_walk& walk, const std::vector<group>& groups) {
  const group& of = groups[walk.index()];
  EXPECT_EQ(walk.now().first_row, of.first_row);
  EXPECT_EQ(walk.now().rows, of.rows);
  EXPECT_EQ(walk.now().address, of.address);
  EXPECT_LT(walk.first_tile(), walk.end_tile());
  EXPECT_GE(walk.first_tile(), of.first_tile);
  EXPECT_LE(walk.end_tile(), of.end_tile);
  EXPECT_EQ(walk.row_of(of.first_tile), 0u);
  EXPECT_LT(walk.row_of(walk.end_tile() - 1), of.rows);
}

TEST(group_walk, the_blocks_walk_each_tile_once_in_its_group) {
  for (const rows_of_groups& rows : cases()) {
    const std::vector<group> groups = make_groups(rows, 64, address);
    const group_list list = list_of(groups);
    for (const std::uint32_t blocks : {1u, 2u, 3u, 7u, 132u, list.tiles, list.tiles + 5}) {
      std::uint32_t next = 0;
      for (std::uint32_t block = 0; block < blocks; ++block) {
        for (group_walk walk(list, list.share(block, blocks)); !walk.is_done(); walk.next_group()) {
          walk.read_ahead();
          expect_stop(walk, groups);
          EXPECT_EQ(walk.first_tile(), next);
          next = walk.end_tile();
        }
      }
      EXPECT_EQ(next, list.tiles) << blocks << " blocks";
      if (HasFailure()) return;
    }
  }
}

TEST(group_walk, stops_once_at_each_group_with_tiles) {
  const std::vector<group> groups = make_groups({0, 1, 1, 0, 0, 0, 128, 127, 129, 1000, 0, 5, 0}, 64, address);
  const group_list list = list_of(groups);
  std::vector<std::uint32_t> stops;
  for (group_walk walk(list, list.share(0, 1)); !walk.is_done(); walk.next_group()) {
    walk.read_ahead();
    stops.push_back(walk.index());
  }
  EXPECT_EQ(stops, (std::vector<std::uint32_t>{1, 2, 6, 7, 8, 9, 11}));
}

TEST(group_workload, groups_follow_each_other) {
  const std::vector<group> groups = make_groups({100, 0, 129}, 192, address);
  EXPECT_EQ(groups[2].address, address + 100 * 384);
  EXPECT_EQ(groups[2].first_row, 100u);
  EXPECT_EQ(groups[1].end_tile, 1u);
  EXPECT_EQ(groups[2].end_tile, 3u);
  const tmap::map_patch patch = patch_of(groups[2]);
  EXPECT_EQ(patch.global_address, groups[2].address);
  EXPECT_EQ(patch.global_dim[0], 192u);
  EXPECT_EQ(patch.global_dim[1], 129u);
  EXPECT_EQ(patch.global_stride_bytes[0], 384u);
}

TEST(group_workload, nearly_full_groups_have_their_tiles) {
  for (const std::uint32_t size : {1u, 2u, 4u, 16u, 64u}) {
    const std::vector<group> groups = make_groups(nearly_full_groups(640, size), 64, address);
    EXPECT_EQ(groups.size(), 640 / size);
    EXPECT_EQ(groups.back().end_tile, 640u);
    for (const group& of : groups) {
      EXPECT_EQ(of.end_tile - of.first_tile, size);
      EXPECT_GE(of.rows, size * box_rows - 7);
    }
  }
}

/// Returns what a warp finds in a part of a tile, computed element by element. The rows of the map
/// end at `end`.
part_sum plain_part(const group& of, std::uint32_t row, std::uint32_t end) {
  part_sum sum{};
  for (std::uint32_t r = row; r < row + warp_rows && r < end; ++r) {
    if (r >= of.rows) sum.foreign_chunks += of.columns / 8;
    for (std::uint32_t column = 0; r < of.rows && column < of.columns; ++column) {
      sum.elements += element(of.first_row + r, column);
    }
  }
  return sum;
}

TEST(group_workload, expected_sums_are_those_of_the_elements) {
  const std::vector<group> groups = make_groups({100, 200, 0, 30}, 128, address);
  for (const map_way way : all_ways) {
    const std::vector<part_sum> want = expected_sums(groups, way);
    std::vector<part_sum> plain;
    for (const group& of : groups) {
      const std::uint32_t end = way == map_way::one_static_map ? 330 - of.first_row : of.rows;
      for (std::uint32_t row = 0; row < (of.end_tile - of.first_tile) * box_rows; row += warp_rows) {
        plain.push_back(plain_part(of, row, end));
      }
    }
    EXPECT_EQ(want, plain);
    EXPECT_EQ(want.size(), 4 * consumer_warps);
  }
}

TEST(group_workload, one_static_map_brings_rows_of_other_groups) {
  const std::vector<group> groups = make_groups({100, 200, 0, 30}, 128, address);
  EXPECT_EQ(foreign_rows(expected_sums(groups, map_way::one_static_map), 128), 28u + 30u);
  EXPECT_EQ(foreign_rows(expected_sums(groups, map_way::made_ahead), 128), 0u);
  EXPECT_EQ(foreign_rows(expected_sums(groups, map_way::changed_here), 128), 0u);
}

TEST(group_workload, each_wrong_sum_counts) {
  const std::vector<part_sum> want = expected_sums(make_groups({100, 200}, 64, address), map_way::made_ahead);
  EXPECT_EQ(count_wrong(want, want), 0u);
  std::vector<part_sum> got = want;
  ++got[3].elements;
  EXPECT_EQ(count_wrong(got, want), 1u);
  ++got.back().foreign_chunks;
  EXPECT_EQ(count_wrong(got, want), 2u);
}

TEST(group_workload, elements_are_no_fill_and_tell_rows_and_columns_apart) {
  for (std::uint32_t i = 0; i < 2'000'000; ++i) {
    EXPECT_GE(element(i, i % most_columns), 1u);
    EXPECT_LT(element(i, i % most_columns), 1u << 15);
    EXPECT_NE(row_value(i), row_value(i + 1));
    EXPECT_NE(row_value(i), row_value(i + box_rows));
    EXPECT_NE(column_value(i), column_value(i + box_columns));
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace group_maps
