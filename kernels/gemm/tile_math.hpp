// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where things lie: tiles in a product, operands and results in shared memory. Arithmetic alone, so
// that the host can test it.

#include <tmap/config.hpp>

#include <cstdint>

namespace tmap::kernels {

/// Rows of operands and of staged results in shared memory are as wide as the swizzle: 64 elements
/// of two bytes.
inline constexpr std::uint32_t swizzle_bytes = 128;
/// 64 such rows (or columns, where an operand is read across): the unit everything is cut into.
inline constexpr std::uint32_t piece_lines = 64;
inline constexpr std::uint32_t piece_bytes = piece_lines * swizzle_bytes;
/// Rows of a tile that one warp has the sums of, and the bytes of 64 of their results.
inline constexpr std::uint32_t strip_rows = 16;
inline constexpr std::uint32_t strip_bytes = strip_rows * swizzle_bytes;
/// What one wgmma takes of K, in bytes along a row.
inline constexpr std::uint32_t step_bytes = 32;

struct tile_place {
  std::uint32_t block_m;
  std::uint32_t block_n;
};

/// Rows of blocks that are walked together, about `band`: of equal height, so that none is left
/// with one block, for which all of B would be read once more.
TMAP_HOST_DEVICE constexpr std::uint32_t band_height(std::uint32_t blocks_m, std::uint32_t band) {
  const std::uint32_t bands = (blocks_m + band - 1) / band;
  return (blocks_m + bands - 1) / bands;
}

/// The i-th tile of a product: bands of blocks of rows, in each one column of blocks after the
/// other. Tiles that run at the same time then share rows of A and columns of B.
TMAP_HOST_DEVICE constexpr tile_place place_tile(std::uint64_t i, std::uint32_t blocks_m, std::uint32_t blocks_n,
                                                 std::uint32_t band) {
  const std::uint32_t most = band_height(blocks_m, band);
  const std::uint64_t band_tiles = std::uint64_t{most} * blocks_n;
  const auto first = static_cast<std::uint32_t>(i / band_tiles) * most;
  const std::uint32_t height = blocks_m - first < most ? blocks_m - first : most;
  const auto within = static_cast<std::uint32_t>(i % band_tiles);
  return {first + within % height, within / height};
}

/// Two tiles that two blocks of a cluster take at the same time: one above the other, which have
/// the columns of B in common, or beside each other, which have the rows of A in common. The second
/// may lie outside the product.
struct tile_pair {
  tile_place first;
  bool is_beside;
  TMAP_HOST_DEVICE constexpr tile_place of_block(std::uint32_t block) const {
    return {first.block_m + (is_beside ? 0 : block), first.block_n + (is_beside ? block : 0)};
  }
};

/// Pairs above each other have more in common; what is left of an odd number of blocks of rows are
/// pairs beside each other. Only both numbers odd leave a tile alone.
TMAP_HOST_DEVICE constexpr std::uint64_t count_pairs(std::uint64_t blocks_m, std::uint64_t blocks_n) {
  return blocks_n / 2 * blocks_m + blocks_n % 2 * ((blocks_m + 1) / 2);
}

/// The i-th pair of a product: bands of an even number of blocks of rows, in each two columns of
/// blocks after two. `last_is_low`: the last block of rows has half the work of others, which
/// beside its equal costs nobody a wait.
TMAP_HOST_DEVICE constexpr tile_pair place_pair(std::uint64_t i, std::uint32_t blocks_m, std::uint32_t blocks_n,
                                                std::uint32_t band, bool last_is_low) {
  const std::uint32_t most = (band_height(blocks_m, band) + 1) / 2 * 2;
  const std::uint64_t band_pairs = std::uint64_t{most / 2} * blocks_n;
  const auto top = static_cast<std::uint32_t>(i / band_pairs) * most;
  const std::uint32_t height = blocks_m - top < most ? blocks_m - top : most;
  const auto within = static_cast<std::uint32_t>(i % band_pairs);
  const std::uint32_t column = within / height * 2;
  if (column + 1 >= blocks_n) {
    const std::uint32_t left = within - blocks_n / 2 * height;
    return {{top + left * 2, blocks_n - 1}, false};
  }
  const bool has_low = last_is_low && top + height == blocks_m;
  const std::uint32_t stacks = (height - has_low) / 2;
  const std::uint32_t at = within % height;
  if (at < 2 * stacks) return {{top + at % stacks * 2, column + at / stacks}, false};
  return {{top + at, column}, true};
}

/// Columns of B behind each 64 of a tile. With gates each consumer's share holds as many columns of
/// gates as of values, gates first, so that one thread has both of a result.
struct b_columns {
  std::uint32_t share;   ///< columns of B that one consumer multiplies by
  std::uint32_t values;  ///< the column at which values begin; 0: no gates
  TMAP_HOST_DEVICE constexpr std::uint32_t result_share() const { return values != 0 ? share / 2 : share; }
  /// The column of B that column `at` of the tile is, for a tile whose results begin at column
  /// `first`.
  TMAP_HOST_DEVICE constexpr std::uint32_t source(std::uint32_t first, std::uint32_t at) const {
    if (values == 0) return first + at;
    const std::uint32_t half = share / 2;
    const std::uint32_t within = at % share;
    return (within < half ? 0 : values) + first + at / share * half + within % half;
  }
};

/// The byte of a staged result: row 0 to 15, 16-byte unit 0 to 7, permuted as the copy engine does
/// with `swizzle::bytes_128` in memory aligned to 1,024 bytes. What `swizzled` gives, which a test
/// compares, in a form that costs an epilogue 16 instructions less.
TMAP_HOST_DEVICE constexpr std::uint32_t swizzled_unit(std::uint32_t row, std::uint32_t unit) {
  return row * swizzle_bytes + ((unit ^ (row % 8)) * 16);
}

/// Which element sum i of a thread is: of 64 rows, warp `warp` of four (PTX ISA 9.7.15.5.1.1,
/// matrix D).
struct sum_place {
  std::uint32_t row;
  std::uint32_t column;
};
TMAP_HOST_DEVICE constexpr sum_place place_sum(std::uint32_t warp, std::uint32_t lane, std::uint32_t i) {
  return {warp * strip_rows + lane / 4 + i / 2 % 2 * 8, i / 4 * 8 + lane % 4 * 2 + i % 2};
}

/// The row of eight elements that a lane gives the address of to stmatrix.x4: matrices 0 and 1 are
/// rows 0 to 15 of one unit, 2 and 3 those of the next.
TMAP_HOST_DEVICE constexpr std::uint32_t staged_row(std::uint32_t lane) {
  return lane % strip_rows;
}
TMAP_HOST_DEVICE constexpr std::uint32_t staged_unit(std::uint32_t lane, std::uint32_t first_unit) {
  return first_unit + lane / 16;
}

/// A descriptor of an operand with 128-byte swizzle (PTX ISA 9.7.15.5.1.2): `shared` is its
/// address. Along K: groups of eight rows follow each other. Across K: eight lines of K follow each
/// other, and the next 64 columns a piece later.
TMAP_HOST_DEVICE constexpr std::uint64_t operand_descriptor(std::uint32_t shared, bool is_across) {
  constexpr std::uint64_t swizzle_128 = std::uint64_t{1} << 62;
  constexpr std::uint64_t eight_rows = 8 * swizzle_bytes / 16;
  const std::uint64_t leading = is_across ? piece_bytes / 16 : 1;
  return swizzle_128 | eight_rows << 32 | leading << 16 | (shared & 0x3ffff) >> 4;
}
/// How far the descriptor moves for the next step of K.
TMAP_HOST_DEVICE constexpr std::uint64_t descriptor_step(bool is_across) {
  return is_across ? step_bytes / 2 * swizzle_bytes / 16 : step_bytes / 16;
}

}  // namespace tmap::kernels
