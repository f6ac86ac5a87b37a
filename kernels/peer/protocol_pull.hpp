// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pulls the rows that were announced: the blocks of a rank deal the pieces among them.

#include "kernels/peer/protocol_plan.hpp"

namespace tmap::kernels::peer {

inline constexpr std::uint32_t most_stages = 8;

/// The sets of gets that a pull uses.
inline constexpr std::uint32_t pull_sets = 2;

/// Moves pieces from peers to the own window through shared memory. While one half of the stages is
/// stored, the other half is being filled. A single stage takes turns.
template <class Link>
class piece_mover {
 public:
  TMAP_HOST_DEVICE piece_mover(Link& link, std::uint32_t staging_bytes, std::uint32_t stages)
      : link_(link), staging_bytes_(staging_bytes), sets_(stages < pull_sets ? 1 : pull_sets), half_(stages / sets_) {}

  TMAP_HOST_DEVICE void move(std::uint32_t source, std::uint64_t from, std::uint64_t to, std::uint32_t bytes) {
    const std::uint32_t stage = set_ * half_ + filled_[set_]++;
    link_.get(stage * staging_bytes_, source, from, bytes, set_);
    to_[stage] = to;
    bytes_[stage] = bytes;
    if (filled_[set_] < half_) return;
    set_ = (set_ + 1) % sets_;
    store(set_);
  }

  /// Returns when all pieces are in the window and may be announced. Sources are free then, too.
  TMAP_HOST_DEVICE void finish() {
    for (std::uint32_t set = 0; set < sets_; ++set) store(set);
    link_.quiet();
  }

 private:
  TMAP_HOST_DEVICE void store(std::uint32_t set) {
    if (filled_[set] == 0) return;
    link_.wait_gets(set);
    for (std::uint32_t i = 0; i < filled_[set]; ++i) {
      const std::uint32_t stage = set * half_ + i;
      link_.put(link_.rank(), to_[stage], stage * staging_bytes_, bytes_[stage]);
    }
    link_.flush();  // the next pieces take the same memory
    filled_[set] = 0;
  }

  Link& link_;
  std::uint32_t staging_bytes_;
  std::uint32_t sets_;
  std::uint32_t half_;  ///< stages of a set
  std::uint32_t set_{0};
  std::uint32_t filled_[pull_sets]{};
  std::uint64_t to_[most_stages];
  std::uint32_t bytes_[most_stages];
};

/// Pulls this block's share of the rows of all ranks.
template <class Link>
TMAP_HOST_DEVICE void pull(Link& link, const exchange_request& request) {
  const announcements<Link> told(link, request);
  piece_mover<Link> mover(link, request.staging_bytes, request.stages);
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < link.ranks(); ++i) {
    const std::uint32_t source = rank_in_turn(link, i);
    std::uint64_t from = told.begin_at(source);
    places<Link> place(told, request.placed, source, link.ranks());
    for (std::uint32_t group = 0; group < request.groups; ++group) {
      const std::uint32_t rows = told.count(source, group);
      const std::uint64_t bytes = std::uint64_t{rows} * request.row_bytes;
      const std::uint64_t to = request.out + place.next(group, rows) * request.row_bytes;
      for (std::uint64_t at = 0; at < bytes; at += request.staging_bytes) {
        const std::uint64_t left = bytes - at;
        const std::uint32_t piece =
            left < request.staging_bytes ? static_cast<std::uint32_t>(left) : request.staging_bytes;
        if (next++ % request.blocks == request.block) mover.move(source, from + at, to + at, piece);
      }
      from += bytes;
    }
  }
  mover.finish();
}

}  // namespace tmap::kernels::peer
