// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lays out the part of the header where *eager rows* come: rows so few that their rank sends them
// together with its announcement, as packets. To pull them would take a fence and a trip more. Each
// row begins with a new packet. There is room for one call. A rank sends them once it has
// everybody's credit for the calls before.

#include <tmap/detail/peer_window.hpp>

namespace tmap::kernels::peer {

using namespace tmap::detail::peer;  // what all protocols have in common

static_assert(offsetof(window_header, eager) % sizeof(packet) == 0);

/// With more packets for a rank, a pull takes less time. They hold 16 KiB.
inline constexpr std::uint32_t most_eager_packets = 1366;

/// Returns how many packets each source has room for. Threads that find packets need no division.
TMAP_HOST_DEVICE constexpr std::uint32_t eager_packets(std::uint32_t ranks) {
  auto packets = static_cast<std::uint32_t>(sizeof(window_header::eager) / sizeof(packet));
  for (std::uint32_t sources = 1; sources < ranks; sources *= 2) packets /= 2;
  return packets;
}
/// Returns the offset of packet `i` of the rows that come from `source`.
TMAP_HOST_DEVICE constexpr std::uint64_t eager_packet_at(std::uint32_t ranks, std::uint32_t source, std::uint32_t i) {
  return offsetof(window_header, eager) + (std::uint64_t{source} * eager_packets(ranks) + i) * sizeof(packet);
}
/// Returns how many packets a row takes. Its bytes are a multiple of 4.
TMAP_HOST_DEVICE constexpr std::uint32_t row_packets(std::uint32_t row_bytes) {
  return packets_of(row_bytes / static_cast<std::uint32_t>(word_bytes));
}
/// Returns whether rows for one rank are so few.
TMAP_HOST_DEVICE constexpr bool are_eager(std::uint32_t ranks, std::uint32_t rows, std::uint32_t row_bytes) {
  const std::uint32_t room = eager_packets(ranks);
  return std::uint64_t{rows} * row_packets(row_bytes) <= (room < most_eager_packets ? room : most_eager_packets);
}

}  // namespace tmap::kernels::peer
