// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sends the records of few tokens, takes those that come, and fetches their rows, by all blocks of
// a dispatch but the first, which sorts them meanwhile. Each block fetches the rows of the records
// that it has taken. So there is no list.

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

/// Fetches packets of records that came with the announcement, or pulls them where they lie.
template <class Link>
struct record_packets {
  coming_packets<Link> coming;
  const record_taker<Link>& to;
  bool are_eager;
  std::uint64_t offset;  ///< in the window of the source

  [[nodiscard]] TMAP_HOST_DEVICE bool fetch(std::uint32_t i, std::uint32_t step, std::uint32_t count,
                                            packet (&found)[packets_at_once]) const {
    if (are_eager) return coming.fetch(i, step, count, found);
    for (std::uint32_t j = 0; j < packets_at_once; ++j) {
      if (j < count) found[j] = to.pull(offset, i + j * step);
    }
    return true;
  }
};

/// Returns the records that a block takes, of all that were announced.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE record_share arriving_share(Link& link, const exchange_request& records) {
  const announcements<Link> announced(link, records);
  return share_of_block(static_cast<std::uint32_t>(announced.rows_of_ranks(link.ranks())), records.block,
                        records.blocks);
}

/// Takes a thread's share of a block's records. Returns a rank whose records did not come.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE std::uint32_t take_records(Link& link, const preparation& work,
                                                          const exchange_request& records, std::uint32_t call,
                                                          std::uint64_t deadline, const worker& mine) {
  const announcements<Link> announced(link, records);
  const record_share own = arriving_share(link, records);
  std::uint32_t first = 0, late = no_rank;
  TMAP_KEEP_ROLLED
  for (std::uint32_t source = 0; source < link.ranks() && late == no_rank; ++source) {
    const std::uint32_t end = first + announced.total(source, link.rank());
    const std::uint32_t from = own.begin < first ? first : own.begin, to = own.end < end ? own.end : end;
    if (from < to) {
      const record_taker<Link> taker(link, work.at, source, first);
      const record_packets<Link> packets{
          {link, source, call, deadline}, taker, announced.is_eager(source), announced.begin_at(source)};
      const auto take = [&](std::uint32_t i, const packet& found) { taker.take(i, found); };
      if (!take_packets(mine, taker.packets(from - first), taker.packets(to - first), packets, take)) late = source;
    }
    first = end;
  }
  return late;
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
    is_late_ = !has_waited_ && !peer::await(link_, offsetof(window_header, steps_raised), step_, deadline_);
    has_waited_ = true;
    if (is_late_) return;
    link_.proxy_fence();
    link_.get(shared_, link_.rank(), begin_ - skew(), bulk_bytes(skew() + bytes_), records_set);
    link_.wait_gets(records_set);
    is_there_ = true;
  }
  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t place(std::uint32_t entry, std::uint32_t i) const {
    return is_late_ ? none : link_.load_shared(shared_word(shared_ + skew(), entry * at_.k + i));
  }
  [[nodiscard]] TMAP_HOST_DEVICE bool has_waited() const { return has_waited_; }
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
  bool has_waited_{false};
  bool is_late_{false};
};

/// Fetches the rows of this block's share of the records.
template <class Link>
class record_fetcher {
 public:
  TMAP_HOST_DEVICE record_fetcher(Link& link, const preparation& work, const record_share& own,
                                  const fetch_request& request, fetch_piece* pieces, record_places<Link>& places,
                                  group_raiser<Link>& nobody)
      : link_(link),
        at_(work.at),
        layout_(work),
        announced_(link, request.call),
        most_(request.entries),
        places_(places),
        mover_(link, request, pieces, places, nobody),
        next_(own.begin),
        end_(own.end) {}

  /// Begins to load this block's records, which it has taken.
  TMAP_HOST_DEVICE void begin() { load_part(); }
  /// Fetches the rows of the records, whose sources have announced them.
  TMAP_HOST_DEVICE void run() {
    TMAP_KEEP_ROLLED
    while (loaded_ != 0) {
      link_.wait_gets(records_set);
      fetch_part();
      next_ += loaded_;
      if (next_ != end_) mover_.release(0);
      load_part();
    }
    mover_.finish();
  }
  /// Ends without a fetch.
  TMAP_HOST_DEVICE void leave() { link_.wait_gets(records_set); }

 private:
  TMAP_HOST_DEVICE void load_part() {
    loaded_ = end_ - next_ < most_ ? end_ - next_ : most_;
    if (loaded_ == 0) return;
    link_.get(layout_.records(), link_.rank(), at_.arriving + std::uint64_t{next_} * layout_.record_bytes(),
              loaded_ * layout_.record_bytes(), records_set);
  }
  TMAP_HOST_DEVICE void fetch_part() {
    places_.turn_to(next_, loaded_);
    TMAP_KEEP_ROLLED
    for (std::uint32_t i = 0; i < loaded_; ++i) {
      const std::uint32_t row = record_word_of(i, record::token), source = record_word_of(i, record::source);
      if (row < announced_.word(source, slot::sent_rows)) mover_.move_row(source, announced_.row_at(source, row), i, 0);
    }
  }
  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t record_word_of(std::uint32_t i, std::uint32_t word) const {
    return link_.load_shared(shared_word(layout_.records() + i * layout_.record_bytes(), word));
  }

  Link& link_;
  const expert_arrays& at_;
  record_part_layout layout_;
  announcements<Link> announced_;
  std::uint32_t most_;  ///< records of a part
  record_places<Link>& places_;
  row_mover<Link, record_places<Link>> mover_;
  std::uint32_t next_;       ///< record of this block that was not fetched
  std::uint32_t end_;        ///< of this block's records
  std::uint32_t loaded_{0};  ///< records from `next_` on that come to shared memory
};

/// Fetches the rows of a block's records, in its first thread. The fetch is call number `call`. The
/// places of rows are known at `step`. Returns whether it has waited for that.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE bool fetch_records(Link& link, const preparation& work, const record_share& own,
                                                  const fetch_request& request, fetch_piece* pieces, std::uint32_t call,
                                                  std::uint32_t step, std::uint64_t deadline) {
  record_places<Link> places(link, work, step, deadline);
  constexpr pending_groups no_groups{};
  group_raiser<Link> nobody(link, no_groups);
  record_fetcher<Link> fetcher(link, work, own, request, pieces, places, nobody);
  link.proxy_fence();  // the records are read by bulk copies
  fetcher.begin();
  if (hear(link, request.call, call, deadline).status == peer_status::ok) {
    link.proxy_fence();  // and so are the rows
    fetcher.run();
  } else {
    fetcher.leave();
  }
  if (places.is_late()) static_cast<void>(give_up_waiting(link, link.rank(), protocol_step::workers));
  return places.has_waited();
}

/// Sends this block's share of the records once all ranks have given their credits: until then they
/// may read those of the call before.
template <class Link, class Block>
TMAP_HOST_DEVICE void send_departing(Link& link, const preparation& work, std::uint32_t call, const worker& mine,
                                     Block& block, std::uint64_t deadline) {
  const bool leads = mine.number == 0;
  block.by_rank([&](std::uint32_t choice) { return rank_of_choice(link, work.at, work.given, choice); });
  if (leads) block.set_ready(await_credits(link, deadline).status == peer_status::ok);
  link.sync();
  if (block.is_ready()) write_departing(link, work, call, mine, block);
  link.sync();  // all threads know whether the block was ready
  if (leads && block.are_pulled()) link.raise_here(offsetof(window_header, workers_raised), 1);
}

/// Runs one block of a dispatch that sends and takes records, and fetches their rows: any but the
/// first, which judges for all. All threads of the block call it. `request` is that of `work` for
/// this block. `block` sorts `by_rank` as in `prepare`. Then `departing` returns its share of the
/// records, and `record` those. The first thread's `set_ready` gives all threads whether they may
/// go on: `is_ready` returns it after a barrier.
template <class Link, class Block>
TMAP_HOST_DEVICE void take_and_fetch(Link& link, const preparation& work, const fetch_request& request,
                                     const worker& mine, fetch_piece* pieces, Block& block, std::uint64_t deadline) {
  const bool leads = mine.number == 0;
  const std::uint32_t call = link.load(link.rank(), offsetof(window_header, exchanges)) + 1;
  exchange_request records = work.records;
  records.block = request.call.block;
  send_departing(link, work, call, mine, block, deadline);
  if (leads) block.set_ready(hear(link, records, call, deadline).status == peer_status::ok);
  link.sync();
  const bool has_heard = block.is_ready();
  const std::uint32_t late = has_heard ? take_records(link, work, records, call, deadline, mine) : no_rank;
  if (late != no_rank) static_cast<void>(give_up_waiting(link, late, protocol_step::announcement));
  link.sync();
  if (!leads) return;
  link.raise_here(taken_records.raised, 1);
  const std::uint32_t step = link.load(link.rank(), offsetof(window_header, steps_expected)) + 1;
  const record_share own = has_heard ? arriving_share(link, records) : record_share{};
  const bool has_waited =
      own.begin != own.end && fetch_records(link, work, own, request, pieces, call + 1, step, deadline);
  if (!has_waited) static_cast<void>(await(link, offsetof(window_header, steps_raised), step, deadline));
  link.raise_here(offsetof(window_header, workers_raised), 1);
}

}  // namespace tmap::kernels::peer
