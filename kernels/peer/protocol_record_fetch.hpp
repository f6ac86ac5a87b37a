// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fetches the rows of few tokens by all blocks of a dispatch but the first, which prepares it. They
// read the records that came where the first block wrote them, and begin to fetch while it still
// sorts. So there is no list.

#include "kernels/peer/protocol_prepare.hpp"

namespace tmap::kernels::peer {

/// Bounds the shared memory of stages and of a part of the records. The block that prepares needs
/// as much of its own at most, in addition to what it always has.
inline constexpr std::uint32_t most_few_bytes = 188416;

/// The set of gets of records and their places.
inline constexpr std::uint32_t records_set = pull_sets;
inline constexpr std::uint32_t record_fetch_sets = pull_sets + 1;

/// Places the records of a part in shared memory, after the stages, and then the places of their
/// rows.
class record_part_layout {
 public:
  TMAP_HOST_DEVICE explicit record_part_layout(const preparation& work)
      : record_bytes_(record_words(work.at.k, work.at.scales) * static_cast<std::uint32_t>(word_bytes)),
        records_(work.rows.call.stages * work.rows.call.staging_bytes),
        places_(records_ + work.rows.entries * record_bytes_) {}

  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t record_bytes() const { return record_bytes_; }
  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t records() const { return records_; }
  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t places() const { return places_; }

 private:
  std::uint32_t record_bytes_;
  std::uint32_t records_;
  std::uint32_t places_;
};

/// Returns the shared memory of a part of so many records. Their places begin at any word of 16
/// bytes.
TMAP_HOST_DEVICE constexpr std::uint32_t record_part_bytes(std::uint32_t records, std::uint32_t k,
                                                           std::uint32_t scales) {
  const std::uint32_t words = records * (record_words(k, scales) + k);
  return bulk_bytes(words * static_cast<std::uint32_t>(word_bytes)) + 2 * bulk_unit;
}

/// Brings the places of a part's records to shared memory, once the first block knows them. No
/// other get is on its way in their set then.
template <class Link>
class record_places {
 public:
  TMAP_HOST_DEVICE record_places(Link& link, const preparation& work, std::uint32_t step, std::uint64_t deadline)
      : link_(link), at_(work.at), shared_(record_part_layout(work).places()), step_(step), deadline_(deadline) {}

  /// Turns to the part that begins with record `first`.
  TMAP_HOST_DEVICE void turn_to(std::uint32_t first, std::uint32_t records) {
    begin_ = word_at(at_.places, std::uint64_t{first} * at_.k);
    bytes_ = records * at_.k * static_cast<std::uint32_t>(word_bytes);
    is_there_ = false;
  }
  TMAP_HOST_DEVICE void await() {
    if (is_there_ || is_late_) return;
    is_late_ = !peer::await(link_, offsetof(window_header, steps_raised), step_, deadline_);
    if (is_late_) return;
    link_.proxy_fence();
    link_.get(shared_, link_.rank(), begin_ - skew(), bulk_bytes(skew() + bytes_), records_set);
    link_.wait_gets(records_set);
    is_there_ = true;
  }
  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t place(std::uint32_t entry, std::uint32_t i) const {
    return is_late_ ? none : link_.load_shared(shared_word(shared_ + skew(), entry * at_.k + i));
  }
  /// Returns whether the first block did not come to know places.
  [[nodiscard]] TMAP_HOST_DEVICE bool is_late() const { return is_late_; }

 private:
  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t skew() const { return static_cast<std::uint32_t>(begin_ % bulk_unit); }

  Link& link_;
  const expert_arrays& at_;
  std::uint32_t shared_;
  std::uint32_t step_;
  std::uint64_t deadline_;
  std::uint64_t begin_{0};
  std::uint32_t bytes_{0};
  bool is_there_{false};
  bool is_late_{false};
};

/// Fetches the rows of this block's share of the records.
template <class Link>
class record_fetcher {
 public:
  TMAP_HOST_DEVICE record_fetcher(Link& link, const preparation& work, const fetch_request& request,
                                  fetch_piece* pieces, record_places<Link>& places, group_raiser<Link>& nobody)
      : link_(link),
        at_(work.at),
        layout_(work),
        told_(link, request.call),
        most_(request.entries),
        places_(places),
        mover_(link, request, pieces, places, nobody),
        block_(request.call.block - 1),
        blocks_(request.call.blocks - 1) {}

  TMAP_HOST_DEVICE void run() {
    const list_deal deal{link_.load(link_.rank(), at_.total), blocks_};
    const std::uint32_t end = deal.begin(block_ + 1);
    TMAP_KEEP_ROLLED
    for (std::uint32_t first = deal.begin(block_); first < end; first += most_) {
      fetch_part(first, end - first < most_ ? end - first : most_);
    }
    mover_.finish();
  }

 private:
  TMAP_HOST_DEVICE void fetch_part(std::uint32_t first, std::uint32_t records) {
    mover_.release(0);
    link_.get(layout_.records(), link_.rank(), at_.arriving + std::uint64_t{first} * layout_.record_bytes(),
              records * layout_.record_bytes(), records_set);
    link_.wait_gets(records_set);
    places_.turn_to(first, records);
    TMAP_KEEP_ROLLED
    for (std::uint32_t i = 0; i < records; ++i) {
      const std::uint32_t row = record_word_of(i, record::token), source = record_word_of(i, record::source);
      if (row < told_.word(source, slot::sent_rows)) mover_.move_row(source, told_.row_at(source, row), i, 0);
    }
  }
  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t record_word_of(std::uint32_t i, std::uint32_t word) const {
    return link_.load_shared(shared_word(layout_.records() + i * layout_.record_bytes(), word));
  }

  Link& link_;
  const expert_arrays& at_;
  record_part_layout layout_;
  announcements<Link> told_;
  std::uint32_t most_;  ///< records of a part
  record_places<Link>& places_;
  row_mover<Link, record_places<Link>> mover_;
  std::uint32_t block_;  ///< of those that fetch
  std::uint32_t blocks_;
};

template <class Link>
struct record_fetch_moves : lone_moves {
  const preparation& work;
  const fetch_request& request;
  fetch_piece* pieces;
  record_places<Link>& places;

  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict move(Link& link, std::uint32_t) const {
    constexpr pending_groups no_groups{};
    group_raiser<Link> nobody(link, no_groups);
    record_fetcher<Link>(link, work, request, pieces, places, nobody).run();
    return places.is_late() ? give_up_waiting(link, link.rank(), protocol_step::workers) : peer_verdict{};
  }
};

/// Runs one block of a dispatch that fetches rows: any but the first. `request` is that of `work`
/// for this block.
template <class Link>
TMAP_HOST_DEVICE void fetch_records(Link& link, const preparation& work, const fetch_request& request,
                                    fetch_piece* pieces, std::uint64_t deadline) {
  const std::uint32_t before = link.load(link.rank(), offsetof(window_header, steps_expected));
  // The first block knows which rank is late, and gives up for all.
  if (!await(link, offsetof(window_header, steps_raised), before + records_step, deadline)) return;
  record_places<Link> places(link, work, before + places_step, deadline);
  const record_fetch_moves<Link> moves{{}, work, request, pieces, places};
  static_cast<void>(begin_call(link, request.call, deadline, moves));
  link.raise_here(offsetof(window_header, workers_raised), 1);
}

}  // namespace tmap::kernels::peer
