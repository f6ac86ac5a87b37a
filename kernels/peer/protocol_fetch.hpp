// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fetches rows by a list: each rank pulls the rows that its list names, each once, and puts each to
// all its places. The ranks announce where their rows lie, and judge, as in an exchange. Others may
// wait for the rows of a group of places while later ones come.

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

/// Names the words of an entry of a list: the row at its source, and the rank of that. `group` is
/// the first group that the row has a place in. The places follow. One that is no row of `out` is
/// none.
namespace entry_word {
inline constexpr std::uint32_t row = 0, source = 1, group = 2, places = 3;
}  // namespace entry_word

TMAP_HOST_DEVICE constexpr std::uint32_t entry_words(std::uint32_t places) {
  return (entry_word::places + places + 3) / 4 * 4;
}

/// Deals the entries of a list to blocks. They take turns in the order of the fetch, so that all of
/// them come to the end of a group together. In the list the entries of each block follow each
/// other.
class list_deal {
 public:
  TMAP_HOST_DEVICE constexpr list_deal(std::uint32_t entries, std::uint32_t blocks)
      : blocks_(blocks), share_(entries / blocks), longer_(entries % blocks) {}

  /// Returns where the entries of a block begin. Those of one block more end the list.
  TMAP_HOST_DEVICE constexpr std::uint32_t begin(std::uint32_t block) const {
    return block * share_ + (block < longer_ ? block : longer_);
  }
  /// Returns the place of the entry that is number `number` in the order of the fetch.
  TMAP_HOST_DEVICE constexpr std::uint32_t place(std::uint32_t number) const {
    return begin(number % blocks_) + number / blocks_;
  }

 private:
  std::uint32_t blocks_;
  std::uint32_t share_;
  std::uint32_t longer_;  ///< blocks that have one entry more
};

/// Places words that others wait for while a fetch runs. Each begins as minus the number of its
/// blocks, which raise it. Word g is 0 once all rows of group g have come. One more word is 0 once
/// all blocks run.
struct pending_groups {
  std::uint64_t words;  ///< as `link.address`; 0: nobody waits
  std::uint32_t groups;
  std::uint32_t blocks;  ///< of the fetch

  TMAP_HOST_DEVICE constexpr std::uint64_t word(std::uint32_t group) const { return words + group * word_bytes; }
};

/// Describes one rank's part of a fetch. Shared memory has the stages first, then the parts of the
/// list.
struct fetch_request {
  /// Has no groups and counts. `rows` are what others fetch here, `sent_rows` of them. `capacity`
  /// counts the rows of `out`.
  exchange_request call;
  std::uint64_t listed;   ///< word: how many entries the list has
  std::uint64_t list;     ///< entries, those of the first block first
  std::uint32_t places;   ///< of an entry
  std::uint32_t entries;  ///< of a part, at most `most_fetch_entries`
  std::uint32_t out_pitch;
  pending_groups pending;
};

/// Describes a piece of a row in a stage. A fetch needs one for each stage; they lie in shared
/// memory on a GPU.
struct fetch_piece {
  std::uint32_t at;  ///< byte of the row
  std::uint32_t bytes;
  std::uint32_t entry;  ///< which names the row to the places of the mover
  std::uint32_t bank;   ///< where in shared memory its part of the list lies
};

/// Returns the byte of a word of an entry in shared memory.
TMAP_HOST_DEVICE constexpr std::uint32_t shared_word(std::uint32_t entry, std::uint32_t word) {
  return entry + word * static_cast<std::uint32_t>(word_bytes);
}

/// Names some entries that follow each other. No entries stand for the end.
struct list_part {
  std::uint32_t first;
  std::uint32_t entries;
};

/// Walks through the entries of a block.
template <class Link>
class list_walk {
 public:
  TMAP_HOST_DEVICE list_walk(Link& link, const fetch_request& request) : most_(request.entries) {
    const list_deal deal{link.load(link.rank(), request.listed), request.call.blocks};
    next_ = deal.begin(request.call.block);
    end_ = deal.begin(request.call.block + 1);
  }

  TMAP_HOST_DEVICE list_part next() {
    const std::uint32_t left = end_ - next_;
    const list_part found{next_, left < most_ ? left : most_};
    next_ += found.entries;
    return found;
  }

 private:
  std::uint32_t most_;  ///< entries of a part
  std::uint32_t next_;
  std::uint32_t end_;
};

/// Raises the words of pending groups, for one block. In the end it has raised each of them once,
/// however its call ended, so that nobody waits for ever.
template <class Link>
class group_raiser {
 public:
  TMAP_HOST_DEVICE group_raiser(Link& link, const pending_groups& of)
      : link_(link), of_(of), groups_(of.words == 0 ? 0 : of.groups) {}

  TMAP_HOST_DEVICE void begin() {
    if (groups_ != 0) raise(groups_);
  }
  /// Raises groups before `group`, whose rows this block had put before its last `flush`.
  TMAP_HOST_DEVICE void pass(std::uint32_t group) {
    const std::uint32_t end = group < groups_ ? group : groups_;
    if (passed_ >= end) return;
    link_.quiet_flushed();
    raise_up_to(end);
  }
  /// Raises all groups that are left. What the block put has completed.
  TMAP_HOST_DEVICE void end() {
    if (passed_ == groups_) return;
    link_.release();
    raise_up_to(groups_);
  }

 private:
  TMAP_HOST_DEVICE void raise(std::uint32_t group) { link_.raise_released_at(of_.word(group), 1); }
  TMAP_HOST_DEVICE void raise_up_to(std::uint32_t end) {
    TMAP_KEEP_ROLLED
    for (; passed_ < end; ++passed_) raise(passed_);
  }

  Link& link_;
  const pending_groups& of_;
  std::uint32_t groups_;
  std::uint32_t passed_{0};
};

/// Finds the places of rows in the parts of the list in shared memory.
template <class Link>
struct listed_places {
  Link& link;

  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t place(std::uint32_t entry, std::uint32_t i) const {
    return link.load_shared(shared_word(entry, entry_word::places + i));
  }
};

/// Moves pieces of rows from peers to all their places. While one half of the stages is stored, the
/// other half is being filled. A single stage takes turns. It holds no arrays, as `piece_mover`.
/// `places.place(entry, i)` returns a place of an entry.
template <class Link, class Places>
class row_mover {
 public:
  TMAP_HOST_DEVICE row_mover(Link& link, const fetch_request& request, fetch_piece* pieces, Places& places,
                             group_raiser<Link>& pending)
      : link_(link),
        request_(request),
        pieces_(pieces),
        places_(places),
        pending_(pending),
        sets_(request.call.stages < pull_sets ? 1 : pull_sets),
        half_(sets_ == 1 ? request.call.stages : request.call.stages / pull_sets) {}

  /// No row that is moved from now on has a place in a group before `group`.
  TMAP_HOST_DEVICE void reach(std::uint32_t group) { reached_ = group; }

  /// Fetches a row. `entry` names it to `places`: a list has it in a bank of shared memory.
  TMAP_HOST_DEVICE void move_row(std::uint32_t source, std::uint64_t from, std::uint32_t entry, std::uint32_t bank) {
    const std::uint32_t row_bytes = request_.call.row_bytes, most = request_.call.staging_bytes;
    TMAP_KEEP_ROLLED
    for (std::uint32_t at = 0; at < row_bytes; at += most) {
      move(source, from, at, row_bytes - at < most ? row_bytes - at : most, entry, bank);
    }
  }
  /// Fetches bytes of a row.
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

  /// Returns when all pieces are in the window, for later kernels of this rank. Sources are free.
  TMAP_HOST_DEVICE void finish() {
    TMAP_KEEP_ROLLED
    for (std::uint32_t set = 0; set < sets_; ++set) turn();
    link_.settle();
    pending_.end();
  }

 private:
  // Pieces that wait for a bank are counted in as many bits of one word.
  static constexpr std::uint32_t waiting_bits = 8, most_waiting = (1u << waiting_bits) - 1;
  static_assert(most_fetch_stages <= most_waiting && fetch_banks * waiting_bits <= 32);

  /// Stores the set that was filled before this one, and fills it again.
  TMAP_HOST_DEVICE void turn() {
    const std::uint32_t stored = sets_ == 1 ? filled_ : others_;
    const std::uint32_t reached = sets_ == 1 ? reached_ : others_reached_;
    set_ = sets_ - 1 - set_;
    others_ = filled_;
    others_reached_ = reached_;
    filled_ = 0;
    if (stored == 0) return;
    link_.wait_gets(set_);
    TMAP_KEEP_ROLLED
    for (std::uint32_t stage = set_ * half_; stage < set_ * half_ + stored; ++stage) put_everywhere(stage);
    pending_.pass(flushed_reached_);  // by stores of the turn before, which have had time to complete
    link_.flush();                    // the next pieces take the same memory
    flushed_reached_ = reached;
  }

  TMAP_HOST_DEVICE void put_everywhere(std::uint32_t stage) {
    const fetch_piece each = pieces_[stage];
    TMAP_KEEP_ROLLED
    for (std::uint32_t i = 0; i < request_.places; ++i) {
      const std::uint32_t place = places_.place(each.entry, i);
      if (place >= request_.call.capacity) continue;
      const std::uint64_t to = request_.call.out + std::uint64_t{place} * request_.out_pitch + each.at;
      link_.put(link_.rank(), to, stage * request_.call.staging_bytes, each.bytes);
    }
    waiting_ -= 1u << each.bank * waiting_bits;
  }

  Link& link_;
  const fetch_request& request_;
  fetch_piece* pieces_;
  Places& places_;
  group_raiser<Link>& pending_;
  std::uint32_t sets_;
  std::uint32_t half_;  ///< stages of a set
  std::uint32_t set_{0};
  std::uint32_t filled_{0};   ///< stages of this set
  std::uint32_t others_{0};   ///< and of the other one
  std::uint32_t waiting_{0};  ///< pieces whose places are in each bank
  // No row that follows has a place in a group before these: after the pieces of this set, of the
  // other one, and of those that are stored.
  std::uint32_t reached_{0};
  std::uint32_t others_reached_{0};
  std::uint32_t flushed_reached_{0};
};

/// Fetches this block's share of the rows of all ranks.
template <class Link>
class row_fetcher {
 public:
  TMAP_HOST_DEVICE row_fetcher(Link& link, const fetch_request& request, fetch_piece* pieces,
                               listed_places<Link>& places, group_raiser<Link>& pending)
      : link_(link),
        request_(request),
        announced_(link, request.call),
        walk_(link, request),
        mover_(link, request, pieces, places, pending) {}

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
    TMAP_KEEP_ROLLED
    for (std::uint32_t i = 0; i < part.entries; ++i) fetch_row(entry_at(bank, i), bank);
  }

  TMAP_HOST_DEVICE void fetch_row(std::uint32_t entry, std::uint32_t bank) {
    const std::uint32_t row = link_.load_shared(shared_word(entry, entry_word::row));
    const std::uint32_t source = link_.load_shared(shared_word(entry, entry_word::source));
    mover_.reach(link_.load_shared(shared_word(entry, entry_word::group)));
    if (row >= announced_.word(source, slot::sent_rows)) return;  // the source has no such row
    mover_.move_row(source, announced_.row_at(source, row), entry, bank);
  }

  Link& link_;
  const fetch_request& request_;
  announcements<Link> announced_;
  list_walk<Link> walk_;
  row_mover<Link, listed_places<Link>> mover_;
};

template <class Pending>
struct fetch_moves : lone_moves {
  const fetch_request& request;
  fetch_piece* pieces;
  Pending& pending;

  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict move(Link& link, std::uint32_t) const {
    listed_places<Link> places{link};  // outside: an object that refers to its own parts is memory
    row_fetcher<Link>(link, request, pieces, places, pending).run();
    return {};
  }
};

/// Runs one rank's part of a fetch. If the verdict is ok, all rows of the list are at their places,
/// and later kernels of this rank may read them.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict fetch(Link& link, const fetch_request& request, fetch_piece* pieces,
                                                  std::uint64_t deadline) {
  group_raiser<Link> pending(link, request.pending);
  pending.begin();
  const fetch_moves<group_raiser<Link>> moves{{}, request, pieces, pending};
  const peer_verdict ended = run_call(link, request.call, deadline, moves);
  pending.end();
  return ended;
}

}  // namespace tmap::kernels::peer
