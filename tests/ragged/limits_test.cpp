// SPDX-License-Identifier: Apache-2.0
// Tests the arithmetic of planning on the host, with dims up to 2^31, 2^32 and 2^40 and tensors of
// 2^47 bytes.
#include <tmap/detail/choose_route.hpp>
#include <tmap/detail/reduction_order.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/ragged/row_part.hpp"
#include "kernels/ragged/transpose_tiles.hpp"
#include "kernels/ragged_launch.hpp"

namespace tmap::testing {
namespace {

__extension__ typedef unsigned __int128 wide;

constexpr std::uint64_t map_dim = std::uint64_t{1} << 31;  ///< the most that a map has
constexpr std::uint64_t most_dim = std::uint64_t{1} << 40;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 47;
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
  EXPECT_EQ(tmap::detail::saturated_product(map_dim, map_dim), std::uint64_t{1} << 62);
  EXPECT_EQ(tmap::detail::saturated_product(most_dim, most_dim), most) << "2^80";
  EXPECT_EQ(tmap::detail::saturated_product(most, most), most);
  EXPECT_EQ(tmap::detail::saturated_product(std::uint64_t{1} << 62, 4), most);
  tmap::detail::two_sided t = packed(4, most_dim, most_dim, 0);
  t.dim[2] = t.dim[3] = t.dim[4] = most_dim;
  for (std::uint32_t axis = 1; axis < 4; ++axis) t.source_stride[axis] = t.destination_stride[axis] = most;
  fold(t, 0);
  EXPECT_EQ(t.dim[0], most) << "2^200 elements";
}

TEST(planning_limits, a_map_ends_at_2_31_and_other_routes_go_on) {
  const route_options forced{route_policy::force, route_bit(route::tensor_map) | route_bit(route::ldgsts)};
  const auto way_of = [&](std::uint64_t columns, std::uint64_t rows) {
    return choose_route(tensor_layout{4096, 1, 2, {columns, rows}, {columns + 16}}, forced).way;
  };
  EXPECT_EQ(way_of(map_dim, 256), route::tensor_map);
  EXPECT_EQ(way_of(256, map_dim), route::tensor_map);
  for (const std::uint64_t beyond : {map_dim + 16, map_dim * 2, map_dim * 2 + 16, most_dim - 16}) {
    EXPECT_EQ(way_of(beyond, 256), route::ldgsts);
    EXPECT_EQ(way_of(256, beyond), route::ldgsts);
    const route_choice chosen = choose_route(tensor_layout{4096, 1, 2, {512, beyond}, {1024}});
    EXPECT_EQ(chosen.way, route::ldgsts);
    EXPECT_EQ(chosen.why, route_reason::extent_too_large);
  }
  const tensor_layout largest{4096, 1, 2, {most_dim, 128}, {most_dim}};
  EXPECT_EQ(choose_route(largest).way, route::bulk);
}

kernels::planned_tensor matrix(std::uint64_t columns, std::uint64_t rows, std::uint64_t above, route way) {
  kernels::planned_tensor tensor{};
  const std::uint64_t dim[max_rank]{columns, rows, above, 1, 1};
  std::copy(dim, dim + max_rank, tensor.dim);
  tensor.way = way;
  return tensor;
}

/// Expects that no more tiles than necessary cover the matrix, of a size that fits the kernel's
/// memory.
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
    for (const std::uint64_t dim :
         {map_dim - 1, map_dim, map_dim * 2 - 1, map_dim * 2, map_dim * 2 + 1, most_dim - 1, most_dim}) {
      for (const std::uint64_t other : {std::uint64_t{1}, std::uint64_t{3}, most / dim - 1, most / dim}) {
        for (const route way : {route::tensor_map, route::plain}) {
          if (way == route::tensor_map && std::max(dim, other) > map_dim) continue;
          SCOPED_TRACE(::testing::Message() << bytes << " bytes, " << dim << " and " << other);
          expect_tiles(matrix(dim, other, 1, way), rule);
          expect_tiles(matrix(other, dim, 1, way), rule);
          if (way == route::plain) expect_tiles(matrix(other, 1, most / other, way), rule);
        }
      }
    }
  }
}

TEST(planning_limits, squares_counted_by_hand) {
  const kernels::piece_rule rule = kernels::transpose_rule(1);
  EXPECT_EQ(kernels::transpose_piece_count(matrix(map_dim, 256, 1, route::tensor_map), rule), map_dim / 128);
  for (const std::uint64_t dim : {map_dim, 2 * map_dim, most_dim}) {
    EXPECT_EQ(kernels::transpose_piece_count(matrix(dim - 1, 256, 1, route::plain), rule), dim / 128);
    EXPECT_EQ(kernels::transpose_piece_count(matrix(dim + 1, 256, 1, route::plain), rule), dim / 128 + 1);
    EXPECT_EQ(kernels::transpose_piece_count(matrix(256, dim, 1, route::plain), rule), 2 * dim / 256);
    EXPECT_EQ(kernels::transpose_piece_count(matrix(128, 2, dim, route::plain), rule), dim);
  }
}

TEST(planning_limits, slices_of_the_longest_rows) {
  using tmap::detail::slice_count;
  using tmap::detail::slice_elements;
  for (const ragged::value_type type : {ragged::value_type::f32, ragged::value_type::f16, ragged::value_type::bf16}) {
    const kernels::piece_rule rule = kernels::reduce_pieces(type, 1);
    const std::uint64_t longest = most_bytes / value_bytes(type);
    for (const std::uint64_t about : {std::uint64_t{1} << 23, map_dim, std::uint64_t{1} << 32, most_dim, longest - 1}) {
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
    EXPECT_EQ(slice_count(map_dim), tmap::detail::most_slices);
    EXPECT_EQ(slice_count(most_dim), tmap::detail::most_slices);
  }
}

/// Returns part `part` of a row, by 128-bit arithmetic.
kernels::row_part cut_wide(wide length, wide part, wide each, std::uint64_t destination, std::uint32_t element_bytes) {
  const wide before = (kernels::line_bytes - destination % kernels::line_bytes) % kernels::line_bytes;
  const wide lead = kernels::line_bytes % element_bytes == 0 ? before / element_bytes : 0;
  const wide first = part == 0 ? 0 : std::min(length, part * each + lead);
  const wide end = std::min(length, (part + 1) * each + lead);
  return {static_cast<std::uint64_t>(first), static_cast<std::uint32_t>(end - first)};
}

/// The pieces of a row near a boundary, and the last ones, equal those of wide arithmetic, and each
/// begins at the end of the piece before it.
TEST(planning_limits, parts_of_the_longest_rows) {
  for (const std::uint32_t bytes : {1u, 2u, 3u, 4u, 8u, 16u}) {
    const std::uint32_t each = 4096 / bytes / 16 * 16;
    for (const std::uint64_t about : {map_dim, 2 * map_dim, most_dim, most_bytes / bytes}) {
      for (const std::uint64_t length : {about - 1, about, about + 1}) {
        const std::uint64_t parts = (length + each - 1) / each;
        for (const std::uint64_t destination : {0u, 1u, 16u, 127u}) {
          std::uint64_t end = 0;
          for (std::uint64_t part = parts - 20; part < parts; ++part) {
            const kernels::row_part found = kernels::cut_at_lines(length, part, each, destination, bytes);
            const kernels::row_part wanted = cut_wide(length, part, each, destination, bytes);
            ASSERT_EQ(found.elements, wanted.elements) << length << ", part " << part;
            ASSERT_EQ(found.first, wanted.first) << length << ", part " << part;
            ASSERT_TRUE(end == 0 || found.first == end);
            end = found.first + found.elements;
          }
          ASSERT_EQ(end, length);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tmap::testing
