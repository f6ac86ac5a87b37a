// SPDX-License-Identifier: Apache-2.0
#pragma once

// Prepares a dispatch of few tokens in the first block of a kernel: it announces the records, and
// writes where experts begin. A kernel for each step would take longer to start than to run. The
// other blocks send the records, take those that come, and fetch the rows
// (protocol_record_fetch.hpp). Many tokens need the whole GPU, and take a kernel for each step.
// Ranks of both kinds exchange the same records.

#include "kernels/peer/expert_list.hpp"

namespace tmap::kernels::peer {

/// Bounds the choices of a rank, and those that it has room for. With more, a kernel for each step
/// is faster.
inline constexpr std::uint32_t most_prepared_choices = 8192;

/// Returns those of so many records that are the share of one of `blocks` blocks. The first block
/// has none.
TMAP_HOST_DEVICE constexpr record_share share_of_block(std::uint32_t records, std::uint32_t block,
                                                       std::uint32_t blocks) {
  if (block == 0) return {0, 0};
  const list_deal deal{records, blocks - 1};
  return {deal.begin(block - 1), deal.begin(block)};
}

/// Describes a dispatch whose first block prepares it.
struct preparation {
  expert_arrays at;
  token_choices given;
  exchange_request records;  ///< the other blocks take them
  fetch_request rows;        ///< they fetch them; it is announced early or not

  /// Returns whether so many records for one rank are eager rows.
  [[nodiscard]] TMAP_HOST_DEVICE bool has_eager_records(std::uint32_t ranks, std::uint32_t count) const {
    return records.is_eager && are_eager(ranks, count, records.row_bytes);
  }
};

/// A dispatch is the exchange of records, and the fetch of rows.
inline constexpr std::uint32_t calls_of_dispatch = 2;

/// Writes the packets of some records, from number `first` on, and sends those that are eager.
template <class Link, class Block>
struct departing_packets {
  Link& link;
  const expert_arrays& at;
  const Block& block;
  record_maker made;
  std::uint32_t first;
  std::uint32_t words;    ///< of a record
  std::uint32_t packets;  ///< of a record
  std::uint32_t tag;

  [[nodiscard]] TMAP_HOST_DEVICE packet load(std::uint32_t i) const {
    const std::uint32_t record = first + i / packets, word = i % packets * packet_words;
    const std::uint32_t token = block.record(record).token;
    const auto loaded = [&](std::uint32_t number) { return made.load(link, record, token, number); };
    return {{loaded(word), loaded(word + 1), loaded(word + 2)}, tag};
  }
  TMAP_HOST_DEVICE void use(std::uint32_t i, packet loaded) const {
    const std::uint32_t record = first + i / packets, part = i % packets;
    const departing_record of = block.record(record);
    for (std::uint32_t j = 0; j < packet_words; ++j) {
      loaded.words[j] = made.finish(link, record, of, part * packet_words + j, loaded.words[j]);
    }
    if (of.eager == none) return store(record, part, loaded);
    link.send(of.rank, eager_packet_at(link.ranks(), link.rank(), of.eager * packets + part), loaded);
  }

 private:
  TMAP_HOST_DEVICE void store(std::uint32_t record, std::uint32_t part, const packet& finished) const {
    for (std::uint32_t j = 0; j < packet_words; ++j) {
      const std::uint32_t word = part * packet_words + j;
      if (word < words) link.store(link.rank(), record_word(at, at.departing, record, word), finished.words[j]);
    }
  }
};

/// Writes or sends this block's share of the records of call number `call`.
template <class Link, class Block>
TMAP_HOST_DEVICE void write_departing(Link& link, const preparation& work, std::uint32_t call, const worker& mine,
                                      const Block& block) {
  const std::uint32_t words = record_words(work.at.k, work.at.scales), packets = packets_of(words);
  const record_share own = block.departing();
  const departing_packets<Link, Block> departing{link,      work.at, block,   {work.at, work.given},
                                                 own.begin, words,   packets, tag_of(call)};
  share_field<packets_at_once>(mine, (own.end - own.begin) * packets, departing);
}

/// Is a thread of a block of a dispatch. All of them announce and hear, and one leads. The first
/// block announces the records, and the others send those that are eager.
struct dispatch_thread {
  worker mine;
  bool are_pulled;  ///< some of the rows that it announces

  [[nodiscard]] TMAP_HOST_DEVICE bool leads() const { return mine.number == 0; }
  [[nodiscard]] TMAP_HOST_DEVICE const worker& work() const { return mine; }
  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE bool any(Link& link, bool own) const {
    return link.sync_or(own);
  }
  template <class Link, class MaySend>
  [[nodiscard]] TMAP_HOST_DEVICE bool send(Link&, const exchange_request&, std::uint32_t,
                                           const MaySend& may_send) const {
    return may_send(are_pulled);
  }
};

/// Is what the first block does in a call whose rows the others move.
struct dispatch_moves : block_moves<const dispatch_thread> {
  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict move(Link&, std::uint32_t) const {
    return {};
  }
};

/// Returns whether this is the warp that announces the fetch of rows: the last one. It gets that
/// ready while others announce and hear the records.
TMAP_HOST_DEVICE constexpr bool announces_rows(const word_worker& mine) {
  return mine.warp.number + 1 == mine.warp.count;
}

/// Is the exchange of records. The block knows how many records each rank gets.
template <class Block>
struct records_moves : dispatch_moves {
  const word_worker& mine;
  const Block& sorted;

  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict announce(Link& link, const exchange_request& request, std::uint32_t call,
                                                       std::uint64_t deadline) const {
    const auto records_for = [this](const Link&, const exchange_request&, std::uint32_t rank, std::uint32_t) {
      return sorted.departures(rank);
    };
    return end_announcing(link, call, announce_together(link, request, call, deadline, block, records_for));
  }
  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict hear(Link& link, const exchange_request& request, std::uint32_t call,
                                                   std::uint64_t deadline) const {
    if (announces_rows(mine)) release_slot(link, mine.lane);
    return dispatch_moves::hear(link, request, call, deadline);
  }
};

/// Waits until the other blocks have written the records that are pulled. Returns why they did not,
/// or ok.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict await_written(Link& link, const preparation& work,
                                                          const dispatch_thread& thread, std::uint64_t deadline) {
  peer_verdict written{};
  if (thread.leads()) {
    const std::uint32_t before = link.load(link.rank(), offsetof(window_header, workers_expected));
    written = await_workers(link, work.records, workers, before, deadline);
  }
  if (!thread.any(link, written.status != peer_status::ok) || thread.leads()) return written;
  return {peer_status::broken};
}

/// Announces the records, and hears those of all ranks.
template <class Link, class Block>
[[nodiscard]] TMAP_HOST_DEVICE moved_call announce_records(Link& link, const preparation& work, std::uint32_t call,
                                                           const word_worker& mine, const dispatch_thread& thread,
                                                           const Block& block, std::uint64_t deadline) {
  const peer_verdict written = thread.are_pulled ? await_written(link, work, thread, deadline) : peer_verdict{};
  if (written.status != peer_status::ok) return {call, 0, false, written};
  const records_moves<Block> moves{{{{}, thread}}, mine, block};
  return begin_call(link, work.records, call, deadline, moves);
}

/// Is raised by each of the other blocks that has taken its records, if some are pulled.
inline constexpr worker_signal taken_records{offsetof(window_header, records_raised),
                                             offsetof(window_header, records_expected)};

/// Waits until the other blocks have taken the records.
template <class Link>
TMAP_HOST_DEVICE void await_taken(Link& link, const preparation& work, moved_call& records, std::uint64_t deadline) {
  const std::uint32_t before = link.load(link.rank(), taken_records.expected);
  const peer_verdict met = await_workers(link, work.records, taken_records, before, deadline);
  if (met.status != peer_status::ok) records.verdict = met;
}

/// Is what this rank gets: records, of which some may lie at other ranks.
struct coming_records {
  std::uint32_t count;
  bool are_pulled;
};
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE coming_records records_that_come(Link& link, const preparation& work, bool are_good) {
  if (!are_good) return {};
  const announcements<Link> announced(link, work.records);
  return {static_cast<std::uint32_t>(announced.rows_of_ranks(link.ranks())), announced.are_moved_here()};
}

/// Takes a thread's share of the experts of records that came with their announcements.
/// `use(choice, expert)` gets each. Returns a rank whose records did not come.
template <class Link, class Use>
[[nodiscard]] TMAP_HOST_DEVICE std::uint32_t take_experts(Link& link, const preparation& work, std::uint32_t call,
                                                          std::uint64_t deadline, const word_worker& mine,
                                                          const Use& use) {
  constexpr std::uint32_t first_part = record::experts / packet_words;
  const announcements<Link> announced(link, work.records);
  const std::uint32_t of_record = packets_of(record_words(work.at.k, work.at.scales));
  const std::uint32_t parts = packets_of(record::experts + work.at.k) - first_part;  // that have experts
  const dealt_items sources = deal_to_warps(mine, link.ranks());
  TMAP_KEEP_ROLLED
  for (std::uint32_t source = sources.first; source < link.ranks(); source += sources.step) {
    const std::uint32_t packets = announced.total(source, link.rank()) * parts;
    const auto first = static_cast<std::uint32_t>(announced.rows_of_ranks(source));
    const coming_packets<Link> coming{link, source, call, deadline};
    TMAP_KEEP_ROLLED
    for (auto i = static_cast<std::uint32_t>(sources.own.number); i < packets;
         i += static_cast<std::uint32_t>(sources.own.count)) {
      const std::uint32_t number = i / parts, part = first_part + i - number * parts;
      packet found[packets_at_once];
      if (!coming.fetch(number * of_record + part, 0, 1, found)) return source;
      for (std::uint32_t word = 0; word < packet_words; ++word) {
        const std::uint32_t j = part * packet_words + word - record::experts;
        if (j < work.at.k) use((first + number) * work.at.k + j, found[0].words[word]);
      }
    }
  }
  return no_rank;
}

/// Reads a thread's share of the experts of so many records that blocks of this rank have taken.
template <class Link, class Use>
TMAP_HOST_DEVICE void read_experts(Link& link, const expert_arrays& at, std::uint32_t records, const worker& mine,
                                   const Use& use) {
  share(mine, records * at.k, [&](std::uint64_t i) {
    const auto choice = static_cast<std::uint32_t>(i), record = choice / at.k;
    const std::uint32_t word = record::experts + choice - record * at.k;
    use(choice, link.load(link.rank(), record_word(at, at.arriving, record, word)));
  });
}

/// Lets a block know the experts of all records, by a thread's share of them. Those that are pulled
/// have been taken by the blocks of this rank. `own` are those of the block. Returns a rank whose
/// records did not come.
template <class Link, class Block>
[[nodiscard]] TMAP_HOST_DEVICE std::uint32_t learn_experts(Link& link, const preparation& work,
                                                           const coming_records& coming, const record_share& own,
                                                           std::uint32_t call, std::uint64_t deadline,
                                                           const word_worker& mine, Block& block) {
  const auto set = [&](std::uint32_t choice, std::uint32_t expert) {
    block.set_expert(choice, expert < work.at.experts ? expert : none, choice < own.begin * work.at.k);
  };
  if (coming.count == 0) return no_rank;
  if (!coming.are_pulled) return take_experts(link, work, call, deadline, mine, set);
  read_experts(link, work.at, coming.count, mine.thread(), set);
  return no_rank;
}

/// Ends the exchange of records. `late` is a rank whose records did not come. Packets may still be
/// taken: others send new ones once they have the credits of the fetch.
template <class Link>
TMAP_HOST_DEVICE void end_records(Link& link, moved_call& records, std::uint32_t late) {
  if (late != no_rank) records.verdict = end_taking(link, late);
  report(link, records.verdict);
  if (records.is_counted()) give_credits(link);
}

/// Ends the dispatch once the other blocks have moved the rows. Until then they read the epoch.
template <class Link>
TMAP_HOST_DEVICE void end_dispatch(Link& link, const preparation& work, const moved_call& records,
                                   const dispatch_thread& thread, std::uint64_t deadline) {
  const dispatch_moves moves{{{}, thread}};
  const moved_call rows = begin_call(link, work.rows.call, records.call + 1, deadline, moves);
  if (!thread.leads()) return;
  static_cast<void>(end_call(link, work.rows.call, deadline, rows, moves));
  if (!rows.has_begun && records.is_counted()) {
    link.store(link.rank(), offsetof(window_header, exchanges), records.call);
  }
}

/// Lets the first block know the experts of the records. The last warp announces the fetch of rows,
/// and the others take the experts. Returns what has come.
template <class Link, class Block>
[[nodiscard]] TMAP_HOST_DEVICE coming_records receive_records(Link& link, const preparation& work, moved_call& records,
                                                              const word_worker& mine, const dispatch_thread& thread,
                                                              Block& block, std::uint64_t deadline) {
  coming_records coming = records_that_come(link, work, records.verdict.status == peer_status::ok);
  if (announces_rows(mine) && records.verdict.status == peer_status::ok) {
    send_early_slot(link, work.rows.call, records.call + 1, mine.lane);
  }
  if (coming.are_pulled) {
    if (thread.leads()) await_taken(link, work, records, deadline);
    if (thread.any(link, records.verdict.status != peer_status::ok)) coming.count = 0;
  }
  if (thread.leads()) link.store(link.rank(), work.at.total, coming.count);
  if (announces_rows(mine)) return coming;
  const word_worker taker{{mine.warp.number, mine.warp.count - 1}, mine.lane};
  const std::uint32_t late = learn_experts(link, work, coming, {}, records.call, deadline, taker, block);
  if (late != no_rank) block.set_late(late);
  return coming;
}

/// Lets all ranks know if rows have no room, by the announcement of the fetch.
template <class Link>
TMAP_HOST_DEVICE void keep_lack(Link& link, const preparation& work, bool lacks) {
  const std::uint64_t lacking = work.rows.call.lacking;
  if (lacking != 0) link.store(link.rank(), lacking, lacks ? 1 : 0);
}

/// Runs the first block of a dispatch. It announces the records, counts those that came, and waits
/// for the other blocks. All threads of the block call it. `block` sorts by all of its threads:
/// `by_rank` those choices that begin a record, and then `departures` returns how many there are
/// for a rank, and `are_pulled` whether some are not eager. Once its counts are `clear`, they
/// `set_expert` of each choice of the records that came, or `set_late` if these did not come. Then
/// it sorts `by_expert`, as `moe::route` does, and writes where experts begin. That returns whether
/// a choice has no room.
template <class Link, class Block>
TMAP_HOST_DEVICE void prepare(Link& link, const preparation& work, const word_worker& mine, Block& block,
                              std::uint64_t deadline) {
  const bool leads = mine.thread().number == 0;
  const std::uint32_t call = link.load(link.rank(), offsetof(window_header, exchanges)) + 1;
  if (leads) block.set_late(no_rank);
  block.by_rank([&](std::uint32_t choice) { return rank_of_choice(link, work.at, work.given, choice); });
  link.sync();
  if (announces_rows(mine) && mine.lane.number == 0) make_early_slot(link, work.rows.call);
  if (mine.warp.number != 0) block.clear(word_worker{{mine.warp.number - 1, mine.warp.count - 1}, mine.lane}.thread());
  const dispatch_thread thread{mine.thread(), block.are_pulled()};
  moved_call records = announce_records(link, work, call, mine, thread, block, deadline);
  const coming_records coming = receive_records(link, work, records, mine, thread, block, deadline);
  link.sync();
  const bool lacks = thread.any(link, block.by_expert(coming.count, {}));
  if (leads) {
    keep_lack(link, work, lacks);
    end_records(link, records, block.late());
  }
  if (records.verdict.status == peer_status::ok) write_out_splits(link, work.records, mine.thread());
  end_pending(link, work.at.pending, mine.thread());
  end_dispatch(link, work, records, {mine.thread(), true}, deadline);
}

}  // namespace tmap::kernels::peer
