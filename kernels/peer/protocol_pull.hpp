// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pulls the rows that were announced: the blocks of a rank deal the pieces among them.

#include "kernels/peer/protocol_plan.hpp"
#include "kernels/peer/row_piece.hpp"

namespace tmap::kernels::peer {

inline constexpr std::uint32_t most_stages = 8;

/// The sets of gets that a pull uses.
inline constexpr std::uint32_t pull_sets = 2;

/// Moves pieces from peers to the own window through shared memory. While one half of the stages is
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

  /// Returns when all pieces are in the window, for later kernels of this rank. Sources are free.
  TMAP_HOST_DEVICE void finish() {
    TMAP_KEEP_ROLLED
    for (std::uint32_t set = 0; set < sets_; ++set) turn();
    link_.settle();
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
      link_.put(link_.rank(), piece.target_of(row), shared + row * piece.bytes, piece.bytes);
    }
  }

  Link& link_;
  row_piece* pieces_;
  std::uint32_t staging_bytes_;
  std::uint32_t sets_;
  std::uint32_t half_;  ///< stages of a set
  std::uint32_t set_{0};
  std::uint32_t filled_{0};  ///< stages of this set
  std::uint32_t others_{0};  ///< and of the other one
};

/// Pulls this block's share of the rows of all ranks.
template <class Link>
class row_puller {
 public:
  /// `pieces` has room for those of `most_stages`.
  TMAP_HOST_DEVICE row_puller(Link& link, const exchange_request& request, row_piece* pieces)
      : link_(link),
        request_(request),
        told_(link, request),
        mover_(link, request.staging_bytes, request.stages, pieces),
        to_step_(row_step(request.out_pitch, request.row_bytes)),
        turn_(request.block) {}

  TMAP_HOST_DEVICE void run() {
    TMAP_KEEP_ROLLED
    for (std::uint32_t i = 0; i < link_.ranks(); ++i) pull_from(rank_in_turn(link_, i));
    finish();
  }

  /// Moves this block's pieces of rows at equal distances. Rows without gaps on both sides are one
  /// long row. Bytes of a long row are dealt, or short rows.
  TMAP_HOST_DEVICE void pull_rows(std::uint32_t source, std::uint64_t from, std::uint64_t from_step, std::uint64_t to,
                                  std::uint32_t rows) {
    const bool is_packed = from_step == request_.row_bytes && to_step_ == request_.row_bytes;
    const std::uint64_t bytes = std::uint64_t{is_packed ? rows : 1} * request_.row_bytes;
    const std::uint32_t room = row_room(from | to | bytes | (is_packed ? 0 : from_step | to_step_));
    const bool is_short = !is_packed && bytes + room <= request_.staging_bytes;
    const std::uint64_t end = is_short ? rows : bytes;
    const std::uint32_t most =
        is_short ? request_.staging_bytes / (request_.row_bytes + room) : request_.staging_bytes - room;
    const std::uint64_t from_unit = is_short ? from_step : 1, to_unit = is_short ? to_step_ : 1;
    TMAP_KEEP_ROLLED
    for (std::uint64_t row = 0; row < (is_packed || is_short ? 1 : rows); ++row) {
      TMAP_KEEP_ROLLED
      for (std::uint64_t at = std::uint64_t{take_turn()} * most; at < end;
           at += std::uint64_t{most} * request_.blocks) {
        const std::uint32_t count = end - at < most ? static_cast<std::uint32_t>(end - at) : most;
        mover_.move(source, {from + row * from_step + at * from_unit, to + row * to_step_ + at * to_unit, from_step,
                             to_step_, is_short ? count : 1, is_short ? request_.row_bytes : count});
      }
    }
  }

  /// Returns when all rows are in the window.
  TMAP_HOST_DEVICE void finish() { mover_.finish(); }

 private:
  TMAP_HOST_DEVICE void pull_from(std::uint32_t source) {
    if (told_.is_eager(source)) return;
    const std::uint64_t from_step = told_.step_of(source);
    std::uint64_t from = told_.begin_at(source);
    places<Link> place(told_, request_.placed, source, link_.ranks());
    TMAP_KEEP_ROLLED
    for (std::uint32_t group = 0; group < request_.groups; ++group) {
      const std::uint32_t rows = told_.count(source, group);
      pull_rows(source, from, from_step, request_.out + place.next(group, rows) * to_step_, rows);
      from += rows * from_step;
    }
  }

  /// Returns this block's first piece of the next rows. Each time, another block has the first one.
  TMAP_HOST_DEVICE std::uint32_t take_turn() {
    const std::uint32_t mine = turn_;
    turn_ = turn_ == 0 ? request_.blocks - 1 : turn_ - 1;
    return mine;
  }

  /// Returns the shared memory that a row may need in addition to its own bytes.
  static TMAP_HOST_DEVICE std::uint32_t row_room(std::uint64_t places) {
    return places % bulk_unit == 0 ? 0 : 2 * bulk_unit;
  }

  Link& link_;
  const exchange_request& request_;
  announcements<Link> told_;
  piece_mover<Link> mover_;
  std::uint64_t to_step_;
  std::uint32_t turn_;
};

}  // namespace tmap::kernels::peer
