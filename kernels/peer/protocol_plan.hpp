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

/// Waits for the announcements of all ranks to call number `call`.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict await_announcements(Link& link, const exchange_request& request,
                                                                std::uint32_t call, std::uint64_t deadline) {
  const std::uint32_t ranks = link.ranks(), me = link.rank();
  // The block that announced itself has its own packets.
  const bool has_own = request.block == 0 && !request.is_announced;
  const bool have_come = take_slots(link, call, 0, has_own ? me : ranks, deadline) &&
                         (!has_own || take_slots(link, call, me + 1, ranks, deadline));
  if (!have_come) return give_up_waiting(link, late_rank(link, call), protocol_step::announcement);
  const announcements<Link> announced(link, request);
  TMAP_KEEP_ROLLED
  for (std::uint32_t source = 0; source < ranks; ++source) {
    if (announced.word(source, slot::shape) != shape_of(request)) {
      return give_up(link, {peer_status::mismatch, source, protocol_step::announcement});
    }
  }
  return {};
}

/// Judges counts and capacities of all ranks. Nothing moves unless the verdict is ok.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict judge(Link& link, const exchange_request& request) {
  const announcements<Link> announced(link, request);
  peer_verdict lacking{}, full{};  // no loop ends early, so that its loads overlap
  TMAP_KEEP_ROLLED
  for (std::uint32_t rank = link.ranks(); rank-- > 0;) {
    std::uint64_t rows = 0;
    TMAP_KEEP_ROLLED
    for (std::uint32_t source = 0; source < link.ranks(); ++source) rows += announced.total(source, rank);
    const std::uint32_t flags = announced.word(rank, slot::flags);
    const bool is_full = rows > announced.word(rank, slot::capacity) || (flags & slot_flag::lacks_room) != 0;
    if ((flags & slot_flag::bad_counts) != 0) lacking = {peer_status::bad_counts, rank, protocol_step::announcement};
    if (is_full) full = {peer_status::overflow, rank, protocol_step::announcement};
  }
  return lacking.status != peer_status::ok ? lacking : full;
}

/// Writes this worker's share of how many rows came from each (rank, group).
template <class Link>
TMAP_HOST_DEVICE void write_out_splits(Link& link, const exchange_request& request, const worker& mine) {
  const announcements<Link> announced(link, request);
  share(mine, std::uint64_t{link.ranks()} * request.groups, [&](std::uint64_t i) {
    const std::uint32_t number = static_cast<std::uint32_t>(i), source = number / request.groups;
    link.store(link.rank(), word_at(request.out_splits, i), announced.count(source, number - source * request.groups));
  });
}

}  // namespace tmap::kernels::peer
