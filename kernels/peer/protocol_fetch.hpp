// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fetches rows by a list: each rank pulls the rows that its list names, each once, and puts each to
// all its places. The ranks announce where their rows lie, and judge, as in an exchange.

#include "kernels/peer/protocol_exchange.hpp"

namespace tmap::kernels::peer {

inline constexpr std::uint32_t most_fetch_stages = 32;
inline constexpr std::uint32_t most_fetch_entries = 32;  ///< of a part of the list
/// Bounds all stages together. They fill most of a multiprocessor's shared memory, and the list
/// fits, too.
inline constexpr std::uint32_t most_staging_bytes = 196608;
/// Parts of the list lie in as many *banks* of shared memory. One is in use, one is coming, and
/// rows of a third may still wait for their places.
inline constexpr std::uint32_t fetch_banks = 3;
/// The first sets are those of rows.
inline constexpr std::uint32_t fetch_sets = pull_sets + fetch_banks;

/// Returns the words of an entry of a list: the number of the row at its source, then its places.
/// A place that is no row of `out` is none.
TMAP_HOST_DEVICE constexpr std::uint32_t entry_words(std::uint32_t places) {
  return (1 + places + 3) / 4 * 4;
}

/// Describes one rank's part of a fetch. Shared memory has the stages first, then the parts of the
/// list.
struct fetch_request {
  /// Has no groups and counts. `rows` are what others fetch here, `sent_rows` of them. `capacity`
  /// counts the rows of `out`.
  exchange_request call;
  std::uint64_t arrived;  ///< words: how many entries of the list name rows of each rank
  std::uint64_t list;     ///< entries, in the order of the ranks
  std::uint32_t places;   ///< of an entry
  std::uint32_t entries;  ///< of a part, at most `most_fetch_entries`
  std::uint32_t out_pitch;
};

/// Describes a piece of a row in a stage. A fetch needs one for each stage; they lie in shared
/// memory on a GPU.
struct fetch_piece {
  std::uint32_t at;  ///< byte of the row
  std::uint32_t bytes;
  std::uint32_t entry;  ///< in shared memory
  std::uint32_t bank;   ///< where in shared memory its part of the list lies
};

/// Names some entries that follow each other, all of one source. No entries stand for the end.
struct list_part {
  std::uint32_t source;
  std::uint32_t first;
  std::uint32_t entries;
};

/// Deals the parts of a list among the blocks. A short list has short parts, so that every block
/// has one. Blocks begin with different ranks, so that rows cross the link all the time: those of
/// this rank take time, too, if they have many places.
template <class Link>
class list_walk {
 public:
  TMAP_HOST_DEVICE list_walk(Link& link, const fetch_request& request)
      : link_(link), request_(request), turn_(request.call.block % link.ranks()), left_(link.ranks()) {
    std::uint64_t all = 0;
    TMAP_KEEP_ROLLED
    for (std::uint32_t source = 0; source < link.ranks(); ++source) all += count(source);
    const std::uint64_t share = (all + request.call.blocks - 1) / request.call.blocks;
    most_ = share < request.entries ? static_cast<std::uint32_t>(share) : request.entries;
  }

  /// Returns the next part of this block. It steps over the parts of other blocks at once: to look
  /// at each of them took more time than to fetch a short list.
  TMAP_HOST_DEVICE list_part next() {
    TMAP_KEEP_ROLLED
    for (; left_ > 0; end()) {
      if (!begun_) begin();
      const std::uint64_t at = std::uint64_t{own_} * most_;
      if (at < count_) {
        const std::uint64_t left = count_ - at;
        own_ += request_.call.blocks;
        return {source_, first_ + static_cast<std::uint32_t>(at),
                left < most_ ? static_cast<std::uint32_t>(left) : most_};
      }
    }
    return {};
  }

 private:
  TMAP_HOST_DEVICE std::uint32_t count(std::uint32_t source) const {
    return link_.load(link_.rank(), word_at(request_.arrived, source));
  }
  TMAP_HOST_DEVICE std::uint32_t parts(std::uint32_t source) const {
    const std::uint32_t entries = count(source);
    return entries == 0 ? 0 : (entries - 1) / most_ + 1;
  }
  /// Finds the rows of the next rank. The blocks share its parts so that all have as many together
  /// with those of the ranks before it.
  TMAP_HOST_DEVICE void begin() {
    begun_ = true;
    source_ = rank_in_turn(link_, turn_);
    first_ = 0;
    TMAP_KEEP_ROLLED
    for (std::uint32_t before = 0; before < source_; ++before) first_ += count(before);
    count_ = count(source_);
    const std::uint32_t blocks = request_.call.blocks;
    std::uint32_t parts_before = 0;
    TMAP_KEEP_ROLLED
    for (std::uint32_t i = 0; i < turn_; ++i) parts_before = (parts_before + parts(rank_in_turn(link_, i))) % blocks;
    own_ = (request_.call.block + blocks - parts_before) % blocks;
  }
  TMAP_HOST_DEVICE void end() {
    begun_ = false;
    --left_;
    turn_ = turn_ + 1 < link_.ranks() ? turn_ + 1 : 0;
  }

  Link& link_;
  const fetch_request& request_;
  std::uint32_t turn_;
  std::uint32_t left_;  ///< ranks
  std::uint32_t most_;  ///< entries of a part
  bool begun_{false};
  std::uint32_t source_{0};
  std::uint32_t first_{0};  ///< entry of the source
  std::uint32_t count_{0};
  std::uint32_t own_{0};  ///< the next part of this block, among those of the source
};

/// Moves pieces of rows from peers to all their places. While one half of the stages is stored, the
/// other half is being filled. A single stage takes turns. It holds no arrays, as `piece_mover`.
template <class Link>
class row_mover {
 public:
  TMAP_HOST_DEVICE row_mover(Link& link, const fetch_request& request, fetch_piece* pieces)
      : link_(link),
        request_(request),
        pieces_(pieces),
        sets_(request.call.stages < pull_sets ? 1 : pull_sets),
        half_(sets_ == 1 ? request.call.stages : request.call.stages / pull_sets) {}

  /// Fetches bytes of a row. `entry` is its entry in shared memory, in a bank of the list.
  TMAP_HOST_DEVICE void move(std::uint32_t source, std::uint64_t from, std::uint32_t at, std::uint32_t bytes,
                             std::uint32_t entry, std::uint32_t bank) {
    const std::uint32_t stage = set_ * half_ + filled_++;
    link_.get(stage * request_.call.staging_bytes, source, from + at, bytes, set_);
    pieces_[stage] = {at, bytes, entry, bank};
    waiting_ += 1u << bank * waiting_bits;
    if (filled_ == half_) turn();
  }

  /// Returns when no piece needs the entries of a bank any more.
  TMAP_HOST_DEVICE void release(std::uint32_t bank) {
    TMAP_KEEP_ROLLED
    for (std::uint32_t i = 0; i < sets_ && (waiting_ >> bank * waiting_bits & most_waiting) != 0; ++i) turn();
  }

  /// Returns when all pieces are in the window and may be announced. Sources are free then, too.
  TMAP_HOST_DEVICE void finish() {
    TMAP_KEEP_ROLLED
    for (std::uint32_t set = 0; set < sets_; ++set) turn();
    link_.quiet();
  }

 private:
  // Pieces that wait for a bank are counted in as many bits of one word.
  static constexpr std::uint32_t waiting_bits = 8, most_waiting = (1u << waiting_bits) - 1;
  static_assert(most_fetch_stages <= most_waiting && fetch_banks * waiting_bits <= 32);

  /// Stores the set that was filled before this one, and fills it again.
  TMAP_HOST_DEVICE void turn() {
    const std::uint32_t stored = sets_ == 1 ? filled_ : others_;
    set_ = sets_ - 1 - set_;
    others_ = filled_;
    filled_ = 0;
    if (stored == 0) return;
    link_.wait_gets(set_);
    TMAP_KEEP_ROLLED
    for (std::uint32_t stage = set_ * half_; stage < set_ * half_ + stored; ++stage) put_everywhere(stage);
    link_.flush();  // the next pieces take the same memory
  }

  TMAP_HOST_DEVICE void put_everywhere(std::uint32_t stage) {
    const fetch_piece each = pieces_[stage];
    TMAP_KEEP_ROLLED
    for (std::uint32_t i = 0; i < request_.places; ++i) {
      const std::uint32_t place = link_.load_shared(each.entry + (1 + i) * static_cast<std::uint32_t>(word_bytes));
      if (place >= request_.call.capacity) continue;
      const std::uint64_t to = request_.call.out + std::uint64_t{place} * request_.out_pitch + each.at;
      link_.put(link_.rank(), to, stage * request_.call.staging_bytes, each.bytes);
    }
    waiting_ -= 1u << each.bank * waiting_bits;
  }

  Link& link_;
  const fetch_request& request_;
  fetch_piece* pieces_;
  std::uint32_t sets_;
  std::uint32_t half_;  ///< stages of a set
  std::uint32_t set_{0};
  std::uint32_t filled_{0};   ///< stages of this set
  std::uint32_t others_{0};   ///< and of the other one
  std::uint32_t waiting_{0};  ///< pieces whose places are in each bank
};

/// Fetches this block's share of the rows of all ranks.
template <class Link>
class row_fetcher {
 public:
  TMAP_HOST_DEVICE row_fetcher(Link& link, const fetch_request& request, fetch_piece* pieces)
      : link_(link),
        request_(request),
        told_(link, request.call),
        walk_(link, request),
        mover_(link, request, pieces) {}

  TMAP_HOST_DEVICE void run() {
    list_part now = walk_.next();
    if (now.entries != 0) load(now, 0);
    TMAP_KEEP_ROLLED
    for (std::uint32_t bank = 0; now.entries != 0; bank = (bank + 1) % fetch_banks) {
      const list_part ahead = walk_.next();
      if (ahead.entries != 0) load(ahead, (bank + 1) % fetch_banks);
      link_.wait_gets(pull_sets + bank);
      fetch(now, bank);
      now = ahead;
    }
    mover_.finish();
  }

 private:
  TMAP_HOST_DEVICE std::uint32_t entry_bytes() const {
    return entry_words(request_.places) * static_cast<std::uint32_t>(word_bytes);
  }
  TMAP_HOST_DEVICE std::uint32_t entry_at(std::uint32_t bank, std::uint32_t entry) const {
    return request_.call.stages * request_.call.staging_bytes + (bank * request_.entries + entry) * entry_bytes();
  }

  TMAP_HOST_DEVICE void load(const list_part& part, std::uint32_t bank) {
    mover_.release(bank);
    const std::uint64_t from = request_.list + std::uint64_t{part.first} * entry_bytes();
    link_.get(entry_at(bank, 0), link_.rank(), from, part.entries * entry_bytes(), pull_sets + bank);
  }

  TMAP_HOST_DEVICE void fetch(const list_part& part, std::uint32_t bank) {
    const std::uint32_t row_bytes = request_.call.row_bytes, most = request_.call.staging_bytes;
    const std::uint32_t rows = told_.word(part.source, slot::sent_rows);
    const std::uint64_t pitch = told_.word(part.source, slot::sent_pitch);
    const std::uint64_t first = told_.rows_at(part.source);
    TMAP_KEEP_ROLLED
    for (std::uint32_t i = 0; i < part.entries; ++i) {
      const std::uint32_t entry = entry_at(bank, i);
      const std::uint32_t row = link_.load_shared(entry);
      if (row >= rows) continue;  // the source has no such row
      TMAP_KEEP_ROLLED
      for (std::uint32_t at = 0; at < row_bytes; at += most) {
        const std::uint32_t bytes = row_bytes - at < most ? row_bytes - at : most;
        mover_.move(part.source, first + row * pitch, at, bytes, entry, bank);
      }
    }
  }

  Link& link_;
  const fetch_request& request_;
  announcements<Link> told_;
  list_walk<Link> walk_;
  row_mover<Link> mover_;
};

struct fetch_moves {
  const fetch_request& request;
  fetch_piece* pieces;

  TMAP_HOST_DEVICE const exchange_request* next() const { return nullptr; }
  template <class Link>
  TMAP_HOST_DEVICE void move(Link& link) const {
    row_fetcher<Link>(link, request, pieces).run();
  }
  template <class Link>
  TMAP_HOST_DEVICE void write_counts(Link&) const {}
};

/// Runs one rank's part of a fetch. If the verdict is ok, all rows of the list are at their places,
/// and later kernels of this rank may read them.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict fetch(Link& link, const fetch_request& request, fetch_piece* pieces,
                                                  std::uint64_t deadline) {
  return run_call(link, request.call, deadline, fetch_moves{request, pieces});
}

}  // namespace tmap::kernels::peer
