// SPDX-License-Identifier: Apache-2.0
#pragma once

// Describes rows on their way through shared memory. Bulk copies move multiples of 16 bytes between
// addresses that are multiples of 16. Other rows come in the aligned bytes around them, and threads
// store them.

#include <tmap/detail/standard.hpp>

namespace tmap::kernels::peer {

inline constexpr std::uint32_t bulk_unit = 16;

TMAP_HOST_DEVICE constexpr std::uint32_t bulk_bytes(std::uint32_t bytes) {
  return (bytes + bulk_unit - 1) / bulk_unit * bulk_unit;
}

/// Names bytes at equal distances on both sides: whole rows, or a part of one. `from` and `to` are
/// offsets of two windows.
struct row_piece {
  std::uint64_t from;
  std::uint64_t to;
  std::uint64_t from_step;  ///< from one row to the next
  std::uint64_t to_step;
  std::uint32_t rows;
  std::uint32_t bytes;  ///< of each row

  TMAP_HOST_DEVICE std::uint64_t source_of(std::uint32_t row) const { return from + row * from_step; }
  TMAP_HOST_DEVICE std::uint64_t target_of(std::uint32_t row) const { return to + row * to_step; }

  /// Returns whether bulk copies can move the rows on both ways.
  TMAP_HOST_DEVICE bool is_aligned() const {
    const std::uint64_t steps = rows > 1 ? from_step | to_step : 0;
    return (from | to | bytes | steps) % bulk_unit == 0;
  }
  /// Returns the bytes in front of a row that come with it.
  TMAP_HOST_DEVICE std::uint32_t skew_of(std::uint32_t row) const {
    return static_cast<std::uint32_t>(source_of(row) % bulk_unit);
  }
  /// Returns the shared memory of a row.
  TMAP_HOST_DEVICE std::uint32_t room() const { return is_aligned() ? bytes : bulk_bytes(bytes) + bulk_unit; }
};

}  // namespace tmap::kernels::peer
