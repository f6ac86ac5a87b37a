// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads rows of all ranks where they lie, once they are announced, by all threads of a block. An
// exchange whose rows are few takes longer to copy them and to start the next kernel.

#include "kernels/peer/protocol_exchange.hpp"

namespace tmap::kernels::peer {

/// Finds the rows that all ranks have for this one, in the order of the ranks.
struct rows_of_ranks {
  std::uint64_t begins[max_group_ranks];  ///< where row 0 of all would lie in a rank's window
  std::uint32_t ends[max_group_ranks];    ///< the first row of the next rank
  std::uint32_t ranks;

  template <class Link>
  TMAP_HOST_DEVICE void find(Link& link, const exchange_request& request) {
    const announcements<Link> told(link, request);
    std::uint32_t end = 0;
    ranks = link.ranks();
    TMAP_KEEP_ROLLED
    for (std::uint32_t source = 0; source < link.ranks(); ++source) {
      begins[source] = told.begin_at(source) - std::uint64_t{end} * request.row_bytes;  // modulo 2^64
      end += told.total(source, link.rank());
      ends[source] = end;
    }
  }
  /// Returns the rank that has a row of them.
  TMAP_HOST_DEVICE std::uint32_t rank_of(std::uint32_t row) const {
    std::uint32_t rank = 0;
    while (rank + 1 < ranks && row >= ends[rank]) ++rank;
    return rank;
  }
};

template <class Team>
struct gather_moves {
  Team& team;

  template <class Link>
  TMAP_HOST_DEVICE void move(Link&) const {
    team.work();
  }
  template <class Link>
  TMAP_HOST_DEVICE void write_counts(Link&) const {}
};

/// Leads one block's part of a call in which all ranks announce rows as for an exchange. One thread
/// calls it. `team.work` lets the others read rows, and returns when they have. `team.dismiss` lets
/// them go if they need not.
template <class Link, class Team>
TMAP_HOST_DEVICE peer_verdict gather(Link& link, const exchange_request& request, std::uint64_t deadline, Team& team) {
  const peer_verdict ended = run_call(link, request, deadline, gather_moves<Team>{team});
  team.dismiss();
  return ended;
}

}  // namespace tmap::kernels::peer
