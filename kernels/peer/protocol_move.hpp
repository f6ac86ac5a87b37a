// SPDX-License-Identifier: Apache-2.0
#pragma once

// Moves the rows that were announced: pulls them from their ranks, or pushes them. The blocks of a
// rank deal the pieces among them.

#include "kernels/peer/protocol_plan.hpp"

namespace tmap::kernels::peer {

inline constexpr std::uint32_t most_stages = 8;

/// The sets of gets that a pull uses.
inline constexpr std::uint32_t pull_sets = 2;

/// Moves pieces from one window to another through shared memory. While one half of the stages is
/// stored, the other half is being filled. A single stage takes turns. The pieces lie outside: an
/// object with an array is memory, and all that it refers to, too.
template <class Link>
class piece_mover {
 public:
  TMAP_HOST_DEVICE piece_mover(Link& link, std::uint32_t staging_bytes, std::uint32_t stages, row_piece* pieces)
      : link_(link),
        pieces_(pieces),
        staging_bytes_(staging_bytes),
        sets_(stages < pull_sets ? 1 : pull_sets),
        half_(sets_ == 1 ? stages : stages / pull_sets) {}

  TMAP_HOST_DEVICE void move(std::uint32_t source, const row_piece& piece) {
    const std::uint32_t stage = set_ * half_ + filled_++;
    TMAP_KEEP_ROLLED
    for (std::uint32_t row = 0; row < piece.rows; ++row) {
      const std::uint32_t skew = piece.skew_of(row);
      link_.get(stage * staging_bytes_ + row * piece.room(), source, piece.source_of(row) - skew,
                bulk_bytes(skew + piece.bytes), set_);
    }
    pieces_[stage] = piece;
    if (filled_ == half_) turn();
  }

  /// Returns when all pieces are in their windows. Sources are free. Later kernels of this rank
  /// find those in its own, and what the thread raises carries those in others.
  TMAP_HOST_DEVICE void finish() {
    TMAP_KEEP_ROLLED
    for (std::uint32_t set = 0; set < sets_; ++set) turn();
    if (has_pushed_) {
      link_.quiet();
    } else {
      link_.settle();
    }
  }

 private:
  /// Stores the set that was filled before this one, and fills it again.
  TMAP_HOST_DEVICE void turn() {
    const std::uint32_t stored = sets_ == 1 ? filled_ : others_;
    set_ = sets_ - 1 - set_;
    others_ = filled_;
    filled_ = 0;
    if (stored == 0) return;
    link_.wait_gets(set_);
    TMAP_KEEP_ROLLED
    for (std::uint32_t stage = set_ * half_; stage < set_ * half_ + stored; ++stage) store_piece(stage);
    link_.flush();  // the next pieces take the same memory
  }

  TMAP_HOST_DEVICE void store_piece(std::uint32_t stage) {
    const row_piece piece = pieces_[stage];
    const std::uint32_t shared = stage * staging_bytes_;
    if (!piece.is_aligned()) return link_.store_rows(piece, shared);
    TMAP_KEEP_ROLLED
    for (std::uint32_t row = 0; row < piece.rows; ++row) {
      link_.put(piece.target, piece.target_of(row), shared + row * piece.bytes, piece.bytes);
    }
    has_pushed_ |= piece.target != link_.rank();
  }

  Link& link_;
  row_piece* pieces_;
  std::uint32_t staging_bytes_;
  std::uint32_t sets_;
  std::uint32_t half_;  ///< stages of a set
  std::uint32_t set_{0};
  std::uint32_t filled_{0};  ///< stages of this set
  std::uint32_t others_{0};  ///< and of the other one
  bool has_pushed_{false};
};

/// Moves this block's share of the rows that this rank pulls and pushes. If it pushes some, a
/// counter deals the pieces: some multiprocessors have a slower way to other GPUs, and with even
/// shares all would wait for them. It is 0 before, and the first block clears it once all blocks
/// have moved theirs. Pulls alone are shared evenly: that takes no longer.
template <class Link>
class rows_mover {
 public:
  /// `pieces` has room for those of `most_stages`.
  TMAP_HOST_DEVICE rows_mover(Link& link, const exchange_request& request, row_piece* pieces)
      : link_(link),
        request_(request),
        announced_(link, request),
        mover_(link, request.staging_bytes, request.stages, pieces),
        is_dealt_(request.pushes && announced_.are_pushed()),
        dealt_(request.block),
        next_(deal(dealt_)) {}

  TMAP_HOST_DEVICE void run() {
    const std::uint32_t me = link_.rank();
    TMAP_KEEP_ROLLED
    for (std::uint32_t i = 0; i < 2 * link_.ranks(); ++i) {
      const std::uint32_t rank = rank_in_turn(link_, i / 2);
      const bool is_push = i % 2 == 0;
      if (!is_push || rank != me) move_between(is_push ? me : rank, is_push ? rank : me);
    }
    finish();
  }

  /// Moves this block's pieces of some rows of rank `source`.
  TMAP_HOST_DEVICE void move_rows(std::uint32_t source, const row_piece& rows) {
    if (rows.rows == 0) return;
    const row_cut cut(rows, request_.staging_bytes);
    const std::uint32_t count = cut.count();
    TMAP_KEEP_ROLLED
    while (dealt_ - passed_ < count) {
      const std::uint32_t now = dealt_ - passed_;
      dealt_ = next_;
      next_ = deal(next_);  // it comes while the piece moves
      mover_.move(source, cut.piece(now));
    }
    passed_ += count;
  }

  /// Returns when all rows are in their windows.
  TMAP_HOST_DEVICE void finish() { mover_.finish(); }

 private:
  /// Moves the rows from one rank to another, of which this rank is one.
  TMAP_HOST_DEVICE void move_between(std::uint32_t source, std::uint32_t target) {
    const std::uint32_t me = link_.rank();
    const bool is_here = target == me;
    if (announced_.is_pushed(source, target) == is_here || announced_.is_eager(source, target)) return;
    const std::uint64_t from_step = announced_.step_of(source);
    const std::uint64_t to_step = is_here ? row_step(request_.out_pitch, request_.row_bytes) : request_.row_bytes;
    std::uint64_t from = announced_.begin_at(source, target);
    places<Link> place(announced_, request_.placed, source, link_.ranks());
    TMAP_KEEP_ROLLED
    for (std::uint32_t group = 0; group < request_.groups; ++group) {
      const std::uint32_t rows = is_here ? announced_.count(source, group) : announced_.total(source, target);
      const std::uint64_t to = is_here ? request_.out + place.next(group, rows) * to_step : announced_.place_at(target);
      move_rows(source, {from, to, from_step, to_step, rows, request_.row_bytes, target});
      from += rows * from_step;
    }
  }
  /// Returns the piece after the last one. Each block has begun with the one of its number.
  TMAP_HOST_DEVICE std::uint32_t deal(std::uint32_t last) {
    return request_.blocks + (is_dealt_ ? link_.deal(offsetof(window_header, pieces_dealt)) : last);
  }

  Link& link_;
  const exchange_request& request_;
  announcements<Link> announced_;
  piece_mover<Link> mover_;
  bool is_dealt_;  ///< by the counter
  std::uint32_t dealt_;
  std::uint32_t next_;
  std::uint32_t passed_{0};  ///< pieces of the rows before
};

}  // namespace tmap::kernels::peer
