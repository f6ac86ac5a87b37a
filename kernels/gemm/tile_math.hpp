// SPDX-License-Identifier: Apache-2.0
#pragma once

// Places tiles in a product, and operands and results in shared memory. This is only arithmetic, so
// that the host can test it.

#include <tmap/config.hpp>

#include <cstdint>

namespace tmap::kernels {

/// Rows of operands and of staged results in shared memory are as wide as the swizzle: 64 elements
/// of two bytes.
inline constexpr std::uint32_t swizzle_bytes = 128;
/// A piece is 64 such rows (or columns, where an operand is read across). Everything is cut into
/// pieces.
inline constexpr std::uint32_t piece_lines = 64;
inline constexpr std::uint32_t piece_bytes = piece_lines * swizzle_bytes;
/// A warp has the sums of this many rows of a tile. Their strip holds 64 results of each.
inline constexpr std::uint32_t strip_rows = 16;
inline constexpr std::uint32_t strip_bytes = strip_rows * swizzle_bytes;
/// One wgmma reads this much of K, in bytes along a row.
inline constexpr std::uint32_t step_bytes = 32;

struct tile_place {
  std::uint32_t block_m;
  std::uint32_t block_n;
};

/// Returns how many rows of blocks are walked together, about `band`. All bands have about the same
/// height: for a last band of one row, all of B would be read once more.
TMAP_HOST_DEVICE constexpr std::uint32_t band_height(std::uint32_t blocks_m, std::uint32_t band) {
  const std::uint32_t bands = (blocks_m + band - 1) / band;
  return (blocks_m + bands - 1) / bands;
}

/// Returns the i-th tile of a product. Tiles are numbered by bands of blocks of rows, and in each
/// band one column of blocks after the other. Tiles that run at the same time then share rows of A
/// and columns of B.
TMAP_HOST_DEVICE constexpr tile_place place_tile(std::uint64_t i, std::uint32_t blocks_m, std::uint32_t blocks_n,
                                                 std::uint32_t band) {
  const std::uint32_t most = band_height(blocks_m, band);
  const std::uint64_t band_tiles = std::uint64_t{most} * blocks_n;
  const auto first = static_cast<std::uint32_t>(i / band_tiles) * most;
  const std::uint32_t height = blocks_m - first < most ? blocks_m - first : most;
  const auto within = static_cast<std::uint32_t>(i % band_tiles);
  return {first + within % height, within / height};
}

/// Two tiles that the two blocks of a cluster take at the same time. Two tiles above each other
/// have the columns of B in common, two side by side have the rows of A in common. The second may
/// lie outside the product.
struct tile_pair {
  tile_place first;
  bool is_beside;
  TMAP_HOST_DEVICE constexpr tile_place of_block(std::uint32_t block) const {
    return {first.block_m + (is_beside ? 0 : block), first.block_n + (is_beside ? block : 0)};
  }
};

/// Returns the number of pairs. Two tiles above each other have more in common. Of an odd number of
/// blocks of rows, the last row is paired side by side. Only if both numbers are odd, one tile is
/// left alone.
TMAP_HOST_DEVICE constexpr std::uint64_t count_pairs(std::uint64_t blocks_m, std::uint64_t blocks_n) {
  return blocks_n / 2 * blocks_m + blocks_n % 2 * ((blocks_m + 1) / 2);
}

/// Returns the i-th pair of a product. Pairs are numbered by bands of an even number of blocks of
/// rows, and in each band by two columns of blocks at a time. `last_is_low` means that the last
/// block of rows has half the work of the others. Paired side by side, such blocks do not wait for
/// each other.
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

/// Maps columns of a tile to columns of B. One thread must have both parts of a result. With gates
/// and values in two halves of B, each consumer's share therefore holds as many columns of gates as
/// of values, gates first. Interleaved ones are neighbours, which one thread has anyway.
struct b_columns {
  std::uint32_t share;       ///< columns of B that one consumer multiplies by
  std::uint32_t per_result;  ///< columns of B that make one result
  std::uint32_t values;      ///< the column at which values begin; 0: gates and values, if any, are interleaved
  TMAP_HOST_DEVICE constexpr std::uint32_t result_share() const { return share / per_result; }
  /// Returns the column of B of column `at` of a tile whose results begin at column `first`.
  TMAP_HOST_DEVICE constexpr std::uint32_t source(std::uint32_t first, std::uint32_t at) const {
    if (values == 0) return first * per_result + at;
    const std::uint32_t half = share / 2;
    const std::uint32_t within = at % share;
    return (within < half ? 0 : values) + first + at / share * half + within % half;
  }
};

/// Returns the byte of a staged result of row 0 to 15 and 16-byte unit 0 to 7. The copy engine
/// permutes units in the same way with `swizzle::bytes_128`, in memory aligned to 1,024 bytes. It
/// equals `swizzled`, as a test checks, and saves an epilogue 16 instructions.
TMAP_HOST_DEVICE constexpr std::uint32_t swizzled_unit(std::uint32_t row, std::uint32_t unit) {
  return row * swizzle_bytes + ((unit ^ (row % 8)) * 16);
}

/// Returns where byte `at` of a row lies in a staging tile.
TMAP_HOST_DEVICE constexpr std::uint32_t staged_byte(std::uint32_t row, std::uint32_t at) {
  return swizzled_unit(row, at / 16) + at % 16;
}

/// Returns which of four eights of columns a lane of a row writes as its i-th, where each takes 32
/// bytes. Half a warp writes eight bytes a lane at once. With the same eight in all its four rows,
/// two lanes would meet in a bank.
TMAP_HOST_DEVICE constexpr std::uint32_t wide_eight(std::uint32_t row, std::uint32_t i) {
  return row % 2 != 0 ? i ^ 2 : i;
}

/// Returns the element of sum i of a thread, in 64 rows. `warp` is one of four (PTX ISA
/// 9.7.15.5.1.1, matrix D).
struct sum_place {
  std::uint32_t row;
  std::uint32_t column;
};
TMAP_HOST_DEVICE constexpr sum_place place_sum(std::uint32_t warp, std::uint32_t lane, std::uint32_t i) {
  return {warp * strip_rows + lane / 4 + i / 2 % 2 * 8, i / 4 * 8 + lane % 4 * 2 + i % 2};
}

/// Columns are held by all lanes of a warp: two neighbours of each 64 columns. So the four lanes of
/// a row of the lanes hold the eight columns of four sums.
inline constexpr std::uint32_t held_columns = 64;
/// Returns the first of the two columns that a lane holds of the `part`-th 64.
TMAP_HOST_DEVICE constexpr std::uint32_t held_column(std::uint32_t lane, std::uint32_t part) {
  return part * held_columns + lane * 2;
}
/// Return by which lanes 4 * row to 4 * row + 3, and of which 64, the `eight`-th eight columns are
/// held.
TMAP_HOST_DEVICE constexpr std::uint32_t holding_row(std::uint32_t eight) {
  return eight % 8;
}
TMAP_HOST_DEVICE constexpr std::uint32_t holding_part(std::uint32_t eight) {
  return eight / 8;
}

/// Return the row and unit of the eight elements whose address a lane passes to stmatrix.x4.
/// Matrices 0 and 1 are rows 0 to 15 of one unit, 2 and 3 those of the next.
TMAP_HOST_DEVICE constexpr std::uint32_t staged_row(std::uint32_t lane) {
  return lane % strip_rows;
}
TMAP_HOST_DEVICE constexpr std::uint32_t staged_unit(std::uint32_t lane, std::uint32_t first_unit) {
  return first_unit + lane / 16;
}

/// A warp reads this many rows of a staging tile at once, 16 bytes a lane. Return the row and unit
/// that a lane reads.
inline constexpr std::uint32_t stored_rows = 4;
TMAP_HOST_DEVICE constexpr std::uint32_t stored_row(std::uint32_t lane) {
  return lane / 8;
}
TMAP_HOST_DEVICE constexpr std::uint32_t stored_unit(std::uint32_t lane) {
  return lane % 8;
}

/// Returns a descriptor of the operand with 128-byte swizzle at address `shared` (PTX ISA
/// 9.7.15.5.1.2). Along K, groups of eight rows follow each other. Across K, eight lines of K
/// follow each other, and the next 64 columns follow a piece later.
TMAP_HOST_DEVICE constexpr std::uint64_t operand_descriptor(std::uint32_t shared, bool is_across) {
  constexpr std::uint64_t swizzle_128 = std::uint64_t{1} << 62;
  constexpr std::uint64_t eight_rows = 8 * swizzle_bytes / 16;
  const std::uint64_t leading = is_across ? piece_bytes / 16 : 1;
  return swizzle_128 | eight_rows << 32 | leading << 16 | (shared & 0x3ffff) >> 4;
}
/// Returns the difference between the descriptors of two steps of K.
TMAP_HOST_DEVICE constexpr std::uint64_t descriptor_step(bool is_across) {
  return is_across ? step_bytes / 2 * swizzle_bytes / 16 : step_bytes / 16;
}

}  // namespace tmap::kernels
