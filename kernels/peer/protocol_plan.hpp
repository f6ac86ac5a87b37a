// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the announcements: judges them, and finds the place of each row. Every block of every rank
// judges for itself and comes to the same verdict, since all slots have the same words.

#include "kernels/peer/protocol_announce.hpp"

namespace tmap::kernels::peer {

/// Names where a row lies.
struct row_place {
  std::uint32_t rank;
  std::uint64_t offset;  ///< in its window; 0: there is no such row
};

/// Reads words of slots. They may be read once `await_announcements` has returned ok.
template <class Link>
class announcements {
 public:
  TMAP_HOST_DEVICE announcements(Link& link, const exchange_request& request)
      : link_(link), request_(request), slot_bytes_(static_cast<std::uint32_t>(slot_bytes(link.ranks()))) {}

  TMAP_HOST_DEVICE std::uint32_t word(std::uint32_t source, std::uint32_t number) const {
    return link_.taken(static_cast<std::uint32_t>(packet_word_at(source * slot_bytes_, number)));
  }
  /// Returns how many rows `source` sends to `rank`.
  TMAP_HOST_DEVICE std::uint32_t total(std::uint32_t source, std::uint32_t rank) const {
    return word(source, slot::totals + rank);
  }
  /// Returns whether the rows of `source` for `rank` come with its announcement.
  TMAP_HOST_DEVICE bool is_eager(std::uint32_t source, std::uint32_t rank) const {
    return (word(source, slot::flags) & slot_flag::is_eager) != 0 &&
           are_eager(link_.ranks(), total(source, rank), request_.row_bytes);
  }
  /// Returns the same of the rows for this rank.
  TMAP_HOST_DEVICE bool is_eager(std::uint32_t source) const { return is_eager(source, link_.rank()); }
  /// Returns whether `source` puts its rows into the window of `rank`, which does not pull them.
  TMAP_HOST_DEVICE bool is_pushed(std::uint32_t source, std::uint32_t rank) const {
    const std::uint64_t bytes = std::uint64_t{total(source, rank)} * request_.row_bytes;
    if (request_.pushed_bytes == 0 || bytes < request_.pushed_bytes) return false;  // as for most calls
    const bool is_aligned = (rows_at(source) | step_of(source)) % bulk_unit == 0;
    const bool pushes = (word(source, slot::flags) & slot_flag::pushes) != 0 && word(rank, slot::out_units) != 0;
    return is_aligned && pushes && source != rank && !is_eager(source, rank);
  }
  /// Returns whether this rank pushes rows to some other one.
  TMAP_HOST_DEVICE bool are_pushed() const {
    bool pushed = false;
    TMAP_KEEP_ROLLED
    for (std::uint32_t rank = 0; rank < link_.ranks(); ++rank) pushed |= is_pushed(link_.rank(), rank);
    return pushed;
  }
  /// Returns whether rows come to this rank that it pulls, or another one pushes.
  TMAP_HOST_DEVICE bool are_moved_here() const {
    bool moved = false;
    TMAP_KEEP_ROLLED
    for (std::uint32_t source = 0; source < link_.ranks(); ++source) {
      moved |= total(source, link_.rank()) != 0 && !is_eager(source);
    }
    return moved;
  }
  /// Returns how many rows of `group` come to this rank from `source`.
  TMAP_HOST_DEVICE std::uint32_t count(std::uint32_t source, std::uint32_t group) const {
    if (request_.groups == 1) return total(source, link_.rank());
    return link_.load(link_.rank(), word_at(counts_at(link_.ranks(), request_.groups, source), group));
  }
  /// Returns where the rows that a rank sends lie in its window. A sum with it may wrap around.
  TMAP_HOST_DEVICE std::uint64_t rows_at(std::uint32_t source) const {
    const auto high = static_cast<std::int16_t>(word(source, slot::rows_high) & 0xffff);
    return static_cast<std::uint64_t>(std::int64_t{high}) << 32 | word(source, slot::rows_low);
  }
  /// Returns where a row of a list lies in the window of `source`.
  TMAP_HOST_DEVICE std::uint64_t row_at(std::uint32_t source, std::uint32_t row) const {
    return rows_at(source) + row * std::uint64_t{word(source, slot::sent_pitch)};
  }
  /// Returns the bytes from one row of `source` to the next.
  TMAP_HOST_DEVICE std::uint64_t step_of(std::uint32_t source) const {
    return row_step(word(source, slot::sent_pitch), request_.row_bytes);
  }
  /// Returns where the rows for `to` begin in the window of `source`.
  TMAP_HOST_DEVICE std::uint64_t begin_at(std::uint32_t source, std::uint32_t to) const {
    std::uint64_t before = 0;
    TMAP_KEEP_ROLLED
    for (std::uint32_t rank = 0; rank < to; ++rank) before += total(source, rank);
    return rows_at(source) + before * step_of(source);
  }
  /// Returns where the rows for this rank begin in the window of `source`.
  TMAP_HOST_DEVICE std::uint64_t begin_at(std::uint32_t source) const { return begin_at(source, link_.rank()); }
  /// Returns where the rows that this rank pushes go in the window of `to`.
  TMAP_HOST_DEVICE std::uint64_t place_at(std::uint32_t to) const {
    std::uint64_t before = 0;
    TMAP_KEEP_ROLLED
    for (std::uint32_t rank = 0; rank < link_.rank(); ++rank) before += total(rank, to);
    return std::uint64_t{word(to, slot::out_units)} * bulk_unit + before * request_.row_bytes;
  }
  /// Returns how many rows of `group` come to this rank from the ranks before `end`.
  TMAP_HOST_DEVICE std::uint64_t rows_of(std::uint32_t group, std::uint32_t end) const {
    std::uint64_t rows = 0;
    TMAP_KEEP_ROLLED
    for (std::uint32_t from = 0; from < end; ++from) rows += count(from, group);
    return rows;
  }
  /// Returns how many rows come to this rank from the ranks before `end`.
  TMAP_HOST_DEVICE std::uint64_t rows_of_ranks(std::uint32_t end) const {
    std::uint64_t rows = 0;
    TMAP_KEEP_ROLLED
    for (std::uint32_t from = 0; from < end; ++from) rows += total(from, link_.rank());
    return rows;
  }

 private:
  Link& link_;
  const exchange_request& request_;
  std::uint32_t slot_bytes_;
};

/// Finds the first row of `out` for each group of one source, in the order of groups. It adds up as
/// it goes: a sum from the beginning for each group would read all counts as many times as there
/// are groups.
template <class Link>
class places {
 public:
  TMAP_HOST_DEVICE places(const announcements<Link>& announced, row_placement placed, std::uint32_t source,
                          std::uint32_t ranks)
      : announced_(announced), placed_(placed), source_(source), ranks_(ranks) {
    if (placed == row_placement::rank_major) before_ = announced.rows_of_ranks(source);
  }

  /// Returns the place of the next group, which has `rows` rows of this source.
  TMAP_HOST_DEVICE std::uint64_t next(std::uint32_t group, std::uint32_t rows) {
    const bool by_rank = placed_ == row_placement::rank_major;
    const std::uint64_t first = by_rank ? before_ : before_ + announced_.rows_of(group, source_);
    before_ += by_rank ? rows : announced_.rows_of(group, ranks_);
    return first;
  }

 private:
  const announcements<Link>& announced_;
  row_placement placed_;
  std::uint32_t source_;
  std::uint32_t ranks_;
  std::uint64_t before_{0};
};

/// Waits for the slots of the ranks from `begin` to `end`. Returns whether they came by the
/// deadline and before the group broke.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE bool take_slots(Link& link, std::uint32_t call, std::uint32_t begin, std::uint32_t end,
                                               std::uint64_t deadline) {
  if (begin == end) return true;
  return link.take(slot_at(link.ranks(), call, begin), (end - begin) * slot_packets(link.ranks()), tag_of(call),
                   taken_slot(link.ranks(), begin), deadline, offsetof(window_header, broken));
}

/// Returns whether the slot of a rank is there.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE bool has_slot(Link& link, std::uint32_t call, std::uint32_t source) {
  bool is_there = true;
  TMAP_KEEP_ROLLED
  for (std::uint32_t i = 0; i < slot_packets(link.ranks()); ++i) {
    const std::uint64_t at = slot_at(link.ranks(), call, source) + i * sizeof(packet) + offsetof(packet, tag);
    is_there &= link.load(link.rank(), at) == tag_of(call);
  }
  return is_there;
}

/// Returns a rank whose slot is not there. If those of all others have come since, that is this
/// one.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE std::uint32_t late_rank(Link& link, std::uint32_t call) {
  std::uint32_t i = 0;
  TMAP_KEEP_ROLLED
  while (i + 1 < link.ranks() && has_slot(link, call, rank_in_turn(link, i))) ++i;
  return rank_in_turn(link, i);
}

/// Returns whether a block has its own slot without taking it: it has made it.
TMAP_HOST_DEVICE constexpr bool has_own_slot(const exchange_request& request) {
  return request.block == 0 && !request.is_announced;
}

/// Waits for the announcements of all ranks to call number `call`. Returns whether they came.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE bool await_slots(Link& link, const exchange_request& request, std::uint32_t call,
                                                std::uint64_t deadline) {
  const std::uint32_t ranks = link.ranks(), me = link.rank();
  const bool has_own = has_own_slot(request);
  return take_slots(link, call, 0, has_own ? me : ranks, deadline) &&
         (!has_own || take_slots(link, call, me + 1, ranks, deadline));
}

/// Waits for this worker's share of their packets.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE bool await_packets_of_slots(Link& link, const exchange_request& request,
                                                           std::uint32_t call, std::uint64_t deadline,
                                                           const worker& mine) {
  const std::uint32_t of_one = slot_packets(link.ranks()), own = link.rank() * of_one;
  const std::uint32_t left_out = has_own_slot(request) ? of_one : 0;
  bool have_come = true;
  share(mine, link.ranks() * of_one - left_out, [&](std::uint64_t number) {
    auto i = static_cast<std::uint32_t>(number);
    if (i >= own) i += left_out;
    have_come &= link.take(slot_at(link.ranks(), call, 0) + i * sizeof(packet), 1, tag_of(call), i, deadline,
                           offsetof(window_header, broken));
  });
  return have_come;
}

/// Returns whether a rank announced what this one expects.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE bool has_same_shape(const announcements<Link>& announced,
                                                   const exchange_request& request, std::uint32_t rank) {
  return announced.word(rank, slot::shape) == shape_of(request);
}
/// Returns whether a rank would send more rows than it has.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE bool lacks_rows(const announcements<Link>& announced, std::uint32_t rank) {
  return (announced.word(rank, slot::flags) & slot_flag::bad_counts) != 0;
}
/// Returns whether a rank has too little room for what `ranks` send to it.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE bool lacks_room(const announcements<Link>& announced, std::uint32_t rank,
                                               std::uint32_t ranks) {
  std::uint64_t rows = 0;
  TMAP_KEEP_ROLLED
  for (std::uint32_t source = 0; source < ranks; ++source) rows += announced.total(source, rank);
  const bool has_said_so = (announced.word(rank, slot::flags) & slot_flag::lacks_room) != 0;
  return rows > announced.word(rank, slot::capacity) || has_said_so;
}

/// Judges what all ranks have announced. Nothing moves unless the verdict is ok. The group
/// `was_broken` when the call began, or not.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict judge(Link& link, const exchange_request& request, bool was_broken) {
  const announcements<Link> announced(link, request);
  peer_verdict other{}, lacking{}, full{};  // no loop ends early, so that its loads overlap
  TMAP_KEEP_ROLLED
  for (std::uint32_t rank = link.ranks(); rank-- > 0;) {
    constexpr protocol_step step = protocol_step::announcement;
    if (!has_same_shape(announced, request, rank)) other = {peer_status::mismatch, rank, step};
    if (lacks_rows(announced, rank)) lacking = {peer_status::bad_counts, rank, step};
    if (lacks_room(announced, rank, link.ranks())) full = {peer_status::overflow, rank, step};
  }
  if (other.status != peer_status::ok) return give_up(link, other);
  if (was_broken) return {peer_status::broken};
  return lacking.status != peer_status::ok ? lacking : full;
}

/// Returns whether all of this worker's share of the ranks announced what lets rows move.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE bool are_good(Link& link, const exchange_request& request, const worker& mine) {
  const announcements<Link> announced(link, request);
  bool good = true;
  share(mine, link.ranks(), [&](std::uint64_t i) {
    const auto rank = static_cast<std::uint32_t>(i);
    good &= has_same_shape(announced, request, rank) && !lacks_rows(announced, rank) &&
            !lacks_room(announced, rank, link.ranks());
  });
  return good;
}

/// Ends a call to which not all announcements came.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict give_up_slots(Link& link, std::uint32_t call) {
  return give_up_waiting(link, late_rank(link, call), protocol_step::announcement);
}

/// Writes this worker's share of how many rows came from each (rank, group).
template <class Link>
TMAP_HOST_DEVICE void write_out_splits(Link& link, const exchange_request& request, const worker& mine) {
  const announcements<Link> announced(link, request);
  share(mine, std::uint64_t{link.ranks()} * request.groups, [&](std::uint64_t i) {
    const std::uint32_t number = static_cast<std::uint32_t>(i);
    const std::uint32_t source = request.groups == 1 ? number : number / request.groups;
    link.store(link.rank(), word_at(request.out_splits, i), announced.count(source, number - source * request.groups));
  });
}

}  // namespace tmap::kernels::peer
