// SPDX-License-Identifier: Apache-2.0
// Tests the arithmetic by which the product kernels place their bytes.
#include "kernels/gemm/tile_math.hpp"

#include <tmap/grouped_gemm.hpp>
#include <tmap/tile_layout.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "kernels/gemm/gemm_group.hpp"

namespace tmap::kernels {
namespace {

TEST(place_tile, takes_every_block_once) {
  for (const std::uint32_t band : {1u, 3u, 8u, 64u}) {
    for (std::uint32_t m = 1; m < 20; ++m) {
      for (std::uint32_t n = 1; n < 9; ++n) {
        std::set<std::pair<std::uint32_t, std::uint32_t>> taken;
        for (std::uint64_t i = 0; i < std::uint64_t{m} * n; ++i) {
          const tile_place at = place_tile(i, m, n, band);
          EXPECT_LT(at.block_m, m);
          EXPECT_LT(at.block_n, n);
          taken.emplace(at.block_m, at.block_n);
        }
        EXPECT_EQ(taken.size(), std::size_t{m} * n) << m << " x " << n << ", band " << band;
      }
    }
  }
}

TEST(place_tile, walks_columns_of_a_band) {
  EXPECT_EQ(place_tile(3, 10, 5, 4).block_m, 3u);
  EXPECT_EQ(place_tile(4, 10, 5, 4).block_n, 1u);
  EXPECT_EQ(place_tile(20, 10, 5, 4).block_m, 4u);
  EXPECT_EQ(place_tile(42, 10, 5, 4).block_m, 8u);
  EXPECT_EQ(place_tile(42, 10, 5, 4).block_n, 1u);
}

TEST(place_tile, bands_are_of_equal_height) {
  EXPECT_EQ(band_height(10, 16), 10u);
  EXPECT_EQ(band_height(17, 16), 9u);
  EXPECT_EQ(band_height(33, 16), 11u);
  EXPECT_EQ(band_height(5, 1), 1u);
}

/// Calls `check(pair)` for each pair of a product.
template <class Check>
void for_pairs(std::uint32_t m, std::uint32_t n, std::uint32_t band, bool last_is_low, const Check& check) {
  for (std::uint64_t i = 0; i < count_pairs(m, n); ++i) check(place_pair(i, m, n, band, last_is_low));
}

/// Expects each block once, and no lone tile unless it is necessary.
void expect_pairs(std::uint32_t m, std::uint32_t n, std::uint32_t band, bool last_is_low) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> taken;
  std::size_t inside = 0;
  std::size_t outside = 0;
  for_pairs(m, n, band, last_is_low, [&](const tile_pair& pair) {
    for (const tile_place at : {pair.of_block(0), pair.of_block(1)}) {
      const bool is_inside = at.block_m < m && at.block_n < n;
      ++(is_inside ? inside : outside);
      if (is_inside) taken.emplace(at.block_m, at.block_n);
    }
    EXPECT_EQ(pair.is_beside, pair.of_block(0).block_m == pair.of_block(1).block_m);
    EXPECT_EQ(pair.is_beside, pair.of_block(0).block_n != pair.of_block(1).block_n);
  });
  EXPECT_EQ(taken.size(), std::size_t{m} * n) << m << " x " << n << ", band " << band;
  EXPECT_EQ(inside, taken.size()) << m << " x " << n << ", band " << band;
  EXPECT_EQ(outside, (m % 2) * (n % 2)) << m << " x " << n << ", band " << band;
}

TEST(place_pair, takes_every_block_once) {
  for (const std::uint32_t band : {1u, 3u, 8u, 64u}) {
    for (std::uint32_t m = 1; m < 20; ++m) {
      for (std::uint32_t n = 1; n < 9; ++n) {
        expect_pairs(m, n, band, false);
        expect_pairs(m, n, band, true);
      }
    }
  }
}

TEST(place_pair, a_low_block_is_beside_its_equal) {
  for (std::uint32_t m = 1; m < 20; ++m) {
    for_pairs(m, 6, 8, true, [&](const tile_pair& pair) {
      if (pair.of_block(1).block_m == m - 1) {
        EXPECT_TRUE(pair.is_beside) << m;
      }
    });
  }
}

TEST(place_pair, full_blocks_are_above_each_other) {
  for (const std::uint32_t m : {2u, 8u, 34u}) {
    for_pairs(m, 5, 16, false, [](const tile_pair& pair) { EXPECT_FALSE(pair.is_beside); });
  }
  for_pairs(32, 5, 8, true, [](const tile_pair& pair) {
    EXPECT_EQ(pair.is_beside, pair.of_block(0).block_n < 4 && pair.of_block(0).block_m >= 30) << "only the last is low";
  });
}

/// Checks a share of a tile's columns: the result that each sum of a consumer belongs to, and the
/// column of B that it came from.
void expect_columns(std::uint32_t tile_n, std::uint32_t share, std::uint32_t values) {
  const b_columns columns{share, values != 0 ? 2u : 1u, values};
  const std::uint32_t tile_results = values != 0 ? tile_n / 2 : tile_n;
  const std::uint32_t first = 3 * tile_results;
  std::set<std::uint32_t> results;
  for (std::uint32_t consumer = 0; consumer < tile_n / share; ++consumer) {
    for (std::uint32_t i = 0; i < columns.result_share(); ++i) {
      const std::uint32_t result = first + consumer * columns.result_share() + i;
      EXPECT_EQ(columns.source(first, consumer * share + i), result);
      if (values != 0) {
        EXPECT_EQ(columns.source(first, consumer * share + share / 2 + i), values + result);
      }
      results.insert(result);
    }
  }
  EXPECT_EQ(results.size(), tile_results);
  EXPECT_EQ(*results.begin(), first);
  EXPECT_EQ(*results.rbegin(), first + tile_results - 1);
}

TEST(b_columns, gates_lie_beside_their_values) {
  const std::pair<std::uint32_t, std::uint32_t> shares[] = {{256, 256}, {128, 128}, {256, 128}};
  for (const auto& [tile_n, share] : shares) {
    expect_columns(tile_n, share, 0);
    expect_columns(tile_n, share, 4096);
  }
}

TEST(b_columns, interleaved_gates_are_neighbours_of_their_values) {
  for (const std::uint32_t share : {128u, 256u}) {
    const b_columns columns{share, 2, 0};
    EXPECT_EQ(columns.result_share(), share / 2);
    for (std::uint32_t at = 0; at < share; ++at) EXPECT_EQ(columns.source(512, at), 1024 + at);
  }
}

/// A piece that is loaded as a whole must be as contiguous in B as in the tile.
TEST(b_columns, pieces_are_runs_of_columns) {
  for (const std::uint32_t share : {128u, 256u}) {
    const b_columns columns{share, 2, 4096};
    for (std::uint32_t at = 0; at < 256; ++at) {
      EXPECT_EQ(columns.source(512, at), columns.source(512, at / piece_lines * piece_lines) + at % piece_lines);
    }
  }
}

/// Does what stmatrix.x4 does (PTX ISA 9.7.15.5.16). Lane l gives the address of row l % 8 of
/// matrix l / 8. Thread t holds elements 2 * (t % 4) and the next of row t / 4 of each.
TEST(staging, puts_every_sum_where_the_copy_engine_looks) {
  constexpr std::uint32_t columns = 64;
  for (std::uint32_t warp = 0; warp < 4; ++warp) {
    std::vector<std::int32_t> tile(strip_bytes / 2, -1);
    for (std::uint32_t unit = 0; unit < 8; unit += 2) {
      for (std::uint32_t lane = 0; lane < 32; ++lane) {
        for (std::uint32_t i = 0; i < 8; ++i) {
          const std::uint32_t matrix = i / 2;
          const std::uint32_t giver = matrix * 8 + lane / 4;
          const std::uint32_t byte =
              swizzled_unit(staged_row(giver), staged_unit(giver, unit)) + (lane % 4 * 2 + i % 2) * 2;
          const sum_place sum = place_sum(warp, lane, unit * 4 + i);
          EXPECT_EQ(tile[byte / 2], -1);
          tile[byte / 2] = static_cast<std::int32_t>(sum.row * columns + sum.column);
        }
      }
    }
    for (std::uint32_t row = 0; row < strip_rows; ++row) {
      for (std::uint32_t column = 0; column < columns; ++column) {
        const std::uint32_t plain = row * swizzle_bytes + column * 2;
        const std::uint32_t byte = swizzled(plain, swizzle::bytes_128);
        EXPECT_EQ(tile[byte / 2], static_cast<std::int32_t>((warp * strip_rows + row) * columns + column));
      }
    }
  }
}

TEST(staging, has_no_bank_conflicts) {
  for (std::uint32_t unit = 0; unit < 8; unit += 2) {
    for (std::uint32_t matrix = 0; matrix < 4; ++matrix) {
      std::set<std::uint32_t> banks;
      for (std::uint32_t row = 0; row < 8; ++row) {
        const std::uint32_t lane = matrix * 8 + row;
        banks.insert(swizzled_unit(staged_row(lane), staged_unit(lane, unit)) % 128);
      }
      EXPECT_EQ(banks.size(), 8u);
    }
  }
}

/// Expects that the lanes write words in banks of their own. Several lanes may write parts of one
/// word. `at(lane)` is the byte in the row.
template <class At>
void expect_no_conflict(std::uint32_t first_lane, std::uint32_t lanes, std::uint32_t first_row, std::uint32_t bytes,
                        const At& at) {
  std::set<std::uint32_t> words;
  std::set<std::uint32_t> banks;
  for (std::uint32_t lane = first_lane; lane < first_lane + lanes; ++lane) {
    for (std::uint32_t byte = 0; byte < bytes; ++byte) {
      const std::uint32_t word = staged_byte(first_row + lane / 4, at(lane) + byte) / 4;
      if (!words.insert(word).second) continue;
      EXPECT_TRUE(banks.insert(word % 32).second) << "lane " << lane;
    }
  }
}

/// If an index names the rows of C, a warp reads the tile back. Eight lanes read at once.
TEST(staging, is_read_back_whole_without_bank_conflicts) {
  std::set<std::uint32_t> read;
  for (std::uint32_t first = 0; first < strip_rows; first += stored_rows) {
    for (std::uint32_t lanes = 0; lanes < 32; lanes += 8) {
      std::set<std::uint32_t> banks;
      std::set<std::uint32_t> rows;
      for (std::uint32_t lane = lanes; lane < lanes + 8; ++lane) {
        const std::uint32_t row = first + stored_row(lane);
        const std::uint32_t byte = swizzled_unit(row, stored_unit(lane));
        EXPECT_EQ(byte, swizzled(row * swizzle_bytes + stored_unit(lane) * 16, swizzle::bytes_128));
        read.insert(byte);
        banks.insert(byte % 128);
        rows.insert(row);
      }
      EXPECT_EQ(banks.size(), 8u);
      EXPECT_EQ(rows.size(), 1u) << "eight lanes store 128 bytes of a row";
    }
  }
  EXPECT_EQ(read.size(), strip_bytes / 16);
}

TEST(staging, of_wide_results_fills_rows_without_bank_conflicts) {
  std::set<std::uint32_t> written;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const auto at = [&](std::uint32_t lane) { return wide_eight(lane / 4, i) * 32 + lane % 4 * 8; };
    for (std::uint32_t lane = 0; lane < 32; ++lane) written.insert(staged_byte(lane / 4, at(lane)));
    for (const std::uint32_t first_lane : {0u, 16u}) {
      for (const std::uint32_t row : {0u, 8u}) expect_no_conflict(first_lane, 16, row, 8, at);
    }
  }
  EXPECT_EQ(written.size(), 128u) << "eight bytes each: half of a tile";
}

TEST(staging, of_single_results_has_no_bank_conflicts) {
  for (const std::uint32_t bytes : {1u, 2u, 4u}) {
    for (std::uint32_t first = 0; first + 4 * bytes <= swizzle_bytes; first += 4 * bytes) {
      const auto at = [&](std::uint32_t lane) { return first + lane % 4 * bytes; };
      for (const std::uint32_t row : {0u, 8u}) expect_no_conflict(0, 32, row, bytes, at);
    }
  }
}

// The descriptor has these fields (PTX ISA 9.7.15.5.1.2): start 0-13, leading offset 16-29, stride
// offset 32-45 (each in units of 16 bytes), base offset 49-51, swizzle 62-63 (1: 128 bytes).
TEST(operand_descriptor, has_its_fields) {
  for (const bool is_across : {false, true}) {
    const std::uint64_t descriptor = operand_descriptor(0x2c400, is_across);
    EXPECT_EQ(descriptor & 0x3fff, 0x2c40u);
    EXPECT_EQ(descriptor >> 16 & 0x3fff, is_across ? 8192u / 16 : 1u);
    EXPECT_EQ(descriptor >> 32 & 0x3fff, 1024u / 16);
    EXPECT_EQ(descriptor >> 46 & 0xffff, 0u);
    EXPECT_EQ(descriptor >> 62, 1u);
  }
}

/// The steps of a stage read every element of a piece once, for both kinds of descriptor.
TEST(operand_descriptor, steps_cover_the_piece) {
  for (const bool is_across : {false, true}) {
    std::set<std::uint32_t> bytes;
    for (std::uint32_t step = 0; step < swizzle_bytes / step_bytes; ++step) {
      const std::uint64_t descriptor = operand_descriptor(0x1000, is_across) + step * descriptor_step(is_across);
      const auto start = static_cast<std::uint32_t>(descriptor & 0x3fff) * 16 - 0x1000;
      const auto eight = static_cast<std::uint32_t>(descriptor >> 32 & 0x3fff) * 16;
      for (std::uint32_t line = 0; line < piece_lines; ++line) {
        for (std::uint32_t k = 0; k < step_bytes / 2; ++k) {
          const std::uint32_t major = is_across ? k : line;
          const std::uint32_t minor = is_across ? line : k;
          const std::uint32_t plain = start + major / 8 * eight + major % 8 * swizzle_bytes + minor * 2;
          // Finds the position in the tile as it was loaded: the row of 128 bytes and the element
          // in it.
          EXPECT_EQ(plain / swizzle_bytes, is_across ? step * 16 + k : line);
          EXPECT_EQ(plain % swizzle_bytes / 2, is_across ? line : step * 16 + k);
          bytes.insert(swizzled(plain, swizzle::bytes_128));
        }
      }
    }
    EXPECT_EQ(bytes.size(), piece_bytes / 2);
    EXPECT_LT(*bytes.rbegin(), piece_bytes);
  }
}

// Each sum is multiplied by the scale of its column, which a lane of the same column of lanes
// holds.
TEST(held_columns, reach_every_sum) {
  constexpr std::uint32_t part_sums = 64;
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    for (std::uint32_t i = 0; i < 2 * part_sums; ++i) {
      const std::uint32_t eight = i / 4;
      const std::uint32_t holder = holding_row(eight) * 4 + lane % 4;
      ASSERT_LT(holder, 32u);
      EXPECT_EQ(held_column(holder, holding_part(eight)) + i % 2, place_sum(0, lane, i).column)
          << "lane " << lane << ", sum " << i;
    }
  }
}

TEST(held_columns, are_all_columns_once) {
  std::set<std::uint32_t> held;
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    for (std::uint32_t part = 0; part < 256 / held_columns; ++part) {
      held.insert({held_column(lane, part), held_column(lane, part) + 1});
    }
  }
  EXPECT_EQ(held.size(), 256u);
  EXPECT_EQ(*held.rbegin(), 255u);
}

/// Returns the number of blocks of 128 rows that groups of these sizes have scales for. Expects
/// that no two share an element, where line 0 of block j has the element j.
std::uint32_t expect_apart(const std::vector<std::uint32_t>& sizes, std::uint32_t group_stride) {
  const gemm::block_scales places{.line_stride = 1, .k_stride = 1, .group_stride = group_stride};
  std::set<std::uint32_t> taken;
  std::uint32_t begin = 0;
  std::uint32_t blocks = 0;
  for (std::uint32_t g = 0; g < sizes.size(); ++g) {
    for (std::uint32_t row = 0; row < sizes[g]; row += gemm::scaled_elements, ++blocks) {
      taken.insert(first_scale(places, g, begin) + row / gemm::scaled_elements);
    }
    begin += sizes[g];
  }
  EXPECT_EQ(taken.size(), blocks);
  const bool has_part = begin % gemm::scaled_elements != 0;
  const std::size_t most = begin / gemm::scaled_elements + (group_stride != 0 ? sizes.size() : has_part ? 1 : 0);
  EXPECT_TRUE(taken.empty() || *taken.rbegin() < most) << *taken.rbegin() << " of " << most;
  return blocks;
}

TEST(first_scale, keeps_groups_apart) {
  for (std::uint32_t first = 0; first < 300; first += 3) {
    for (std::uint32_t second = 0; second < 300; ++second) {
      for (const std::uint32_t third : {0u, 1u, 127u, 128u, 129u, 256u}) expect_apart({first, second, third, 7}, 1);
    }
  }
  EXPECT_EQ(expect_apart({1, 1, 1, 1, 1}, 1), 5u);
  EXPECT_EQ(expect_apart({0, 0, 128, 0, 16}, 1), 2u);
}

TEST(first_scale, needs_no_group_stride_where_groups_begin_at_multiples) {
  EXPECT_EQ(expect_apart({128, 0, 256, 384, 100}, 0), 7u);
  EXPECT_EQ(first_scale({.k_stride = 40}, 3, 384), 120u);
  EXPECT_EQ(first_scale({.k_stride = 40, .group_stride = 7}, 3, 383), 101u);
}

}  // namespace
}  // namespace tmap::kernels
