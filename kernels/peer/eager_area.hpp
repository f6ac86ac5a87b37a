// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lays out the part of the header where *eager rows* come: rows so few that their rank sends them
// together with its announcement, word by word. To pull them would take a fence and a trip more.
// There is room for one call. A rank sends them once it has everybody's credit for the calls
// before.

#include <tmap/detail/peer_window.hpp>

namespace tmap::kernels::peer {

using tmap::detail::peer::tagged_word;
using tmap::detail::peer::window_header;

/// With more bytes for a rank, a pull takes less time.
inline constexpr std::uint32_t most_eager_bytes = 16384;

/// Returns how many words each source has room for.
TMAP_HOST_DEVICE constexpr std::uint32_t eager_words(std::uint32_t ranks) {
  return static_cast<std::uint32_t>(sizeof(window_header::eager) / sizeof(tagged_word)) / ranks;
}
/// Returns the offset of word `i` of the rows that come from `source`.
TMAP_HOST_DEVICE constexpr std::uint64_t eager_word_at(std::uint32_t ranks, std::uint32_t source, std::uint32_t i) {
  return offsetof(window_header, eager) + (std::uint64_t{source} * eager_words(ranks) + i) * sizeof(tagged_word);
}
/// Returns whether rows for one rank are so few. Their bytes are a multiple of 4.
TMAP_HOST_DEVICE constexpr bool are_eager(std::uint32_t ranks, std::uint32_t rows, std::uint32_t row_bytes) {
  const std::uint64_t bytes = std::uint64_t{rows} * row_bytes;
  return bytes <= most_eager_bytes && bytes <= eager_words(ranks) * tmap::detail::peer::word_bytes;
}

}  // namespace tmap::kernels::peer
