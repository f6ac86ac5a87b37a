// SPDX-License-Identifier: Apache-2.0
// Tests how matrices are cut for transposing: into few, even tiles that fit shared memory before
// and after the exchange.

#include <gtest/gtest.h>

#include <cstdint>

#include "kernels/ragged/transpose_tiles.hpp"

namespace tmap::kernels {
namespace {

constexpr std::uint32_t element_sizes[]{1, 2, 3, 4, 5, 8, 12, 16};
constexpr std::uint64_t extents[]{1,   2,   3,   7,   15,  16,  17,  31,  33,   64,   65,
                                  100, 128, 129, 150, 255, 256, 257, 300, 1000, 70000};

planned_tensor matrix(std::uint64_t columns, std::uint64_t rows, route way) {
  planned_tensor tensor{};
  const std::uint64_t dim[max_rank]{columns, rows, 1, 1, 1};
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) tensor.dim[axis] = dim[axis];
  tensor.way = way;
  return tensor;
}

template <class Check>
void for_each_tile(const Check& check) {
  for (const std::uint32_t element_bytes : element_sizes) {
    for (const std::uint64_t columns : extents) {
      for (const std::uint64_t rows : extents) {
        for (const route way : {route::tensor_map, route::plain}) {
          SCOPED_TRACE(::testing::Message() << element_bytes << " bytes, " << columns << " x " << rows);
          const piece_rule rule = transpose_rule(element_bytes);
          const planned_tensor tensor = matrix(columns, rows, way);
          check(element_bytes, rule, tensor, tile_of(tensor, rule));
        }
      }
    }
  }
}

TEST(transpose_tiles_test, fit_before_and_after_the_exchange) {
  for_each_tile([](std::uint32_t element_bytes, const piece_rule& rule, const planned_tensor&, transpose_tile tile) {
    const std::uint32_t room = rule.box_dim[1] * (transpose_panel_bytes + 16);
    const auto bytes = [&](std::uint32_t lines, std::uint32_t elements) {
      const bool is_short = tile.is_narrow && elements * transpose_unit_bytes(element_bytes) < transpose_panel_bytes;
      const std::uint32_t length = elements * element_bytes;
      return is_short ? lines * length : lines * ((length + 15) / 16 * 16 + 16);
    };
    EXPECT_LE(bytes(tile.dim[1], tile.dim[0]), room);
    EXPECT_LE(bytes(tile.dim[0], tile.dim[1]), room);
  });
}

TEST(transpose_tiles_test, are_made_of_boxes_where_maps_load_them) {
  for_each_tile([](std::uint32_t, const piece_rule& rule, const planned_tensor& tensor, transpose_tile tile) {
    if (tensor.way != route::tensor_map) return;
    EXPECT_FALSE(tile.is_narrow);
    EXPECT_EQ(tile.dim[0] % rule.tile, 0u);
    EXPECT_EQ(tile.dim[1] % transpose_box_rows, 0u);
    EXPECT_GT(tile.dim[0], 0u);
    EXPECT_GT(tile.dim[1], 0u);
    EXPECT_LE(tile.dim[0] * tile.dim[1], rule.piece_elements);
  });
}

TEST(transpose_tiles_test, cut_evenly) {
  const piece_rule rule = transpose_rule(4);
  EXPECT_EQ(tile_of(matrix(32, 256, route::plain), rule).dim[1], 256u);
  EXPECT_EQ(tile_of(matrix(32, 257, route::plain), rule).dim[1], 160u);
  EXPECT_EQ(tile_of(matrix(1000, 64, route::plain), rule).dim[0], 128u);
  EXPECT_EQ(tile_of(matrix(130, 64, route::plain), rule).dim[0], 96u);
  EXPECT_EQ(transpose_piece_count(matrix(130, 514, route::plain), rule), 3u * 5u);
}

TEST(transpose_tiles_test, grow_longer_as_a_matrix_is_narrower) {
  const transpose_tile pixels = tile_of(matrix(3, 100000, route::plain), transpose_rule(1));
  EXPECT_TRUE(pixels.is_narrow);
  EXPECT_EQ(pixels.dim[0], 4u);
  EXPECT_EQ(pixels.dim[1], 8192u);
  const transpose_tile planes = tile_of(matrix(100000, 3, route::plain), transpose_rule(1));
  EXPECT_EQ(planes.dim[0], 8192u);
  EXPECT_EQ(planes.dim[1], 4u);
}

TEST(transpose_tiles_test, of_an_empty_matrix_are_none) {
  EXPECT_EQ(transpose_piece_count(matrix(0, 7, route::plain), transpose_rule(2)), 0u);
  EXPECT_EQ(transpose_piece_count(matrix(7, 0, route::tensor_map), transpose_rule(2)), 0u);
}

}  // namespace
}  // namespace tmap::kernels
