// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads rows of all ranks where they lie, once they are announced, by all threads of a block. An
// exchange whose rows are few takes longer to copy them and to start the next kernel.

#include "kernels/peer/protocol_fetch.hpp"

namespace tmap::kernels::peer {

/// Holds the rank and the row of an entry of a list.
struct listed_entry {
  std::uint32_t rank;
  std::uint32_t row;
};

/// Finds the rows that the entries of a list name. Any thread may: `find` once they are announced,
/// the rest before.
template <class Link>
class listed_rows {
 public:
  TMAP_HOST_DEVICE listed_rows(Link& link, const fetch_request& request)
      : link_(link), request_(request), told_(link, request.call) {}

  /// Returns how many entries the list has.
  TMAP_HOST_DEVICE std::uint32_t count() const { return link_.load(link_.rank(), request_.listed); }
  TMAP_HOST_DEVICE listed_entry entry(std::uint32_t number) const {
    return {word(number, entry_word::source), word(number, entry_word::row)};
  }
  TMAP_HOST_DEVICE row_place find(const listed_entry& entry) const {
    const std::uint64_t place =
        told_.rows_at(entry.rank) + std::uint64_t{entry.row} * told_.word(entry.rank, slot::sent_pitch);
    return {entry.rank, entry.row < told_.word(entry.rank, slot::sent_rows) ? place : 0};
  }
  /// Returns where a row goes: one of the entry's places in the own window, or 0.
  TMAP_HOST_DEVICE std::uint64_t target(std::uint32_t entry, std::uint32_t number) const {
    const std::uint32_t place = word(entry, entry_word::places + number);
    return place < request_.call.capacity ? request_.call.out + std::uint64_t{place} * request_.out_pitch : 0;
  }

 private:
  TMAP_HOST_DEVICE std::uint32_t word(std::uint32_t entry, std::uint32_t number) const {
    return link_.load(link_.rank(),
                      word_at(request_.list, std::uint64_t{entry} * entry_words(request_.places) + number));
  }

  Link& link_;
  const fetch_request& request_;
  announcements<Link> told_;
};

template <class Team>
struct gather_moves : lone_moves {
  Team& team;

  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict move(Link&, std::uint32_t) const {
    team.work();
    return {};
  }
};

/// Leads one block's part of a fetch whose rows the other threads of the block read. One thread
/// calls it. `team.work` lets the others read rows, and returns when they have. `team.dismiss` lets
/// them go if they need not.
template <class Link, class Team>
TMAP_HOST_DEVICE peer_verdict gather(Link& link, const fetch_request& request, std::uint64_t deadline, Team& team) {
  group_raiser<Link> pending(link, request.pending);
  pending.begin();
  const peer_verdict ended = run_call(link, request.call, deadline, gather_moves<Team>{{}, team});
  team.dismiss();
  pending.end();
  return ended;
}

}  // namespace tmap::kernels::peer
