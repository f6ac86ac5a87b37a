// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>

#include <cstdint>

// Defines the order in which `column_sums` adds up a column. It depends only on the number of rows,
// on every engine. The rows are cut into slices. Each of 32 running values takes every 32nd row of
// a slice: value k takes the rows k, k + 32, ... of the slice, in order, beginning with +0. Each
// four neighbours a, b, c, d then become (a + c) + (b + d), and the eight results are added in
// order. So are the sums of the slices.

namespace tmap::detail {

inline constexpr std::uint32_t column_values = 32;  ///< running values of a slice
inline constexpr std::uint32_t column_groups = 8;   ///< of four of them
inline constexpr std::uint64_t most_column_slices = 64;
inline constexpr std::uint64_t least_column_slice = 256;

/// Returns the rows of a slice.
constexpr TMAP_HOST_DEVICE std::uint64_t column_slice_rows(std::uint64_t rows) {
  if (rows <= least_column_slice * most_column_slices) return least_column_slice;
  const std::uint64_t each = (rows + most_column_slices - 1) / most_column_slices;
  return (each + column_values - 1) / column_values * column_values;
}

constexpr TMAP_HOST_DEVICE std::uint64_t column_slices(std::uint64_t rows) {
  const std::uint64_t each = column_slice_rows(rows);
  return rows <= each ? 1 : (rows + each - 1) / each;
}

}  // namespace tmap::detail
