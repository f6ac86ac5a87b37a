// SPDX-License-Identifier: Apache-2.0
#pragma once

// Waits for the sums of a combine. An earlier kernel of each rank has stored them where their
// records asked for them, in the windows of all ranks.

#include <tmap/detail/peer_barrier.hpp>

namespace tmap::kernels::peer {

using namespace tmap::detail::peer;

/// Points to words of a dispatch in the own window.
struct dispatch_words {
  std::uint64_t outcome;  ///< its verdict
  std::uint64_t total;    ///< how many tokens came, whose sums leave
  std::uint32_t shape;    ///< that of the combine, which the verdict must name
};

/// Waits until all ranks have stored their sums here. One thread calls it. If the dispatch was no
/// success, no rank stores sums, and the combine ends as it did. A combine of another shape, whose
/// sums would lie elsewhere, finds no dispatch.
///
/// The next combine finds no dispatch, and stores no sums: this rank may be adding up those that
/// came while another one begins it.
template <class Link>
TMAP_HOST_DEVICE peer_verdict await_sums(Link& link, const dispatch_words& of, std::uint64_t deadline) {
  const std::uint32_t me = link.rank();
  const peer_verdict dispatched = outcome_of(link, of.outcome, of.shape);
  if (dispatched.status != peer_status::ok) return report(link, dispatched);
  const peer_verdict met = barrier(link, deadline);
  const bool is_over = met.status != peer_status::ok;
  link.store(me, of.outcome, word_of(is_over ? met : peer_verdict{peer_status::no_dispatch}));
  link.store(me, of.total, 0);
  return report(link, met);
}

}  // namespace tmap::kernels::peer
