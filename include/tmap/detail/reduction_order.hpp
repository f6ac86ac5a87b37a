// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>

#include <cstdint>

// Defines the order in which `reduce_rows` combines a row's elements. It depends only on the row's
// length, on every engine:
//
// 1. The row is cut into slices.
// 2. Each of 32 running values takes every 32nd element of a slice. Value k takes those at places
//    k, k + 32, ... of the row, in order. It begins with the identity (-0 for sums, -infinity for
//    maxima).
// 3. All values k are combined with values k ^ 16, then k ^ 8, k ^ 4, k ^ 2, k ^ 1.
// 4. The results of several slices are combined in the same way, as if they were the elements of a
//    row.

namespace tmap::detail {

inline constexpr std::uint64_t most_slices = 512;
inline constexpr std::uint64_t slice_unit = 4096;
inline constexpr std::uint64_t smallest_slice = 4 * slice_unit;

constexpr TMAP_HOST_DEVICE std::uint64_t slice_elements(std::uint64_t length) {
  if (length <= smallest_slice * most_slices) return smallest_slice;
  const std::uint64_t each = (length + most_slices - 1) / most_slices;
  return (each + slice_unit - 1) / slice_unit * slice_unit;
}

constexpr TMAP_HOST_DEVICE std::uint64_t slice_count(std::uint64_t length) {
  return (length + slice_elements(length) - 1) / slice_elements(length);
}

}  // namespace tmap::detail
