// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>

#include <cstdint>

namespace tmap::kernels {

/// The bytes of a line of memory. Copies whose pieces begin inside lines are up to a tenth slower
/// (docs/measurements/ragged.md).
inline constexpr std::uint32_t line_bytes = 128;

/// A piece of a row that has more than one.
struct row_part {
  std::uint64_t first;
  std::uint32_t elements;  ///< 0 if the pieces before have them all
};

/// Returns piece `part` of a row that begins at `destination`. Pieces of `each` elements meet where
/// lines of the destination do. The first piece is longer by the elements before the first line,
/// which are fewer than a line has bytes. If elements do not divide a line, the cuts do not move:
/// bulk copies need multiples of 16 bytes, which a piece of `each` may be and a longer one may not.
TMAP_HOST_DEVICE constexpr row_part cut_at_lines(std::uint64_t length, std::uint64_t part, std::uint32_t each,
                                                 std::uint64_t destination, std::uint32_t element_bytes) {
  const std::uint32_t before = (0u - static_cast<std::uint32_t>(destination)) % line_bytes;
  const std::uint32_t lead = line_bytes % element_bytes == 0 ? before / element_bytes : 0;
  const std::uint64_t first = part == 0 ? 0 : part * each + lead;
  const std::uint64_t end = (part + 1) * each + lead;
  if (first >= length) return {length, 0};
  return {first, static_cast<std::uint32_t>((end < length ? end : length) - first)};
}

}  // namespace tmap::kernels
