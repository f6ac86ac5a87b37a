// SPDX-License-Identifier: Apache-2.0
#pragma once

// Waits for the sums of a combine. An earlier kernel of each rank has stored them where their
// records asked for them, in the windows of all ranks.

#include <tmap/detail/peer_barrier.hpp>

namespace tmap::kernels::peer {

using namespace tmap::detail::peer;

/// Waits until all ranks have stored their sums here. One thread calls it. `outcome` is the word
/// with the verdict of the dispatch. If that is not ok, no rank has sums, and the combine ends with
/// it.
template <class Link>
TMAP_HOST_DEVICE peer_verdict await_sums(Link& link, std::uint64_t outcome, std::uint64_t deadline) {
  const peer_verdict dispatched = verdict_of(link.load(link.rank(), outcome));
  return report(link, dispatched.status == peer_status::ok ? barrier(link, deadline) : dispatched);
}

}  // namespace tmap::kernels::peer
