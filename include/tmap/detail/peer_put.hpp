// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sends pieces to a peer: put and raise on one side, take and return on the other. A piece that was
// not returned is never overwritten.

#include <tmap/detail/peer_status.hpp>

namespace tmap::detail::peer {

/// Puts `bytes` of shared memory into `peer` and announces them, once the peer has returned the
/// piece before.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict put_and_raise(Link& link, std::uint32_t peer, std::uint64_t offset,
                                                          std::uint32_t from_shared, std::uint32_t bytes,
                                                          std::uint64_t deadline) {
  if (is_broken(link)) return report(link, {peer_status::broken});
  const std::uint32_t me = link.rank();
  const std::uint64_t sent_at = word_at(offsetof(window_header, puts_sent), peer);
  const std::uint32_t sent = link.load(me, sent_at);
  if (!await(link, word_at(offsetof(window_header, put_returned), peer), sent, deadline)) {
    return report(link, give_up_waiting(link, peer, protocol_step::put));
  }
  link.put(peer, offset, from_shared, bytes);
  link.quiet();
  link.raise_released(peer, word_at(offsetof(window_header, put_raised), me), 1);
  link.store(me, sent_at, sent + 1);
  return {};
}

/// Waits for the next piece of `source`. Then loads and bulk copies of this thread read it.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict take_put(Link& link, std::uint32_t source, std::uint64_t deadline) {
  if (is_broken(link)) return report(link, {peer_status::broken});
  const std::uint64_t taken_at = word_at(offsetof(window_header, puts_taken), source);
  const std::uint32_t next = link.load(link.rank(), taken_at) + 1;
  if (!await(link, word_at(offsetof(window_header, put_raised), source), next, deadline)) {
    return report(link, give_up_waiting(link, source, protocol_step::take_put));
  }
  link.store(link.rank(), taken_at, next);
  link.proxy_fence();
  return {};
}

/// Lets `source` overwrite the piece that was taken from it.
template <class Link>
TMAP_HOST_DEVICE void return_put(Link& link, std::uint32_t source) {
  link.raise(source, word_at(offsetof(window_header, put_returned), link.rank()), 1);
}

}  // namespace tmap::detail::peer
