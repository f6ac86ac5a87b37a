// SPDX-License-Identifier: Apache-2.0
#pragma once

// Prepares an exchange where ranks do not reach each other's windows. Each rank packs a *parcel* of
// equal size for every rank: the slot of its announcement, then the rows. A collective call of
// another library carries the parcels. Each rank delivers to its own window what its peers would
// have written there. Then the exchange runs as always, with an *image* in this rank's memory for
// the window of each peer: it pulls from parcels that came, and nobody reads what it writes there.

#include "kernels/peer/protocol_move.hpp"

namespace tmap::kernels::peer {

/// Names where parcels and the image lie, as offsets of the own window. They are multiples of 16
/// and the same on all ranks, as is `pair_bytes`.
struct parcel_layout {
  std::uint64_t image;       ///< a window with a header, whose bytes are the parcels that came
  std::uint64_t inbox;       ///< a parcel from each rank, in the image
  std::uint64_t outbox;      ///< a parcel for each rank
  std::uint64_t lacking;     ///< a word that is not 0 if this rank would get too many rows of one rank
  std::uint64_t pair_bytes;  ///< the most bytes of rows from one rank to another
  std::uint32_t slot_bytes;  ///< the room of a slot in a parcel, for any number of groups

  TMAP_HOST_DEVICE constexpr std::uint64_t parcel_bytes() const {
    return slot_bytes + (pair_bytes + bulk_unit - 1) / bulk_unit * bulk_unit;
  }
  TMAP_HOST_DEVICE constexpr std::uint64_t parcel_from(std::uint32_t rank) const {
    return inbox + rank * parcel_bytes();
  }
  TMAP_HOST_DEVICE constexpr std::uint64_t parcel_for(std::uint32_t rank) const {
    return outbox + rank * parcel_bytes();
  }
  /// Returns whether a parcel has room for so many rows.
  TMAP_HOST_DEVICE constexpr bool has_room(std::uint32_t rows, std::uint32_t row_bytes) const {
    return std::uint64_t{rows} * row_bytes <= pair_bytes;
  }
};

/// Lays out the memory that follows the user's bytes of a window.
constexpr parcel_layout layout_of(std::uint32_t ranks, std::uint64_t user_bytes, std::uint64_t pair_bytes) {
  constexpr std::uint64_t unit = 256;
  const std::uint64_t lacking = (peer_header_bytes + user_bytes + unit - 1) / unit * unit;
  parcel_layout made{};
  made.lacking = lacking;
  made.image = lacking + unit;
  made.inbox = made.image + peer_header_bytes;
  made.pair_bytes = pair_bytes;
  made.slot_bytes = static_cast<std::uint32_t>(sizeof(window_header::announcements) / ranks / bulk_unit * bulk_unit);
  made.outbox = made.parcel_from(ranks);
  return made;
}

/// Returns where the last parcel ends.
constexpr std::uint64_t end_of(const parcel_layout& at, std::uint32_t ranks) {
  return at.parcel_for(ranks);
}

/// Returns where the counts of groups lie in a parcel, after the slot.
TMAP_HOST_DEVICE constexpr std::uint64_t parcel_counts(std::uint32_t ranks) {
  return slot_bytes(ranks);
}

/// The link of a rank that announces by parcels: the parts of a slot go to the parcel for its rank.
template <class Link>
class parcel_link {
 public:
  TMAP_HOST_DEVICE parcel_link(Link& link, const exchange_request& request, const parcel_layout& at, std::uint32_t call)
      : link_(link),
        at_(at),
        own_slot_(slot_at(link.ranks(), call, link.rank())),
        own_counts_(counts_at(link.ranks(), request.groups, link.rank())) {}

  TMAP_HOST_DEVICE std::uint32_t rank() const { return link_.rank(); }
  TMAP_HOST_DEVICE std::uint32_t ranks() const { return link_.ranks(); }
  TMAP_HOST_DEVICE std::uint32_t load(std::uint32_t rank, std::uint64_t offset) { return link_.load(rank, offset); }
  TMAP_HOST_DEVICE void store(std::uint32_t to, std::uint64_t count, std::uint32_t value) {
    link_.store(rank(), at_.parcel_for(to) + parcel_counts(ranks()) + (count - own_counts_), value);
  }
  TMAP_HOST_DEVICE void keep(std::uint32_t offset, std::uint32_t value) { link_.keep(offset, value); }
  TMAP_HOST_DEVICE std::uint32_t taken(std::uint32_t offset) { return link_.taken(offset); }
  TMAP_HOST_DEVICE void release() { link_.release(); }
  TMAP_HOST_DEVICE void send(std::uint32_t to, std::uint64_t slot, const packet& given) {
    link_.send(rank(), at_.parcel_for(to) + (slot - own_slot_), given);
  }

 private:
  Link& link_;
  const parcel_layout& at_;
  std::uint64_t own_slot_;
  std::uint64_t own_counts_;
};

/// Packs the parcels of an exchange, in every block. The first block alone announces. Rows that a
/// parcel has no room for stay out: the verdict will refuse them. So do those of this rank for
/// itself, which the exchange finds where they are.
template <class Link>
TMAP_HOST_DEVICE void pack_parcels(Link& link, const exchange_request& request, const parcel_layout& at) {
  const std::uint32_t me = link.rank();
  const std::uint32_t call = link.load(me, offsetof(window_header, exchanges)) + 1;
  parcel_link<Link> parcels(link, request, at, call);
  std::uint32_t totals[max_group_ranks];
  slot_maker<parcel_link<Link>> slots(parcels, request, totals);
  if (request.block == 0) {
    slots.store_counts();
    slots.write(me);
    send_slot(parcels, me, call, {0, 1});  // the exchange announces again
  }
  if (slots.has_bad_counts()) return;
  row_piece pieces[most_stages];
  rows_mover<Link> mover(link, request, pieces);
  const std::uint64_t step = row_step(request.sent_pitch, request.row_bytes);
  std::uint64_t from = request.rows;
  TMAP_KEEP_ROLLED
  for (std::uint32_t to = 0; to < link.ranks(); ++to) {
    const std::uint32_t rows = totals[to];
    if (to != me && at.has_room(rows, request.row_bytes)) {
      mover.move_rows(me,
                      {from, at.parcel_for(to) + at.slot_bytes, step, request.row_bytes, rows, request.row_bytes, me});
    }
    from += rows * step;
  }
  mover.finish();
}

/// Reads the slots of parcels that came, and finds what each peer would have written instead.
template <class Link>
class arrived_parcels {
 public:
  TMAP_HOST_DEVICE arrived_parcels(Link& link, const exchange_request& request, const parcel_layout& at)
      : link_(link), request_(request), at_(at) {}

  /// Returns whether some rank sends more rows to `rank` than a parcel has room for.
  TMAP_HOST_DEVICE bool is_too_much_for(std::uint32_t rank) {
    bool is_too_much = false;
    TMAP_KEEP_ROLLED
    for (std::uint32_t from = 0; from < link_.ranks(); ++from) {
      is_too_much |= from != rank && !at_.has_room(word(from, slot::totals + rank), request_.row_bytes);
    }
    return is_too_much;
  }
  /// Returns packet `i` of the slot of `source`, whose rows lie in the image now.
  TMAP_HOST_DEVICE packet delivered_packet(std::uint32_t source, std::uint32_t i) {
    const std::uint64_t tag_at = at_.parcel_from(source) + i * sizeof(packet) + offsetof(packet, tag);
    packet made{{}, link_.load(link_.rank(), tag_at)};
    TMAP_KEEP_ROLLED
    for (std::uint32_t n = 0; n < packet_words; ++n) {
      const std::uint32_t number = i * packet_words + n;
      made.words[n] = number < slot::totals + link_.ranks() ? delivered(source, number) : 0;
    }
    return made;
  }
  /// Returns how many rows of `group` come from `source`.
  TMAP_HOST_DEVICE std::uint32_t count(std::uint32_t source, std::uint32_t group) {
    return link_.load(link_.rank(), word_at(at_.parcel_from(source) + parcel_counts(link_.ranks()), group));
  }

 private:
  TMAP_HOST_DEVICE std::uint32_t delivered(std::uint32_t source, std::uint32_t number) {
    switch (number) {
      case slot::rows_low: return static_cast<std::uint32_t>(rows_of(source));
      case slot::rows_high: {
        constexpr std::uint32_t announced = slot_flag::bad_counts | slot_flag::is_eager;
        return (static_cast<std::uint32_t>(rows_of(source) >> 32) & 0xffff) | (word(source, slot::flags) & announced) |
               (is_too_much_for(source) ? slot_flag::lacks_room : 0);
      }
      case slot::sent_pitch: return 0;
      default: return word(source, number);
    }
  }
  TMAP_HOST_DEVICE std::uint32_t word(std::uint32_t source, std::uint32_t number) {
    return link_.load(link_.rank(), packet_word_at(at_.parcel_from(source), number));
  }
  /// Returns where the rows of `source` for all ranks would begin in the image. Only those for this
  /// rank have come. The difference may wrap around, and the reader's sum wraps back.
  TMAP_HOST_DEVICE std::uint64_t rows_of(std::uint32_t source) {
    std::uint64_t before = 0;
    TMAP_KEEP_ROLLED
    for (std::uint32_t rank = 0; rank < link_.rank(); ++rank) before += word(source, slot::totals + rank);
    return at_.parcel_from(source) + at_.slot_bytes - at_.image - before * request_.row_bytes;
  }

  Link& link_;
  const exchange_request& request_;
  const parcel_layout& at_;
};

/// Delivers the announcements of parcels that came, as one of so many threads. Peers give their
/// credit, too: what they need of this rank was packed.
template <class Link>
TMAP_HOST_DEVICE void deliver_parcels(Link& link, const exchange_request& request, const parcel_layout& at,
                                      std::uint32_t thread, std::uint32_t threads) {
  const std::uint32_t me = link.rank(), ranks = link.ranks(), packets = slot_packets(ranks);
  const std::uint32_t counts = request.groups > 1 ? request.groups : 0;
  const std::uint32_t call = link.load(me, offsetof(window_header, exchanges)) + 1;
  arrived_parcels<Link> arrived(link, request, at);
  TMAP_KEEP_ROLLED
  for (std::uint32_t i = thread; i < packets * ranks; i += threads) {
    const std::uint32_t source = i / packets;
    if (source == me) continue;  // the exchange announces its own rows, where they are
    link.send(me, slot_at(ranks, call, source) + i % packets * sizeof(packet),
              arrived.delivered_packet(source, i % packets));
  }
  TMAP_KEEP_ROLLED
  for (std::uint32_t i = thread; i < counts * ranks; i += threads) {
    const std::uint32_t source = i / counts, group = i % counts;
    link.store(me, word_at(counts_at(ranks, counts, source), group), arrived.count(source, group));
  }
  TMAP_KEEP_ROLLED
  for (std::uint32_t source = thread; source < ranks; source += threads) {
    if (source == me) {
      link.store(me, at.lacking, arrived.is_too_much_for(me) ? 1 : 0);
    } else {
      link.store(me, word_at(offsetof(window_header, credited), source), call);
    }
  }
}

}  // namespace tmap::kernels::peer
