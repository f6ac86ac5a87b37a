// SPDX-License-Identifier: Apache-2.0
// The arithmetic of planning where dims reach 2^31 and tensors 2^39 bytes, on the host.
#include <tmap/detail/choose_route.hpp>
#include <tmap/detail/reduction_order.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/ragged/transpose_tiles.hpp"
#include "kernels/ragged_launch.hpp"

namespace tmap::testing {
namespace {

__extension__ typedef unsigned __int128 wide;

constexpr std::uint64_t most_dim = std::uint64_t{1} << 31;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 39;
constexpr std::uint32_t element_sizes[]{1, 2, 3, 4, 5, 8, 12, 16};

tmap::detail::two_sided packed(std::uint32_t element_bytes, std::uint64_t inner, std::uint64_t outer,
                               std::uint64_t gap) {
  tmap::detail::two_sided t{{inner, outer, 1, 1, 1}, {}, {}, element_bytes, element_bytes};
  t.source_stride[0] = t.destination_stride[0] = inner * element_bytes;
  t.destination_stride[0] += gap;
  return t;
}

TEST(planning_limits, the_largest_tensor_folds_to_one_row) {
  for (const std::uint32_t bytes : {1u, 2u, 4u, 8u, 16u}) {
    for (const std::uint64_t inner : {most_dim, most_dim - 1, most_bytes / bytes / most_dim}) {
      const std::uint64_t outer = std::min(most_dim, most_bytes / bytes / inner);
      tmap::detail::two_sided t = packed(bytes, inner, outer, 0);
      fold(t, 0);
      EXPECT_EQ(t.dim[0], inner * outer);
      EXPECT_EQ(t.dim[1], 1u);
      tmap::detail::two_sided apart = packed(bytes, inner, outer, 1);
      fold(apart, 0);
      EXPECT_EQ(apart.dim[0], inner);
      EXPECT_EQ(apart.dim[1], outer);
    }
  }
}

TEST(planning_limits, products_beyond_64_bits_saturate) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(tmap::detail::saturated_product(most_dim, most_dim), std::uint64_t{1} << 62);
  EXPECT_EQ(tmap::detail::saturated_product(std::uint64_t{1} << 62, 4), most);
  tmap::detail::two_sided t = packed(4, most_dim, most_dim, 0);
  t.dim[2] = 8;
  t.source_stride[1] = t.destination_stride[1] = most;
  fold(t, 0);
  EXPECT_EQ(t.dim[0], most) << "2^65 elements";
}

TEST(planning_limits, a_map_ends_at_2_31_and_other_routes_go_on) {
  const route_options forced{route_policy::force, route_bit(route::tensor_map) | route_bit(route::ldgsts)};
  const auto way_of = [&](std::uint64_t columns, std::uint64_t rows) {
    return choose_route(tensor_layout{4096, 1, 2, {columns, rows}, {columns + 16}}, forced).way;
  };
  EXPECT_EQ(way_of(most_dim, 256), route::tensor_map);
  EXPECT_EQ(way_of(most_dim + 16, 256), route::ldgsts);
  EXPECT_EQ(way_of(256, most_dim), route::tensor_map);
  EXPECT_EQ(way_of(256, most_dim + 1), route::ldgsts);
  const tensor_layout largest{4096, 1, 2, {most_dim, 256}, {most_dim}};
  EXPECT_EQ(choose_route(largest).way, route::bulk);
}

kernels::planned_tensor matrix(std::uint64_t columns, std::uint64_t rows, std::uint64_t above, route way) {
  kernels::planned_tensor tensor{};
  const std::uint64_t dim[max_rank]{columns, rows, above, 1, 1};
  std::copy(dim, dim + max_rank, tensor.dim);
  tensor.way = way;
  return tensor;
}

/// As many tiles as cover the matrix and no more, of a size that the kernel has room for.
void expect_tiles(const kernels::planned_tensor& tensor, const kernels::piece_rule& rule) {
  const kernels::transpose_tile tile = kernels::tile_of(tensor, rule);
  wide pieces = 1;
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    const std::uint64_t step = axis < 2 ? tile.dim[axis] : 1;
    ASSERT_GT(step, 0u);
    pieces *= tensor.dim[axis] / step + (tensor.dim[axis] % step != 0);
  }
  EXPECT_LE(std::uint64_t{tile.dim[0]} * tile.dim[1], rule.piece_elements);
  EXPECT_TRUE(wide{kernels::transpose_piece_count(tensor, rule)} == pieces);
}

TEST(planning_limits, squares_of_the_largest_matrices) {
  for (const std::uint32_t bytes : element_sizes) {
    const kernels::piece_rule rule = kernels::transpose_rule(bytes);
    const std::uint64_t most = most_bytes / bytes;
    for (const std::uint64_t dim : {most_dim - 1, most_dim}) {
      for (const std::uint64_t other : {std::uint64_t{1}, std::uint64_t{3}, most / most_dim - 1, most / most_dim}) {
        for (const route way : {route::tensor_map, route::plain}) {
          SCOPED_TRACE(::testing::Message() << bytes << " bytes, " << dim << " and " << other);
          expect_tiles(matrix(dim, other, 1, way), rule);
          expect_tiles(matrix(other, dim, 1, way), rule);
          expect_tiles(matrix(other, 1, most / other, way), rule);
        }
      }
    }
  }
}

TEST(planning_limits, squares_counted_by_hand) {
  const kernels::piece_rule rule = kernels::transpose_rule(1);
  EXPECT_EQ(kernels::transpose_piece_count(matrix(most_dim, 256, 1, route::tensor_map), rule), most_dim / 128);
  EXPECT_EQ(kernels::transpose_piece_count(matrix(most_dim - 1, 256, 1, route::plain), rule), most_dim / 128);
  EXPECT_EQ(kernels::transpose_piece_count(matrix(256, most_dim, 1, route::plain), rule), 2 * most_dim / 256);
  EXPECT_EQ(kernels::transpose_piece_count(matrix(128, 2, most_dim, route::plain), rule), most_dim);
}

TEST(planning_limits, slices_of_the_longest_rows) {
  using tmap::detail::slice_count;
  using tmap::detail::slice_elements;
  for (const ragged::value_type type : {ragged::value_type::f32, ragged::value_type::f16, ragged::value_type::bf16}) {
    const kernels::piece_rule rule = kernels::reduce_pieces(type, 1);
    const std::uint64_t longest = most_bytes / value_bytes(type);
    for (const std::uint64_t about : {std::uint64_t{1} << 23, most_dim, std::uint64_t{1} << 32, longest - 1}) {
      for (const std::uint64_t length : {about - 1, about, about + 1}) {
        const std::uint64_t each = slice_elements(length);
        const std::uint64_t slices = slice_count(length);
        EXPECT_LE(slices, tmap::detail::most_slices);
        EXPECT_GE(slices * each, length);
        EXPECT_LT((slices - 1) * each, length);
        EXPECT_EQ(each % rule.piece_elements, 0u) << "a slice ends within a piece";
        EXPECT_EQ(each % rule.box_dim[0], 0u) << "a slice ends within a box";
      }
    }
    EXPECT_EQ(slice_count(most_dim), tmap::detail::most_slices);
  }
}

}  // namespace
}  // namespace tmap::testing
