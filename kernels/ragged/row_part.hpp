// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>

#include <cstdint>

namespace tmap::kernels {

/// Copies whose pieces begin inside lines of memory are slower by up to a tenth
/// (docs/measurements/ragged.md).
inline constexpr std::uint32_t line_bytes = 128;

/// A piece of a row of more than one.
struct row_part {
  std::uint64_t first;
  std::uint32_t elements;  ///< none: the pieces before have them all
};

/// Pieces of `each` elements meet where lines of the destination do: the first piece is longer by
/// the elements before the first line, fewer than a line has bytes. Elements that do not divide a
/// line stay where their count puts them: a piece of `each` may be a multiple of 16 bytes, which
/// bulk copies need, and a few elements more are not. `destination`: where the row begins.
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
