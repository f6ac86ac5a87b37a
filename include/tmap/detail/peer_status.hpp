// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ends calls that cannot go on: with a status in the own window, and word to all ranks that the
// group is broken.

#include <tmap/detail/peer_window.hpp>
#include <tmap/peer_verdict.hpp>

namespace tmap::detail::peer {

/// Returns whether ranks may make further calls after it.
TMAP_HOST_DEVICE constexpr bool is_fatal(peer_status status) {
  return status == peer_status::timeout || status == peer_status::broken || status == peer_status::mismatch;
}

// A verdict in one word, so that two blocks cannot mix theirs: the status in the lowest byte, then
// the step, then the peer.

TMAP_HOST_DEVICE constexpr std::uint32_t word_of(const peer_verdict& verdict) {
  return static_cast<std::uint32_t>(verdict.status) | static_cast<std::uint32_t>(verdict.step) << 8 |
         verdict.peer << 16;
}

TMAP_HOST_DEVICE constexpr peer_verdict verdict_of(std::uint32_t word) {
  return {static_cast<peer_status>(word & 0xff), word >> 16, static_cast<protocol_step>(word >> 8 & 0xff)};
}

/// Returns whether some rank of the group gave up. It looks once.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE bool is_broken(Link& link) {
  return link.look(offsetof(window_header, broken)) != 0;
}

/// Waits until a signal of the own window has come to `value`. Returns false at the deadline, or
/// once the group is broken.
///
/// A wait that watched its signal alone would end by its deadline, too. It would then take a rank
/// that has given up for the one that is late. The second word costs a load from this GPU's own
/// memory at each poll, and that load does not wait for the first one.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE bool await(Link& link, std::uint64_t signal, std::uint32_t value,
                                          std::uint64_t deadline) {
  return link.wait(signal, value, deadline, offsetof(window_header, broken));
}

/// Writes how a call of this rank ended into its window, and returns it. Of the blocks of an
/// exchange, the first alone calls it.
template <class Link>
TMAP_HOST_DEVICE peer_verdict report(Link& link, const peer_verdict& verdict) {
  link.store(link.rank(), offsetof(window_header, verdict), word_of(verdict));
  return verdict;
}

/// Returns the word of a verdict. That of a success also holds `shape`, a number of 24 bits. A call
/// that continues it must have the same.
TMAP_HOST_DEVICE constexpr std::uint32_t word_of(const peer_verdict& verdict, std::uint32_t shape) {
  return verdict.status == peer_status::ok ? word_of(verdict) | shape << 8 : word_of(verdict);
}

/// Returns how the call ended whose verdict is at an offset of the own window: `no_dispatch` if it
/// was a success of another shape. Any thread may call it.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict outcome_of(Link& link, std::uint64_t verdict, std::uint32_t shape) {
  const std::uint32_t word = link.load(link.rank(), verdict);
  if ((word & 0xff) != static_cast<std::uint32_t>(peer_status::ok)) return verdict_of(word);
  return {word >> 8 == shape ? peer_status::ok : peer_status::no_dispatch};
}

/// Returns whether the call whose verdict is at an offset of the own window was a success of this
/// shape.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE bool is_success(Link& link, std::uint64_t verdict, std::uint32_t shape = 0) {
  return outcome_of(link, verdict, shape).status == peer_status::ok;
}

/// Breaks the group: waits and later calls of all ranks end at once. The verdict stays in `fault`,
/// because another block or a later call may report that the group is broken.
template <class Link>
TMAP_HOST_DEVICE peer_verdict give_up(Link& link, const peer_verdict& verdict) {
  link.store(link.rank(), offsetof(window_header, fault), word_of(verdict));
  TMAP_KEEP_ROLLED
  for (std::uint32_t rank = 0; rank < link.ranks(); ++rank) link.raise(rank, offsetof(window_header, broken), 1);
  return verdict;
}

/// Ends a call whose wait was in vain. It names `peer` only if no rank gave up before.
template <class Link>
TMAP_HOST_DEVICE peer_verdict give_up_waiting(Link& link, std::uint32_t peer, protocol_step step) {
  if (is_broken(link)) return {peer_status::broken};
  return give_up(link, {peer_status::timeout, peer, step});
}

/// Returns rank `i` in the order in which this rank visits all ranks, itself last. No two ranks
/// begin with the same one.
template <class Link>
TMAP_HOST_DEVICE std::uint32_t rank_in_turn(const Link& link, std::uint32_t i) {
  const std::uint32_t turn = link.rank() + 1 + i;  // less than twice the ranks: no division
  return turn < link.ranks() ? turn : turn - link.ranks();
}

}  // namespace tmap::detail::peer
