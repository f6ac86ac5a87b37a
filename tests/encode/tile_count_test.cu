// SPDX-License-Identifier: Apache-2.0
// How many tiles a walk visits, asked on the host: whatever the extents, as many as there are or
// none.
#include <tmap/device/tile_walk.cuh>

#include <gtest/gtest.h>

#include "support/random_spec.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint64_t most_tiles = std::uint64_t{1} << 31;
constexpr std::uint64_t most_extent = std::uint64_t{1} << 31;

std::uint64_t count(std::uint32_t rank, const map_patch& extents, const std::uint32_t* box) {
  switch (rank) {
    case 1: return device::count_tiles<1>(extents, box);
    case 2: return device::count_tiles<2>(extents, box);
    case 3: return device::count_tiles<3>(extents, box);
    case 4: return device::count_tiles<4>(extents, box);
    default: return device::count_tiles<5>(extents, box);
  }
}

map_patch extents_of(std::initializer_list<std::uint64_t> dims) {
  map_patch extents{};
  std::copy(dims.begin(), dims.end(), extents.global_dim);
  return extents;
}

/// By long division, one tile limit at a time, in numbers that cannot wrap.
std::uint64_t expected_tiles(std::uint32_t rank, const map_patch& extents, const std::uint32_t* box) {
  std::uint64_t tiles = 1;
  for (std::uint32_t axis = 0; axis < rank; ++axis) {
    const std::uint64_t dim = extents.global_dim[axis];
    if (dim == 0 || dim > most_extent) return 0;
  }
  for (std::uint32_t axis = 0; axis < rank; ++axis) {
    const std::uint64_t along = extents.global_dim[axis] / box[axis] + (extents.global_dim[axis] % box[axis] != 0);
    if (along > most_tiles / tiles) return 0;
    tiles *= along;
  }
  return tiles;
}

TEST(tile_count, whole_boxes_cover_the_extents) {
  constexpr std::uint32_t box[max_rank] = {16, 8, 4, 2, 1};
  EXPECT_EQ(count(1, extents_of({16}), box), 1u);
  EXPECT_EQ(count(1, extents_of({17}), box), 2u);
  EXPECT_EQ(count(5, extents_of({33, 9, 5, 3, 2}), box), 3u * 2 * 2 * 2 * 2);
  EXPECT_EQ(count(2, extents_of({33, 9, ~0ull}), box), 6u) << "axes beyond the rank do not count";
}

TEST(tile_count, extents_without_coordinates_have_no_tiles) {
  constexpr std::uint32_t box[max_rank] = {256, 256, 1, 1, 1};
  EXPECT_EQ(count(1, extents_of({most_extent}), box), most_extent / 256);
  for (const std::uint64_t wild : {most_extent + 1, std::uint64_t{1} << 32, ~std::uint64_t{255}, ~std::uint64_t{0}}) {
    EXPECT_EQ(count(1, extents_of({wild}), box), 0u) << wild;
    EXPECT_EQ(count(2, extents_of({1, wild}), box), 0u) << wild;
    EXPECT_EQ(count(2, extents_of({wild, 1}), box), 0u) << wild;
  }
  EXPECT_EQ(count(2, extents_of({0, 5}), box), 0u);
  EXPECT_EQ(count(2, extents_of({5, 0}), box), 0u);
}

TEST(tile_count, more_tiles_than_a_walk_visits_are_none) {
  constexpr std::uint32_t box[max_rank] = {1, 1, 1, 1, 1};
  EXPECT_EQ(count(2, extents_of({2, most_tiles / 2}), box), most_tiles);
  EXPECT_EQ(count(2, extents_of({2, most_tiles / 2 + 1}), box), 0u);
  EXPECT_EQ(count(3, extents_of({most_extent, most_extent, 4}), box), 0u) << "2^64 tiles";
  EXPECT_EQ(count(3, extents_of({2'147'418'113, 1'718'039'348, 5}), box), 0u) << "2^64 + 4 tiles, which wrap to 4";
  EXPECT_EQ(count(5, extents_of({most_extent, most_extent, most_extent, most_extent, most_extent}), box), 0u);
  EXPECT_EQ(count(5, extents_of({1ull << 16, 1ull << 16, 1ull << 16, 1ull << 16, 1}), box), 0u) << "2^64 tiles";
}

TEST(tile_count, any_bits_are_legal_extents) {
  random_source random(1);
  std::uint64_t walked = 0;
  constexpr std::uint64_t trials = 1'000'000;
  for (std::uint64_t trial = 0; trial < trials; ++trial) {
    const std::uint32_t rank = 1 + random.below32(max_rank);
    const std::uint32_t longest = random.pick({10u, 20u, 33u, 64u});
    map_patch extents{};
    std::uint32_t box[max_rank];
    for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
      box[axis] = 1 + random.below32(256);
      extents.global_dim[axis] =
          random.one_in(8) ? most_extent - 1 + random.below(3) : random.of_random_length(longest);
    }
    const std::uint64_t expected = expected_tiles(rank, extents, box);
    ASSERT_EQ(count(rank, extents, box), expected) << "trial " << trial;
    walked += expected != 0;
  }
  EXPECT_GT(walked, trials / 10);
  EXPECT_LT(walked, trials * 9 / 10);
}

}  // namespace
}  // namespace tmap::testing
