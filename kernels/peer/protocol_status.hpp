// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ends calls that cannot go on: with a status in the own window, and word to all ranks that the
// group is broken.

#include "kernels/peer/protocol_window.hpp"

namespace tmap::kernels::peer {

enum class peer_status : std::uint32_t {
  ok,
  timeout,     ///< a rank did not come by the deadline; the group is broken
  broken,      ///< another rank gave up before
  mismatch,    ///< ranks made different calls; the group is broken
  overflow,    ///< a rank would get more rows than its capacity; nothing was moved
  bad_counts,  ///< a rank would send more rows than it has; nothing was moved
  refused,     ///< the request does not fit the window's header; nothing was announced
};

enum class protocol_step : std::uint32_t { none, barrier, put, take_put, credit, announcement, workers };

/// Reports how a call ended, and by which rank's fault.
struct peer_verdict {
  peer_status status{peer_status::ok};
  std::uint32_t peer{0};
  protocol_step step{protocol_step::none};
};

/// Returns whether ranks may make further calls after it.
TMAP_HOST_DEVICE constexpr bool is_fatal(peer_status status) {
  return status == peer_status::timeout || status == peer_status::broken || status == peer_status::mismatch;
}

/// Returns whether some rank of the group gave up. It looks once.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE bool is_broken(Link& link) {
  return link.wait(offsetof(window_header, broken), 1, 0);
}

/// Writes how a call of this rank ended into its window.
template <class Link>
TMAP_HOST_DEVICE void report(Link& link, const peer_verdict& verdict) {
  link.store(link.rank(), offsetof(window_header, status_peer), verdict.peer);
  link.store(link.rank(), offsetof(window_header, status_step), static_cast<std::uint32_t>(verdict.step));
  link.store(link.rank(), offsetof(window_header, status), static_cast<std::uint32_t>(verdict.status));
}

/// Breaks the group: later calls of all ranks end at once.
template <class Link>
TMAP_HOST_DEVICE peer_verdict give_up(Link& link, const peer_verdict& verdict) {
  report(link, verdict);
  for (std::uint32_t rank = 0; rank < link.ranks(); ++rank) link.raise(rank, offsetof(window_header, broken), 1);
  return verdict;
}

/// Returns rank `i` in the order in which this rank visits all ranks, itself last. No two ranks
/// begin with the same one.
template <class Link>
TMAP_HOST_DEVICE std::uint32_t rank_in_turn(const Link& link, std::uint32_t i) {
  return (link.rank() + 1 + i) % link.ranks();
}

}  // namespace tmap::kernels::peer
