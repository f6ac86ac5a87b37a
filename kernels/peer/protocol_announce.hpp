// SPDX-License-Identifier: Apache-2.0
#pragma once

// Announces what each rank will send: the first step of an exchange. Every rank writes a slot in
// the header of every rank. A slot names the rows for each rank and this rank's capacity, so that
// all ranks come to the same verdict without asking again.

#include <tmap/detail/peer_status.hpp>
#include <tmap/row_placement.hpp>

#include "kernels/peer/eager_area.hpp"
#include "kernels/peer/row_piece.hpp"
#include "kernels/peer/worker.hpp"

namespace tmap::kernels::peer {

/// Names what the ranks do once all have announced.
enum class call_kind : std::uint32_t { exchange, fetch };

/// Describes one rank's part of an exchange. Rows lie in the order of the ranks they are for, then
/// of their groups. Offsets are bytes of the own window, those of words multiples of 4. A word at
/// offset 0 is none. A pitch of 0 stands for rows without gaps.
struct exchange_request {
  std::uint64_t rows;        ///< what this rank sends
  std::uint64_t splits;      ///< how many rows for each (rank, group), as words
  std::uint64_t out;         ///< where the rows it receives go
  std::uint64_t out_splits;  ///< gets how many came from each (rank, group)
  std::uint32_t groups;      ///< of each rank
  std::uint32_t row_bytes;
  std::uint32_t sent_rows;  ///< that `rows` has
  std::uint32_t capacity;   ///< rows that `out` has
  row_placement placed;
  std::uint32_t staging_bytes;  ///< of shared memory, for each of the `stages`
  std::uint32_t stages;
  std::uint32_t block;  ///< of `blocks`, which share the work
  std::uint32_t blocks;
  call_kind kind{call_kind::exchange};
  std::uint32_t salt{0};        ///< differs where sizes differ that no other member shows
  std::uint32_t sent_pitch{0};  ///< bytes from one row of `rows` to the next; the others learn it
  std::uint32_t out_pitch{0};   ///< the same of `out`, for an exchange
  /// The word with the verdict of an earlier call that this one continues. If that is not ok, this
  /// call ends with it, and announces nothing. All ranks must have the same.
  std::uint64_t after{0};
  std::uint32_t after_shape{0};    ///< which that verdict must name
  std::uint64_t outcome{0};        ///< the word that gets this call's verdict, too
  std::uint32_t outcome_shape{0};  ///< which it then names
  std::uint64_t lacking{0};        ///< the word that is not 0 if this rank has too little room
  /// This call is announced while the one before runs (`send_early_slot`). The calls of other ranks
  /// need not be so. It has no groups and lacks no room.
  bool is_announced{false};
  /// Rows for a rank that `are_eager` come with the announcement. There is one group, and the bytes
  /// of a row are a multiple of 4.
  bool is_eager{false};
  /// Rows for a rank of so many bytes, or more, are pushed if bulk copies can move them and they
  /// leave no gaps there (`announcements::is_pushed`). 0: none are. It is the same on all ranks,
  /// and there is one group then.
  std::uint32_t pushed_bytes{0};
  bool pushes{false};  ///< this rank pushes such rows; otherwise others pull them
};

/// Returns the bytes from one row to the next, for the pitch of a request or a slot.
TMAP_HOST_DEVICE constexpr std::uint64_t row_step(std::uint32_t pitch, std::uint32_t row_bytes) {
  return pitch == 0 ? row_bytes : pitch;
}

/// Names the words of a slot, which come in packets. The header has the slots of all sources first,
/// for calls of even numbers, then for those of odd ones: a rank may announce a call while others
/// still read what it announced before. Then it has, for each source, how many rows of each of this
/// rank's groups come from there, unless there is one group or none.
namespace slot {
inline constexpr std::uint32_t shape = 0, capacity = 1, rows_low = 2, rows_high = 3, sent_rows = 4, sent_pitch = 5,
                               out_units = 6, totals = 7;
inline constexpr std::uint32_t flags = rows_high;  // above 16 bits of an offset
}  // namespace slot

/// Names the bits of `slot::flags`. The first ones are why no row may move anywhere.
namespace slot_flag {
inline constexpr std::uint32_t bad_counts = 1 << 16, lacks_room = 1 << 17, is_eager = 1 << 18, pushes = 1 << 19;
}  // namespace slot_flag

TMAP_HOST_DEVICE constexpr std::uint32_t slot_packets(std::uint32_t ranks) {
  return packets_of(slot::totals + ranks);
}
TMAP_HOST_DEVICE constexpr std::uint64_t slot_bytes(std::uint32_t ranks) {
  return slot_packets(ranks) * sizeof(packet);
}
/// So many calls have slots of their own.
inline constexpr std::uint32_t slot_turns = 2;

/// Returns the bytes of the counts of one source.
TMAP_HOST_DEVICE constexpr std::uint64_t count_bytes(std::uint32_t groups) {
  return groups > 1 ? groups * word_bytes : 0;
}

/// Returns whether the header has room for the announcements of an exchange.
TMAP_HOST_DEVICE constexpr bool fits_header(std::uint32_t ranks, std::uint32_t groups) {
  return ranks <= max_group_ranks &&
         ranks * (slot_turns * slot_bytes(ranks) + count_bytes(groups)) <= sizeof(window_header::announcements);
}

/// Returns the most groups of each rank whose announcements fit the header.
TMAP_HOST_DEVICE constexpr std::uint32_t most_groups(std::uint32_t ranks) {
  const std::uint64_t room = sizeof(window_header::announcements) / ranks / sizeof(packet) * sizeof(packet);
  return static_cast<std::uint32_t>((room - slot_turns * slot_bytes(ranks)) / word_bytes);
}
static_assert(fits_header(2, most_groups(2)) && !fits_header(2, most_groups(2) + 1));
static_assert(fits_header(max_group_ranks, most_groups(max_group_ranks)));

/// Returns the offset of the slot of `source` for a call.
TMAP_HOST_DEVICE constexpr std::uint64_t slot_at(std::uint32_t ranks, std::uint32_t call, std::uint32_t source) {
  return offsetof(window_header, announcements) + (call % slot_turns * ranks + source) * slot_bytes(ranks);
}
/// Returns which packet a block takes first of the slot of `source`.
TMAP_HOST_DEVICE constexpr std::uint32_t taken_slot(std::uint32_t ranks, std::uint32_t source) {
  return source * slot_packets(ranks);
}
/// The slots of all ranks, and one that is only sent.
inline constexpr std::uint32_t most_taken_packets = (max_group_ranks + 1) * slot_packets(max_group_ranks);

/// Returns the offset of the counts of `source`. There are several groups.
TMAP_HOST_DEVICE constexpr std::uint64_t counts_at(std::uint32_t ranks, std::uint32_t groups, std::uint32_t source) {
  return slot_at(ranks, 0, 0) + slot_turns * ranks * slot_bytes(ranks) + source * count_bytes(groups);
}

/// Returns where rows come that others push, in units of 16 bytes. 0: nobody pushes.
TMAP_HOST_DEVICE constexpr std::uint32_t pushed_units(const exchange_request& request) {
  const bool is_packed = request.out_pitch == 0 || request.out_pitch == request.row_bytes;
  const bool is_aligned = (request.out | request.row_bytes) % bulk_unit == 0;
  const std::uint64_t units = request.out / bulk_unit;
  const bool is_pushed = request.pushed_bytes != 0 && is_packed && is_aligned && units <= ~std::uint32_t{0};
  return is_pushed ? static_cast<std::uint32_t>(units) : 0;
}

/// Returns whether others may push rows to where this rank has written before.
TMAP_HOST_DEVICE constexpr bool may_be_pushed(const exchange_request& request) {
  return pushed_units(request) != 0 && std::uint64_t{request.capacity} * request.row_bytes >= request.pushed_bytes;
}

/// Returns a number in which calls differ that do not belong together.
TMAP_HOST_DEVICE constexpr std::uint32_t shape_of(const exchange_request& request) {
  const std::uint32_t sizes = (request.groups * 0x9E3779B1u ^ request.row_bytes) * 0x85EBCA77u;
  return (sizes + request.salt + request.pushed_bytes) * 0xC2B2AE3Du + static_cast<std::uint32_t>(request.kind);
}

/// Waits until a rank has pulled what this rank sent in `past` exchanges. Returns false at the
/// deadline, or once the group is broken.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE bool await_credit(Link& link, std::uint32_t peer, std::uint32_t past,
                                                 std::uint64_t deadline) {
  return await(link, word_at(offsetof(window_header, credited), peer), past, deadline);
}

/// Does the same for this worker's share of the other ranks.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE bool have_credits(Link& link, std::uint32_t past, std::uint64_t deadline,
                                                 const worker& mine) {
  bool have = true;
  share(mine, link.ranks() - 1, [&](std::uint64_t i) {
    have &= await_credit(link, rank_in_turn(link, static_cast<std::uint32_t>(i)), past, deadline);
  });
  return have;
}

/// Looks at the credit of a worker's share early, so that the look waits together with other loads.
/// It learns nothing else: who sends packets needs no more.
template <class Link>
class early_credit {
 public:
  TMAP_HOST_DEVICE early_credit(Link& link, const worker& mine)
      : others_(link.ranks() - 1), mine_(mine), seen_(looks() ? look(link) : 0) {}
  /// Returns whether the share has given its credits for `past` exchanges. It knows of one rank.
  [[nodiscard]] TMAP_HOST_DEVICE bool has_come(std::uint32_t past) const {
    return mine_.number >= others_ || (looks() && detail::peer::has_come(seen_, past));
  }

 private:
  [[nodiscard]] TMAP_HOST_DEVICE bool looks() const { return mine_.number < others_ && mine_.count >= others_; }
  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t look(Link& link) const {
    const std::uint32_t peer = rank_in_turn(link, static_cast<std::uint32_t>(mine_.number));
    return link.look(word_at(offsetof(window_header, credited), peer));
  }

  std::uint32_t others_;
  worker mine_;
  std::uint32_t seen_;
};

/// Ends a call that has not got the credits of all ranks for `past` exchanges. If they have come
/// since, it names the last rank.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict give_up_credits(Link& link, std::uint32_t past) {
  std::uint32_t i = 0;
  TMAP_KEEP_ROLLED
  while (i + 2 < link.ranks() && await_credit(link, rank_in_turn(link, i), past, 0)) ++i;
  return give_up_waiting(link, rank_in_turn(link, i), protocol_step::credit);
}

/// Waits until all ranks have pulled what this rank sent in `past` exchanges.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict await_credits_of(Link& link, std::uint32_t past, std::uint64_t deadline) {
  if (have_credits(link, past, deadline, {0, 1})) return {};
  return give_up_credits(link, past);
}

/// Does the same for all earlier exchanges. This rank's rows may be overwritten only if the
/// verdict is ok: in a broken group, slower ranks may still be pulling them.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict await_credits(Link& link, std::uint64_t deadline) {
  const bool is_over = is_broken(link);
  const std::uint32_t past = link.load(link.rank(), offsetof(window_header, exchanges));
  return is_over ? peer_verdict{peer_status::broken} : await_credits_of(link, past, deadline);
}

/// Lets this worker's share of the packets of a slot carry what this rank wrote before. They must
/// if others pull it.
template <class Link>
TMAP_HOST_DEVICE void release_slot(Link& link, const worker& mine) {
  if (mine.number < slot_packets(link.ranks())) link.release();
}

/// Sends this worker's share of the packets of the slot that the block has as number `number`, the
/// same to all ranks. They need no signal.
template <class Link>
TMAP_HOST_DEVICE void send_slot(Link& link, std::uint32_t number, std::uint32_t call, const worker& mine) {
  const std::uint64_t own = slot_at(link.ranks(), call, link.rank());
  share(mine, slot_packets(link.ranks()), [&](std::uint64_t i) {
    const std::uint32_t at =
        (taken_slot(link.ranks(), number) + static_cast<std::uint32_t>(i)) * static_cast<std::uint32_t>(sizeof(packet));
    constexpr auto word = static_cast<std::uint32_t>(word_bytes);
    const packet next{{link.taken(at), link.taken(at + word), link.taken(at + 2 * word)}, tag_of(call)};
    TMAP_KEEP_ROLLED
    for (std::uint32_t rank = 0; rank < link.ranks(); ++rank) {
      link.send(rank_in_turn(link, rank), own + i * sizeof(packet), next);
    }
  });
}

/// Returns how many rows of a group this rank sends to another, as the window has it.
struct rows_in_window {
  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t operator()(Link& link, const exchange_request& request,
                                                          std::uint32_t rank, std::uint32_t group) const {
    return link.load(link.rank(), word_at(request.splits, std::uint64_t{rank} * request.groups + group));
  }
};

/// Makes this rank's slots. All values are in registers or in the block's memory before the first
/// one is sent: a load after a store to another rank would wait for its value each time.
template <class Link, class RowsFor = rows_in_window>
class slot_maker {
 public:
  /// `totals` has room for those of all ranks.
  TMAP_HOST_DEVICE slot_maker(Link& link, const exchange_request& request, std::uint32_t* totals,
                              const RowsFor& rows_for = {})
      : link_(link), request_(request), totals_(totals), rows_for_(rows_for) {
    std::uint64_t all = 0;
    TMAP_KEEP_ROLLED
    for (std::uint32_t rank = 0; rank < link.ranks(); ++rank) {
      std::uint64_t total = 0;
      TMAP_KEEP_ROLLED
      for (std::uint32_t group = 0; group < request.groups; ++group) total += rows(rank, group);
      totals_[rank] = static_cast<std::uint32_t>(total);
      all += total;
    }
    flags_ = all > request.sent_rows ? slot_flag::bad_counts : request.is_eager ? slot_flag::is_eager : 0;
    if (request.lacking != 0 && link.load(link.rank(), request.lacking) != 0) flags_ |= slot_flag::lacks_room;
    if (request.pushes) flags_ |= slot_flag::pushes;
  }

  /// Stores the counts of the groups of all ranks, where there are several. All ranks pull then.
  TMAP_HOST_DEVICE void store_counts() {
    if (request_.groups < 2) return;
    const std::uint64_t own = counts_at(link_.ranks(), request_.groups, link_.rank());
    TMAP_KEEP_ROLLED
    for (std::uint32_t i = 0; i < link_.ranks(); ++i) {
      const std::uint32_t to = rank_in_turn(link_, i);
      TMAP_KEEP_ROLLED
      for (std::uint32_t group = 0; group < request_.groups; ++group) {
        link_.store(to, word_at(own, group), rows(to, group));
      }
    }
  }
  /// Writes the slot to where the block has that of rank `number`: its own, or `ranks` if the block
  /// does not need it.
  TMAP_HOST_DEVICE void write(std::uint32_t number) {
    first_ = taken_slot(link_.ranks(), number) * static_cast<std::uint32_t>(sizeof(packet));
    keep(slot::shape, shape_of(request_));
    keep(slot::capacity, request_.capacity);
    keep(slot::rows_low, static_cast<std::uint32_t>(request_.rows));
    keep(slot::rows_high, static_cast<std::uint32_t>(request_.rows >> 32) | flags_);
    keep(slot::sent_rows, request_.sent_rows);
    keep(slot::sent_pitch, request_.sent_pitch);
    keep(slot::out_units, pushed_units(request_));
    TMAP_KEEP_ROLLED
    for (std::uint32_t i = slot::totals; i < packet_words * slot_packets(link_.ranks()); ++i) {
      keep(i, i - slot::totals < link_.ranks() ? totals_[i - slot::totals] : 0);
    }
  }
  /// Returns whether this rank would send more rows than it has. If not, `totals` have all of them.
  TMAP_HOST_DEVICE bool has_bad_counts() const { return (flags_ & slot_flag::bad_counts) != 0; }
  /// Returns whether rows that `are_eager` come with the slots.
  TMAP_HOST_DEVICE bool is_eager() const { return (flags_ & slot_flag::is_eager) != 0; }
  /// Returns whether some rank pulls rows, which the slots must then carry.
  TMAP_HOST_DEVICE bool is_pulled() const {
    bool pulled = !is_eager();
    TMAP_KEEP_ROLLED
    for (std::uint32_t rank = 0; rank < link_.ranks(); ++rank) {
      pulled |= !are_eager(link_.ranks(), totals_[rank], request_.row_bytes);
    }
    return pulled;
  }

 private:
  TMAP_HOST_DEVICE std::uint32_t rows(std::uint32_t rank, std::uint32_t group) const {
    return rows_for_(link_, request_, rank, group);
  }
  TMAP_HOST_DEVICE void keep(std::uint32_t number, std::uint32_t word) {
    link_.keep(static_cast<std::uint32_t>(packet_word_at(first_, number)), word);
  }

  Link& link_;
  const exchange_request& request_;
  std::uint32_t flags_;
  std::uint32_t* totals_;
  RowsFor rows_for_;
  std::uint32_t first_{0};  ///< byte of the slot that was written
};

/// Sends a slot to every rank.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict announce(Link& link, const exchange_request& request, std::uint32_t call,
                                                     std::uint64_t deadline) {
  const bool is_over = is_broken(link);  // loads that follow do not wait for it
  std::uint32_t totals[max_group_ranks];
  slot_maker<Link> slots(link, request, totals);
  if (is_over) return {peer_status::broken};
  const peer_verdict free = await_credits_of(link, call - 1, deadline);
  if (free.status != peer_status::ok) return free;
  const bool is_pulled = slots.is_pulled();
  slots.store_counts();
  slots.write(link.rank());
  if (is_pulled) link.release();
  send_slot(link, link.rank(), call, {0, 1});
  return {};
}

/// Makes the slot of a call that this rank announces while the one before runs, if it
/// `is_announced`.
template <class Link>
TMAP_HOST_DEVICE void make_early_slot(Link& link, const exchange_request& next) {
  if (!next.is_announced) return;
  std::uint32_t totals[max_group_ranks];
  slot_maker<Link> slots(link, next, totals);
  slots.write(link.ranks());
}

/// Sends this worker's share of that slot for call number `call`, after `release_slot`. The call
/// before has been judged. Others may still read their slots of it, but not those of the call
/// before it, whose credits this rank has.
template <class Link>
TMAP_HOST_DEVICE void send_early_slot(Link& link, const exchange_request& next, std::uint32_t call,
                                      const worker& mine) {
  if (next.is_announced) send_slot(link, link.ranks(), call, mine);
}

}  // namespace tmap::kernels::peer
