// SPDX-License-Identifier: Apache-2.0
#pragma once

// Prepares a dispatch of few tokens in the first block of a kernel: it announces the records, and
// sorts those that came. A kernel for each step would take longer to start than to run. The other
// blocks send the records, take those that come, and fetch the rows (protocol_record_fetch.hpp).
// Many tokens need the whole GPU, and take a kernel for each step. Ranks of both kinds exchange the
// same records.

#include "kernels/peer/expert_list.hpp"

namespace tmap::kernels::peer {

/// Bounds the choices of a rank, and those that it has room for. With more, a kernel for each step
/// is faster.
inline constexpr std::uint32_t most_prepared_choices = 8192;

/// Names some of the records that leave, or that come.
struct record_share {
  std::uint32_t begin;
  std::uint32_t end;
};

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
  bool sorts_weights;        ///< the sort by expert also needs the weights of the records

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

struct no_moves : lone_moves {
  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict move(Link&, std::uint32_t) const {
    return {};
  }
};

/// Announces the records, and hears those of all ranks. If some `are_pulled`, it first waits until
/// the other blocks have written them.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE moved_call announce_records(Link& link, const preparation& work, std::uint32_t call,
                                                           bool are_pulled, std::uint64_t deadline) {
  if (are_pulled) {
    const std::uint32_t before = link.load(link.rank(), offsetof(window_header, workers_expected));
    const peer_verdict written = await_workers(link, work.records, workers, before, deadline);
    if (written.status != peer_status::ok) return {call, before, false, written};
  }
  constexpr no_moves moves;
  return begin_call(link, work.records, call, deadline, moves);
}

/// Is raised by each of the other blocks that has taken its records.
inline constexpr worker_signal taken_records{offsetof(window_header, records_raised),
                                             offsetof(window_header, records_expected)};

/// Waits until the other blocks have taken the records, unless the call has failed.
template <class Link>
TMAP_HOST_DEVICE void await_taken(Link& link, const preparation& work, moved_call& records, std::uint64_t deadline) {
  if (is_fatal(records.verdict.status)) return;
  const std::uint32_t before = link.load(link.rank(), taken_records.expected);
  const peer_verdict met = await_workers(link, work.records, taken_records, before, deadline);
  if (met.status != peer_status::ok) records.verdict = met;
}

/// Takes a thread's share of the experts of records that came with their announcements. The other
/// blocks take whole records. `use(choice, expert)` gets each. Returns a rank whose records did not
/// come.
template <class Link, class Use>
[[nodiscard]] TMAP_HOST_DEVICE std::uint32_t take_experts(Link& link, const preparation& work, std::uint32_t call,
                                                          std::uint64_t deadline, const worker& mine, const Use& use) {
  constexpr std::uint32_t first_part = record::experts / packet_words;
  const announcements<Link> announced(link, work.records);
  const std::uint32_t of_record = packets_of(record_words(work.at.k, work.at.scales));
  const std::uint32_t parts = packets_of(record::experts + work.at.k) - first_part;  // that have experts
  std::uint32_t first = 0;
  TMAP_KEEP_ROLLED
  for (std::uint32_t source = 0; source < link.ranks(); ++source) {
    const std::uint32_t records = announced.total(source, link.rank());
    const coming_packets<Link> coming{link, source, call, deadline};
    TMAP_KEEP_ROLLED
    for (auto i = static_cast<std::uint32_t>(mine.number); i < records * parts;
         i += static_cast<std::uint32_t>(mine.count)) {
      const std::uint32_t number = i / parts, part = first_part + i - number * parts;
      packet found[packets_at_once];
      if (!coming.fetch(number * of_record + part, 0, 1, found)) return source;
      for (std::uint32_t word = 0; word < packet_words; ++word) {
        const std::uint32_t j = part * packet_words + word - record::experts;
        if (j < work.at.k) use((first + number) * work.at.k + j, found[0].words[word]);
      }
    }
    first += records;
  }
  return no_rank;
}

/// Reads a thread's share of the experts of so many records that the other blocks have taken.
template <class Link, class Use>
TMAP_HOST_DEVICE void read_experts(Link& link, const expert_arrays& at, std::uint32_t records, const worker& mine,
                                   const Use& use) {
  share(mine, records * at.k, [&](std::uint64_t i) {
    const auto choice = static_cast<std::uint32_t>(i), record = choice / at.k;
    const std::uint32_t word = record::experts + choice - record * at.k;
    use(choice, link.load(link.rank(), record_word(at, at.arriving, record, word)));
  });
}

/// Returns how many records came, and writes it for later kernels.
template <class Link>
TMAP_HOST_DEVICE std::uint32_t count_records(Link& link, const preparation& work, const moved_call& records) {
  const announcements<Link> announced(link, work.records);
  const bool have_come = records.verdict.status == peer_status::ok;
  const std::uint32_t total = have_come ? static_cast<std::uint32_t>(announced.rows_of_ranks(link.ranks())) : 0;
  link.store(link.rank(), work.at.total, total);
  return total;
}

/// Returns whether the sort waits for the other blocks to take the records: it needs all of their
/// words, or some lie at other ranks. To read those again would take longer than to wait.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE bool sorts_taken(Link& link, const preparation& work, const moved_call& records) {
  if (records.verdict.status != peer_status::ok) return false;
  return work.sorts_weights || announcements<Link>(link, work.records).are_moved_here();
}

/// Announces the fetch of rows, if the records come.
template <class Link>
TMAP_HOST_DEVICE void announce_rows(Link& link, const preparation& work, const moved_call& records) {
  if (records.verdict.status != peer_status::ok) return;
  announce_early(link, work.rows.call, records.call + 1);
  write_out_splits(link, work.records, {0, 1});
}

/// Ends the exchange of records, which are sorted. `late` is a rank whose records did not come.
template <class Link>
TMAP_HOST_DEVICE void end_records(Link& link, const preparation& work, moved_call& records, bool are_taken,
                                  std::uint32_t late, std::uint64_t deadline) {
  if (late != no_rank) records.verdict = end_taking(link, late);
  if (!are_taken) await_taken(link, work, records, deadline);
  report(link, records.verdict);
  if (records.is_counted()) give_credits(link);
}

/// Ends the dispatch once the other blocks have moved the rows. Until then they read the epoch.
template <class Link>
TMAP_HOST_DEVICE void end_dispatch(Link& link, const preparation& work, const moved_call& records,
                                   std::uint64_t deadline) {
  constexpr no_moves moves;
  const moved_call rows = begin_call(link, work.rows.call, records.call + 1, deadline, moves);
  if (!rows.has_begun && records.is_counted()) {
    link.store(link.rank(), offsetof(window_header, exchanges), records.call);
  }
  static_cast<void>(end_call(link, work.rows.call, deadline, rows, moves));
  const std::uint64_t steps = offsetof(window_header, steps_expected);
  link.store(link.rank(), steps, link.load(link.rank(), steps) + 1);
}

/// Lets the block know the experts of the records. If these were not taken before, the first warp
/// announces the fetch of rows meanwhile.
template <class Link, class Block>
TMAP_HOST_DEVICE void learn_experts(Link& link, const preparation& work, const moved_call& records,
                                    const word_worker& mine, Block& block, std::uint64_t deadline) {
  const auto set = [&](std::uint32_t choice, std::uint32_t expert) {
    block.set_expert(choice, expert < work.at.experts ? expert : none);
  };
  if (block.are_taken()) return read_experts(link, work.at, block.arrived(), mine.thread(), set);
  if (mine.warp.number != 0) {
    if (block.arrived() == 0) return;
    const word_worker taker{{mine.warp.number - 1, mine.warp.count - 1}, mine.lane};
    const std::uint32_t late = take_experts(link, work, records.call, deadline, taker.thread(), set);
    if (late != no_rank) block.set_late(late);
  } else if (mine.lane.number == 0) {
    announce_rows(link, work, records);
  }
}

/// Runs the first block of a dispatch. It announces the records, sorts those that came, and waits
/// for the other blocks. All threads of the block call it. `block` sorts by all of its threads:
/// `by_rank` those choices that begin a record, and then `are_pulled` returns whether some are not
/// eager. The first thread's `set_arrived` lets all threads know how many records came, and whether
/// they `are_taken`. All `set_expert` of each choice of these, or `set_late` if they did not come.
/// Then it sorts `by_expert`, as `moe::route` does.
template <class Link, class Block>
TMAP_HOST_DEVICE void prepare(Link& link, const preparation& work, const word_worker& mine, Block& block,
                              std::uint64_t deadline) {
  const bool leads = mine.thread().number == 0;
  moved_call records{};
  records.call = link.load(link.rank(), offsetof(window_header, exchanges)) + 1;
  block.by_rank([&](std::uint32_t choice) { return rank_of_choice(link, work.at, work.given, choice); });
  // Others may read records and packets of the call before until all have their credits.
  if (leads) static_cast<void>(report(link, await_credits(link, deadline)));
  link.sync();
  if (leads) {
    records = announce_records(link, work, records.call, block.are_pulled(), deadline);
    const bool are_taken = sorts_taken(link, work, records);
    if (are_taken) {
      announce_rows(link, work, records);
      await_taken(link, work, records, deadline);
    }
    block.set_arrived(count_records(link, work, records), are_taken);
  }
  link.sync();
  learn_experts(link, work, records, mine, block, deadline);
  link.sync();
  block.by_expert();
  link.sync();
  if (leads) {
    link.raise_here(offsetof(window_header, steps_raised), 1);  // the places are known
    end_records(link, work, records, block.are_taken(), block.late(), deadline);
  }
  link.sync();  // all threads know the records that other blocks have taken
  write_ways_home(link, work.at, mine);
  end_pending(link, work.at.pending, mine.thread());
  if (leads) end_dispatch(link, work, records, deadline);
}

}  // namespace tmap::kernels::peer
