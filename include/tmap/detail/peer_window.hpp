// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lays out the header of a window: the first `peer_header_bytes`, before the user's bytes. It is
// the only place that knows where signals, epochs and announcements lie.

#include <tmap/peer_memory_ref.hpp>

namespace tmap::detail::peer {

/// Holds words that come together, with a tag: who reads the tag reads these words, too. So it
/// needs no signal and no fence after it. Its offset is a multiple of 16.
struct packet {
  std::uint32_t words[3];
  std::uint32_t tag;
};
inline constexpr std::uint32_t packet_words = 3;

/// Is all zeros when the group is made. Counters run for ever and are compared with wrap-around.
struct window_header {
  // Signals. Rank s alone raises word s, so that a time-out names the rank that did not come.
  std::uint32_t barrier_raised[max_group_ranks];
  std::uint32_t put_raised[max_group_ranks];    ///< puts of s that are here
  std::uint32_t put_returned[max_group_ranks];  ///< puts into s that s has used
  std::uint32_t credited[max_group_ranks];      ///< exchanges for which s has pulled its rows from here
  std::uint32_t broken;                         ///< raised by any rank that gives up
  std::uint32_t workers_raised;                 ///< by the own rank's blocks
  std::uint32_t records_raised;                 ///< by the own rank's blocks that have pulled records

  // Epochs: how far this rank has come. Only the rank itself reads and writes them. They lie in
  // memory, so that a replayed graph goes on where the last replay ended.
  std::uint32_t barriers;
  std::uint32_t exchanges;
  std::uint32_t workers_expected;
  std::uint32_t records_expected;
  std::uint32_t pieces_dealt;  ///< counts those that this rank's blocks have taken on; 0 between calls
  std::uint32_t blocks_ended;  ///< of a combine; 0 between calls
  std::uint32_t puts_sent[max_group_ranks];
  std::uint32_t puts_taken[max_group_ranks];

  // Words of verdicts (protocol_status.hpp).
  std::uint32_t verdict;  ///< how the last exchange of this rank ended, or a later call in vain
  std::uint32_t fault;    ///< why this rank broke the group; 0 if it did not

  // Two slots for each source, for calls in turn, and its counts (protocol_announce.hpp).
  alignas(16) std::uint32_t announcements[32552];

  // The rows of each source that come with its announcement (eager_area.hpp).
  packet eager[8192];
  packet unused[3];  ///< up to the end of the header
};
static_assert(sizeof(window_header) == peer_header_bytes);
static_assert(std::is_trivial_v<window_header> && std::is_standard_layout_v<window_header>);

inline constexpr std::uint64_t word_bytes = sizeof(std::uint32_t);

/// Returns whether a counter has come to `value`. Counters run for ever and wrap around: two values
/// that are compared differ by less than 2^31.
TMAP_HOST_DEVICE constexpr bool has_come(std::uint32_t counter, std::uint32_t value) {
  return counter - value < 1u << 31;
}

/// Returns the tag of the packets of a call. No packet has the tag 0 before it has come.
TMAP_HOST_DEVICE constexpr std::uint32_t tag_of(std::uint32_t call) {
  return call << 1 | 1;
}

/// Returns how many packets hold so many words.
TMAP_HOST_DEVICE constexpr std::uint32_t packets_of(std::uint32_t words) {
  return (words + packet_words - 1) / packet_words;
}

/// Returns the offset of word `i` of the packets that begin at `first`.
TMAP_HOST_DEVICE constexpr std::uint64_t packet_word_at(std::uint64_t first, std::uint32_t i) {
  return first + i / packet_words * sizeof(packet) + i % packet_words * word_bytes;
}

/// Returns the offset of word `i` of an array of words.
TMAP_HOST_DEVICE constexpr std::uint64_t word_at(std::uint64_t array, std::uint64_t i) {
  return array + i * word_bytes;
}

}  // namespace tmap::detail::peer
