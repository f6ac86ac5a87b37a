// SPDX-License-Identifier: Apache-2.0
#pragma once

// Announces what each rank will send: the first step of an exchange. Every rank writes a slot in
// the header of every rank. A slot names the rows for each rank and this rank's capacity, so that
// all ranks come to the same verdict without asking again.

#include <tmap/detail/peer_status.hpp>
#include <tmap/row_placement.hpp>

namespace tmap::kernels::peer {

using namespace tmap::detail::peer;  // what all protocols have in common

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
  std::uint64_t outcome{0};  ///< the word that gets this call's verdict, too
  std::uint64_t lacking{0};  ///< the word that is not 0 if this rank has too little room
};

/// Returns the bytes from one row to the next, for the pitch of a request or a slot.
TMAP_HOST_DEVICE constexpr std::uint64_t row_step(std::uint32_t pitch, std::uint32_t row_bytes) {
  return pitch == 0 ? row_bytes : pitch;
}

/// Names the words of a slot. Counts of the receiver's groups follow the totals of all ranks.
namespace slot {
inline constexpr std::uint32_t call = 0, shape = 1, capacity = 2, has_bad_counts = 3, rows_low = 4, rows_high = 5,
                               sent_rows = 6, sent_pitch = 7, lacks_room = 8, totals = 9;
}  // namespace slot

TMAP_HOST_DEVICE constexpr std::uint64_t slot_words(std::uint32_t ranks, std::uint32_t groups) {
  return (slot::totals + std::uint64_t{ranks} + groups + 3) / 4 * 4;
}

/// Returns whether the header has room for the announcements of an exchange.
TMAP_HOST_DEVICE constexpr bool fits_header(std::uint32_t ranks, std::uint32_t groups) {
  return ranks <= max_group_ranks &&
         ranks * slot_words(ranks, groups) <= sizeof(window_header::announcements) / word_bytes;
}

/// Returns the most groups of each rank whose announcements fit the header.
TMAP_HOST_DEVICE constexpr std::uint32_t most_groups(std::uint32_t ranks) {
  const std::uint64_t words = sizeof(window_header::announcements) / word_bytes / ranks / 4 * 4;
  return static_cast<std::uint32_t>(words - slot::totals - ranks);
}
static_assert(fits_header(2, most_groups(2)) && !fits_header(2, most_groups(2) + 1));
static_assert(fits_header(max_group_ranks, most_groups(max_group_ranks)));

/// Returns the offset of a word of the slot of `source`.
template <class Link>
TMAP_HOST_DEVICE std::uint64_t slot_word(const Link& link, const exchange_request& request, std::uint32_t source,
                                         std::uint32_t word) {
  const std::uint64_t before = source * slot_words(link.ranks(), request.groups);
  return word_at(offsetof(window_header, announcements), before + word);
}

/// Returns a number in which calls differ that do not belong together.
TMAP_HOST_DEVICE constexpr std::uint32_t shape_of(const exchange_request& request) {
  const std::uint32_t sizes = (request.groups * 0x9E3779B1u ^ request.row_bytes) * 0x85EBCA77u;
  return (sizes + request.salt) * 0xC2B2AE3Du + static_cast<std::uint32_t>(request.kind);
}

/// Waits until all ranks have pulled what this rank sent in `past` exchanges.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict await_credits_of(Link& link, std::uint32_t past, std::uint64_t deadline) {
  TMAP_KEEP_ROLLED
  for (std::uint32_t i = 0; i + 1 < link.ranks(); ++i) {
    const std::uint32_t peer = rank_in_turn(link, i);
    if (!await(link, word_at(offsetof(window_header, credited), peer), past, deadline)) {
      return give_up_waiting(link, peer, protocol_step::credit);
    }
  }
  return {};
}

/// Does the same for all earlier exchanges. This rank's rows may be overwritten only if the verdict
/// is ok: in a broken group, slower ranks may still be pulling them.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict await_credits(Link& link, std::uint64_t deadline) {
  const bool is_over = is_broken(link);
  const std::uint32_t past = link.load(link.rank(), offsetof(window_header, exchanges));
  return is_over ? peer_verdict{peer_status::broken} : await_credits_of(link, past, deadline);
}

/// Writes this rank's slots. All values are in registers or in memory of this thread before the
/// first one is written: a load after a store to another rank would wait for its value each time.
template <class Link>
class slot_writer {
 public:
  /// `totals` has room for those of all ranks.
  TMAP_HOST_DEVICE slot_writer(Link& link, const exchange_request& request, std::uint32_t call, std::uint32_t* totals)
      : link_(link), request_(request), call_(call), totals_(totals) {
    std::uint64_t all = 0;
    TMAP_KEEP_ROLLED
    for (std::uint32_t rank = 0; rank < link.ranks(); ++rank) {
      std::uint64_t total = 0;
      TMAP_KEEP_ROLLED
      for (std::uint32_t group = 0; group < request.groups; ++group) total += rows(rank, group);
      totals_[rank] = static_cast<std::uint32_t>(total);
      all += total;
    }
    has_bad_counts_ = all > request.sent_rows ? 1 : 0;
    lacks_room_ = request.lacking == 0 ? 0 : link.load(link.rank(), request.lacking);
  }

  /// Writes the slot of this rank into the window of `to`.
  TMAP_HOST_DEVICE void write(std::uint32_t to) {
    store(to, slot::call, call_);
    store(to, slot::shape, shape_of(request_));
    store(to, slot::capacity, request_.capacity);
    store(to, slot::has_bad_counts, has_bad_counts_);
    store(to, slot::rows_low, static_cast<std::uint32_t>(request_.rows));
    store(to, slot::rows_high, static_cast<std::uint32_t>(request_.rows >> 32));
    store(to, slot::sent_rows, request_.sent_rows);
    store(to, slot::sent_pitch, request_.sent_pitch);
    store(to, slot::lacks_room, lacks_room_);
    TMAP_KEEP_ROLLED
    for (std::uint32_t rank = 0; rank < link_.ranks(); ++rank) store(to, slot::totals + rank, totals_[rank]);
    const std::uint32_t counts = slot::totals + link_.ranks();
    if (request_.groups == 1) return store(to, counts, totals_[to]);
    TMAP_KEEP_ROLLED
    for (std::uint32_t group = 0; group < request_.groups; ++group) store(to, counts + group, rows(to, group));
  }

  /// Returns whether this rank would send more rows than it has. If not, `totals` have all of them.
  TMAP_HOST_DEVICE bool has_bad_counts() const { return has_bad_counts_ != 0; }

 private:
  TMAP_HOST_DEVICE std::uint32_t rows(std::uint32_t rank, std::uint32_t group) {
    return link_.load(link_.rank(), word_at(request_.splits, std::uint64_t{rank} * request_.groups + group));
  }
  TMAP_HOST_DEVICE void store(std::uint32_t to, std::uint32_t word, std::uint32_t value) {
    link_.store(to, slot_word(link_, request_, link_.rank(), word), value);
  }

  Link& link_;
  const exchange_request& request_;
  std::uint32_t call_;
  std::uint32_t has_bad_counts_;
  std::uint32_t lacks_room_;
  std::uint32_t* totals_;
};

/// Writes a slot into every rank and raises its signal there.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict announce(Link& link, const exchange_request& request, std::uint32_t call,
                                                     std::uint64_t deadline) {
  const bool is_over = is_broken(link);  // loads that follow do not wait for it
  std::uint32_t totals[max_group_ranks];
  slot_writer<Link> slots(link, request, call, totals);
  if (is_over) return {peer_status::broken};
  if (const peer_verdict free = await_credits_of(link, call - 1, deadline); free.status != peer_status::ok) return free;
  TMAP_KEEP_ROLLED
  for (std::uint32_t i = 0; i < link.ranks(); ++i) slots.write(rank_in_turn(link, i));
  link.release();
  TMAP_KEEP_ROLLED
  for (std::uint32_t i = 0; i < link.ranks(); ++i) {
    link.raise_released(rank_in_turn(link, i), word_at(offsetof(window_header, announced), link.rank()), 1);
  }
  return {};
}

}  // namespace tmap::kernels::peer
