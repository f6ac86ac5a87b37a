// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sends the records of few tokens, takes those that come, and fetches their rows, by all blocks of
// a dispatch but the first. Each block takes a share of the records, and fetches their rows. So
// there is no list. It counts the choices of all records, so that it need not wait until another
// block has sorted them.

#include "kernels/peer/protocol_prepare.hpp"

namespace tmap::kernels::peer {

/// Bounds the dynamic shared memory of a block.
inline constexpr std::uint32_t most_few_bytes = 188416;

/// The set of gets of records.
inline constexpr std::uint32_t records_set = pull_sets;
inline constexpr std::uint32_t record_fetch_sets = pull_sets + 1;

/// So many words of shared memory count the choices of an expert.
inline constexpr std::uint32_t count_words = 5;

/// Places what a block has in shared memory after the stages: the records of a part; a word for
/// each choice of all records, its expert and then its row; and the counts of experts.
class few_tokens_layout {
 public:
  TMAP_HOST_DEVICE constexpr few_tokens_layout(const expert_arrays& at, const fetch_request& rows)
      : record_bytes_(record_words(at.k, at.scales) * static_cast<std::uint32_t>(word_bytes)),
        records_(rows.call.stages * rows.call.staging_bytes),
        choices_(records_ + rows.entries * record_bytes_),
        counts_(choices_ + bulk_bytes(at.arrivals * at.k * static_cast<std::uint32_t>(word_bytes))),
        end_(counts_ + at.experts * count_words * static_cast<std::uint32_t>(word_bytes)) {}

  [[nodiscard]] TMAP_HOST_DEVICE constexpr std::uint32_t record_bytes() const { return record_bytes_; }
  [[nodiscard]] TMAP_HOST_DEVICE constexpr std::uint32_t records() const { return records_; }
  [[nodiscard]] TMAP_HOST_DEVICE constexpr std::uint32_t choices() const { return choices_; }
  [[nodiscard]] TMAP_HOST_DEVICE constexpr std::uint32_t counts() const { return counts_; }
  [[nodiscard]] TMAP_HOST_DEVICE constexpr std::uint32_t end() const { return end_; }

 private:
  std::uint32_t record_bytes_;
  std::uint32_t records_;
  std::uint32_t choices_;
  std::uint32_t counts_;
  std::uint32_t end_;
};

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

/// Takes a thread's share of a block's `own` records. Returns a rank whose records did not come.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE std::uint32_t take_records(Link& link, const preparation& work, const record_share& own,
                                                          std::uint32_t call, std::uint64_t deadline,
                                                          const worker& mine) {
  if (own.begin == own.end) return no_rank;
  const announcements<Link> announced(link, work.records);
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

/// Finds the rows of choices in shared memory, where the block has left them.
template <class Link>
class record_places {
 public:
  TMAP_HOST_DEVICE record_places(Link& link, const preparation& work)
      : link_(link), k_(work.at.k), choices_(few_tokens_layout(work.at, work.rows).choices()) {}

  /// Turns to the part that begins with record `first`.
  TMAP_HOST_DEVICE void turn_to(std::uint32_t first) { first_ = first * k_; }
  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t place(std::uint32_t entry, std::uint32_t i) const {
    return link_.load_shared(shared_word(choices_, first_ + entry * k_ + i));
  }

 private:
  Link& link_;
  std::uint32_t k_;
  std::uint32_t choices_;
  std::uint32_t first_{0};
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
        layout_(work.at, work.rows),
        announced_(link, request.call),
        most_(request.entries),
        places_(places),
        mover_(link, request, pieces, places, nobody),
        next_(own.begin),
        end_(own.end) {}

  /// Begins to load this block's records, which it has taken.
  TMAP_HOST_DEVICE void begin() {
    link_.proxy_fence();  // they are read by bulk copies
    load_part();
  }
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
    places_.turn_to(next_);
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
  few_tokens_layout layout_;
  announcements<Link> announced_;
  std::uint32_t most_;  ///< records of a part
  record_places<Link>& places_;
  row_mover<Link, record_places<Link>> mover_;
  std::uint32_t next_;       ///< record of this block that was not fetched
  std::uint32_t end_;        ///< of this block's records
  std::uint32_t loaded_{0};  ///< records from `next_` on that come to shared memory
};

/// Returns the threads that take a block's own records, and those that learn the experts of all:
/// half of the warps each. A lone warp does both.
struct receiving_warps {
  word_worker records, experts;
  bool takes, learns;
};
TMAP_HOST_DEVICE constexpr receiving_warps warps_that_receive(const word_worker& mine) {
  if (mine.warp.count == 1) return {mine, mine, true, true};
  const std::uint64_t half = mine.warp.count / 2, number = mine.warp.number;
  return {
      {{number, half}, mine.lane}, {{number - half, mine.warp.count - half}, mine.lane}, number < half, number >= half};
}

/// Takes this block's `own` records that came with their announcements, and learns the experts of
/// all records. Returns a rank whose records did not come.
template <class Link, class Block>
[[nodiscard]] TMAP_HOST_DEVICE std::uint32_t receive(Link& link, const preparation& work, const coming_records& coming,
                                                     const record_share& own, std::uint32_t call,
                                                     std::uint64_t deadline, const word_worker& mine, Block& block) {
  const receiving_warps warps = warps_that_receive(mine);
  std::uint32_t late = no_rank;
  if (warps.takes) late = take_records(link, work, own, call, deadline, warps.records.thread());
  if (!warps.learns || late != no_rank || coming.are_pulled) return late;
  return learn_experts(link, work, coming, own, call, deadline, warps.experts, block);
}

/// Fetches rows in the first thread of a block. All threads hear where the rows lie.
template <class Link>
TMAP_HOST_DEVICE void fetch_records(Link& link, const exchange_request& rows, std::uint32_t call,
                                    const dispatch_thread& thread, record_fetcher<Link>& fetcher,
                                    std::uint64_t deadline) {
  const peer_verdict heard = hear_and_judge(link, rows, call, deadline, thread);
  if (!thread.leads()) return;
  if (heard.status == peer_status::ok) {
    link.proxy_fence();  // the rows are read by bulk copies
    fetcher.run();
  } else {
    fetcher.leave();
  }
}

/// Sends this block's share of the records once all ranks have given their credits: until then they
/// may read those of the call before.
template <class Link, class Block>
TMAP_HOST_DEVICE void send_departing(Link& link, const preparation& work, std::uint32_t call,
                                     const dispatch_thread& thread, Block& block, std::uint64_t deadline) {
  block.by_rank([&](std::uint32_t choice) { return rank_of_choice(link, work.at, work.given, choice); });
  const bool is_over = thread.leads() && is_broken(link);
  const bool have = have_credits(link, call - 1, deadline, thread.work());
  if (!thread.any(link, is_over || !have)) write_departing(link, work, call, thread.work(), block);
  link.sync();
  if (thread.leads() && block.are_pulled()) link.raise_here(offsetof(window_header, workers_raised), 1);
}

/// Waits until all blocks but the first have taken the records. They had taken `before` when the
/// call began. Returns whether they did, for all threads.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE bool have_taken_all(Link& link, const preparation& work, std::uint32_t before,
                                                   const dispatch_thread& thread, std::uint64_t deadline) {
  bool have = true;
  if (thread.leads()) {
    have = await(link, taken_records.raised, before + work.records.blocks - 1, deadline);
    if (!have) static_cast<void>(give_up_waiting(link, link.rank(), protocol_step::workers));
  }
  return !thread.any(link, !have);
}

/// Runs one block of a dispatch that sends and takes records, and fetches their rows: any but the
/// first, which judges for all. All threads of the block call it. `request` is that of `work` for
/// this block. `block` sorts `by_rank` as in `prepare`. Then `departing` returns its share of the
/// records, and `record` those. It sorts `by_expert`, too, and leaves the rows of its own choices
/// in shared memory.
template <class Link, class Block>
TMAP_HOST_DEVICE void take_and_fetch(Link& link, const preparation& work, const fetch_request& request,
                                     const word_worker& mine, fetch_piece* pieces, Block& block,
                                     std::uint64_t deadline) {
  const dispatch_thread thread{mine.thread(), false};
  const std::uint32_t call = link.load(link.rank(), offsetof(window_header, exchanges)) + 1;
  const std::uint32_t taken = link.load(link.rank(), taken_records.expected);
  exchange_request records = work.records;
  records.block = request.call.block;
  send_departing(link, work, call, thread, block, deadline);
  block.clear(thread.work());
  const bool has_heard = hear_and_judge(link, records, call, deadline, thread).status == peer_status::ok;
  const coming_records coming = records_that_come(link, work, has_heard);
  record_share own = share_of_block(coming.count, records.block, records.blocks);
  const std::uint32_t late = receive(link, work, coming, own, call, deadline, mine, block);
  if (late != no_rank) static_cast<void>(give_up_waiting(link, late, protocol_step::announcement));
  link.sync();
  if (coming.are_pulled) {
    if (thread.leads()) link.raise_here(taken_records.raised, 1);
    if (!have_taken_all(link, work, taken, thread, deadline)) own = {};
    static_cast<void>(learn_experts(link, work, coming, own, call, deadline, mine, block));
    link.sync();
  }
  record_places<Link> places(link, work);
  constexpr pending_groups no_groups{};
  group_raiser<Link> nobody(link, no_groups);
  record_fetcher<Link> fetcher(link, work, own, request, pieces, places, nobody);
  if (thread.leads()) fetcher.begin();
  static_cast<void>(block.by_expert(coming.count, own));
  if (own.begin != own.end) fetch_records(link, request.call, call + 1, thread, fetcher, deadline);
  if (thread.leads()) link.raise_here(offsetof(window_header, workers_raised), 1);
  write_ways_home(link, work.at, own, mine);
}

}  // namespace tmap::kernels::peer
