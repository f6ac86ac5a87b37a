// SPDX-License-Identifier: Apache-2.0
#pragma once

// How `column_sums` cuts tensors into pieces. A piece is a chunk of columns in a slice of the rows;
// slices of the same chunk follow each other. With few rows there is one slice, and a piece has as
// many chunks as a block has warps.

#include <tmap/detail/column_order.hpp>

#include <cstdint>

namespace tmap::kernels {

inline constexpr std::uint64_t few_rows = tmap::detail::column_values;
inline constexpr std::uint32_t column_chunk = 64;
inline constexpr std::uint32_t column_warps = tmap::detail::column_groups;

TMAP_HOST_DEVICE constexpr std::uint64_t column_chunks(std::uint64_t columns, std::uint64_t rows) {
  const std::uint64_t width = rows <= few_rows ? column_chunk * column_warps : column_chunk;
  return columns / width + (columns % width != 0);
}

TMAP_HOST_DEVICE constexpr std::uint64_t column_piece_count(std::uint64_t columns, std::uint64_t rows) {
  return column_chunks(columns, rows) * tmap::detail::column_slices(rows);
}

}  // namespace tmap::kernels
