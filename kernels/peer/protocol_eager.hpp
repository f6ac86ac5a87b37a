// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sends and takes eager rows (eager_area.hpp), by threads that share their words.

#include "kernels/peer/protocol_plan.hpp"
#include "kernels/peer/worker.hpp"

namespace tmap::kernels::peer {

/// Stands for no rank.
inline constexpr std::uint32_t no_rank = ~0u;

/// Finds the words of rows at equal distances.
class row_words {
 public:
  TMAP_HOST_DEVICE row_words(std::uint64_t at, std::uint64_t step, std::uint32_t row_bytes)
      : at_(at), step_(step), words_(row_bytes / static_cast<std::uint32_t>(word_bytes)) {}

  /// Returns the offset of word `i` of all rows.
  [[nodiscard]] TMAP_HOST_DEVICE std::uint64_t word(std::uint32_t i) const {
    if (step_ == words_ * word_bytes) return word_at(at_, i);
    return word_at(at_ + i / words_ * step_, i % words_);
  }
  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t count(std::uint32_t rows) const { return rows * words_; }

 private:
  std::uint64_t at_;
  std::uint64_t step_;
  std::uint32_t words_;  ///< of a row
};

/// Sends words of rows to one rank.
template <class Link>
struct sent_rows {
  Link& link;
  row_words rows;
  std::uint32_t to;
  std::uint32_t tag;

  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t load(std::uint32_t i) const { return link.load_row_word(rows.word(i)); }
  TMAP_HOST_DEVICE void use(std::uint32_t i, std::uint32_t word) const {
    link.send_word(to, eager_word_at(link.ranks(), link.rank(), i), tagged_word{word, tag});
  }
};

/// Sends this worker's share of the eager rows for all ranks. This rank has everybody's credit for
/// the calls before, and no more rows for all ranks than `sent_rows`.
template <class Link>
TMAP_HOST_DEVICE void send_rows(Link& link, const exchange_request& request, std::uint32_t call, const worker& mine) {
  const std::uint64_t step = row_step(request.sent_pitch, request.row_bytes);
  std::uint64_t from = request.rows;
  TMAP_KEEP_ROLLED
  for (std::uint32_t rank = 0; rank < link.ranks(); ++rank) {
    const std::uint32_t rows = link.load(link.rank(), word_at(request.splits, rank));
    sent_rows<Link> sent{link, {from, step, request.row_bytes}, rank, tag_of(call)};
    if (are_eager(link.ranks(), rows, request.row_bytes)) share_field(mine, sent.rows.count(rows), sent);
    from += rows * step;
  }
}

/// Finds the words that one source sent. All threads that take words of a call have one.
template <class Link>
class eager_source {
 public:
  TMAP_HOST_DEVICE eager_source(Link& link, std::uint32_t source, std::uint32_t call, std::uint64_t deadline)
      : link_(link), source_(source), tag_(tag_of(call)), deadline_(deadline) {}

  /// Looks once for word `i`.
  [[nodiscard]] TMAP_HOST_DEVICE tagged_word look(std::uint32_t i) const { return link_.look_for(at(i), tag_); }
  /// Waits for word `i` unless it was `found`. Returns whether it is there.
  [[nodiscard]] TMAP_HOST_DEVICE bool wait(std::uint32_t i, tagged_word& found) const {
    if (found.tag != tag_) found = link_.wait_for(at(i), tag_, deadline_, offsetof(window_header, broken));
    return found.tag == tag_;
  }
  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t rank() const { return source_; }

 private:
  [[nodiscard]] TMAP_HOST_DEVICE std::uint64_t at(std::uint32_t i) const {
    return eager_word_at(link_.ranks(), source_, i);
  }

  Link& link_;
  std::uint32_t source_;
  std::uint32_t tag_;
  std::uint64_t deadline_;
};

/// Brings words of rows to their places.
template <class Link>
struct taken_rows {
  Link& link;
  eager_source<Link> from;
  row_words rows;
  std::uint32_t late{no_rank};  ///< whose word did not come

  [[nodiscard]] TMAP_HOST_DEVICE tagged_word load(std::uint32_t i) const { return from.look(i); }
  TMAP_HOST_DEVICE void use(std::uint32_t i, tagged_word found) {
    if (late != no_rank) return;
    if (from.wait(i, found)) {
      link.store_row_word(rows.word(i), found.word);
    } else {
      late = from.rank();
    }
  }
};

/// Takes this worker's share of the eager rows of all ranks, once they are announced and judged.
/// Returns a rank whose rows did not come by the deadline, or before the group broke.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE std::uint32_t take_rows(Link& link, const exchange_request& request, std::uint32_t call,
                                                       std::uint64_t deadline, const worker& mine) {
  const announcements<Link> told(link, request);
  const std::uint64_t step = row_step(request.out_pitch, request.row_bytes);
  std::uint64_t to = request.out;
  TMAP_KEEP_ROLLED
  for (std::uint32_t source = 0; source < link.ranks(); ++source) {
    const std::uint32_t rows = told.total(source, link.rank());
    taken_rows<Link> taken{link, {link, source, call, deadline}, {to, step, request.row_bytes}};
    if (told.is_eager(source)) share_field(mine, taken.rows.count(rows), taken);
    if (taken.late != no_rank) return taken.late;
    to += rows * step;
  }
  return no_rank;
}

/// Returns whether some rank's rows came with its announcement.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE bool has_eager_rows(Link& link, const exchange_request& request) {
  const announcements<Link> told(link, request);
  bool has = false;
  TMAP_KEEP_ROLLED
  for (std::uint32_t source = 0; source < link.ranks(); ++source) {
    has |= told.is_eager(source) && told.total(source, link.rank()) != 0;
  }
  return has;
}

}  // namespace tmap::kernels::peer
