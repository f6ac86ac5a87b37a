// SPDX-License-Identifier: Apache-2.0
#pragma once

// Exchanges rows among all ranks: announce, judge, pull, credit. Only the ranks know how many rows
// go where. Every function is for one thread of a block.

#include "kernels/peer/protocol_pull.hpp"

namespace tmap::kernels::peer {

/// Announces and pulls, in every block. The first block alone announces.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict announce_and_pull(Link& link, const exchange_request& request,
                                                              std::uint32_t call, std::uint64_t deadline) {
  if (request.block == 0) {
    if (const peer_verdict told = announce(link, request, call, deadline); told.status != peer_status::ok) return told;
  } else if (is_broken(link)) {
    return {peer_status::broken};
  }
  const peer_verdict heard = await_announcements(link, request, call, deadline);
  if (heard.status != peer_status::ok) return heard;
  const peer_verdict judged = judge(link, request);
  if (judged.status != peer_status::ok) return judged;
  link.proxy_fence();  // peers' rows were seen by waits, and are read by bulk copies
  pull(link, request);
  return {};
}

/// Waits for the other blocks of this rank, then gives all ranks their credit.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict finish_exchange(Link& link, const exchange_request& request,
                                                            std::uint32_t call, std::uint64_t deadline) {
  const std::uint32_t me = link.rank();
  const std::uint64_t expected_at = offsetof(window_header, workers_expected);
  const std::uint32_t expected = link.load(me, expected_at) + request.blocks - 1;
  if (!await(link, offsetof(window_header, workers_raised), expected, deadline)) {
    return give_up_waiting(link, me, protocol_step::workers);
  }
  if (is_broken(link)) return {peer_status::broken};
  link.store(me, expected_at, expected);
  link.store(me, offsetof(window_header, exchanges), call);
  for (std::uint32_t i = 0; i + 1 < link.ranks(); ++i) {
    link.raise(rank_in_turn(link, i), word_at(offsetof(window_header, credited), me), 1);
  }
  return {};
}

/// Runs the first block's part of an exchange.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict lead_exchange(Link& link, const exchange_request& request,
                                                          std::uint32_t call, std::uint64_t deadline) {
  const peer_verdict moved = announce_and_pull(link, request, call, deadline);
  if (is_fatal(moved.status)) return moved;
  if (moved.status == peer_status::ok) write_out_splits(link, request);
  const peer_verdict ended = finish_exchange(link, request, call, deadline);
  return ended.status == peer_status::ok ? moved : ended;
}

/// Runs one rank's part of an exchange. The verdict of block 0 is the rank's; that is also in its
/// window. If it is ok, all rows are in `out`, and later kernels of this rank may read them. The
/// rows sent may be overwritten after `await_credits`.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict exchange(Link& link, const exchange_request& request,
                                                     std::uint64_t deadline) {
  const bool leads = request.block == 0;
  if (!fits_header(link.ranks(), request.groups)) {
    const peer_verdict refused{peer_status::refused};
    return leads ? report(link, refused) : refused;
  }
  const std::uint32_t call = link.load(link.rank(), offsetof(window_header, exchanges)) + 1;
  if (leads) return report(link, lead_exchange(link, request, call, deadline));
  const peer_verdict moved = announce_and_pull(link, request, call, deadline);
  link.raise(link.rank(), offsetof(window_header, workers_raised), 1);
  return moved;
}

}  // namespace tmap::kernels::peer
