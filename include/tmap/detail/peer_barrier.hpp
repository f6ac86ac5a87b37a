// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/detail/peer_status.hpp>

namespace tmap::detail::peer {

/// Lets all ranks know that this one has come. What this thread wrote and put before, all ranks may
/// read once they have waited, by loads and by bulk copies.
template <class Link>
TMAP_HOST_DEVICE void come_to_barrier(Link& link) {
  link.quiet();
  for (std::uint32_t i = 0; i + 1 < link.ranks(); ++i) {
    link.raise_released(rank_in_turn(link, i), word_at(offsetof(window_header, barrier_raised), link.rank()), 1);
  }
}

/// Waits until all ranks have come to barrier number `epoch`.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict await_barrier(Link& link, std::uint32_t epoch, std::uint64_t deadline) {
  for (std::uint32_t i = 0; i + 1 < link.ranks(); ++i) {
    const std::uint32_t peer = rank_in_turn(link, i);
    if (!await(link, word_at(offsetof(window_header, barrier_raised), peer), epoch, deadline)) {
      return give_up_waiting(link, peer, protocol_step::barrier);
    }
  }
  link.proxy_fence();
  return {};
}

/// Waits until all ranks have come here. No branch stands before the signals, so the loads wait
/// with the fence. In a broken group nobody waits for the signals.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict barrier(Link& link, std::uint64_t deadline) {
  const std::uint32_t me = link.rank();
  const bool is_over = is_broken(link);
  const std::uint32_t epoch = link.load(me, offsetof(window_header, barriers)) + 1;
  come_to_barrier(link);
  link.store(me, offsetof(window_header, barriers), epoch);
  const peer_verdict met = await_barrier(link, epoch, deadline);
  if (met.status != peer_status::ok) return report(link, met);
  return is_over ? report(link, {peer_status::broken}) : met;
}

}  // namespace tmap::detail::peer
