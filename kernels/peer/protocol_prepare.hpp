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

  /// Returns whether so many records for one rank are eager rows.
  [[nodiscard]] TMAP_HOST_DEVICE bool has_eager_records(std::uint32_t ranks, std::uint32_t count) const {
    return records.is_eager && are_eager(ranks, count, records.row_bytes);
  }
};

/// A dispatch is the exchange of records, and the fetch of rows.
inline constexpr std::uint32_t calls_of_dispatch = 2;

/// Announces the fetch of rows while the other blocks take the records.
struct record_moves : lone_moves {
  const preparation& work;

  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict move(Link& link, std::uint32_t call) const {
    announce_early(link, work.rows.call, call + 1);
    write_out_splits(link, work.records, {0, 1});
    return {};
  }
};

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

/// Exchanges the records: waits until the other blocks have taken them. Returns how that ended. If
/// some `are_pulled`, it first waits until the other blocks have written them.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE moved_call exchange_records(Link& link, const preparation& work, bool are_pulled,
                                                           std::uint64_t deadline) {
  const std::uint32_t call = link.load(link.rank(), offsetof(window_header, exchanges)) + 1;
  if (are_pulled) {
    const std::uint32_t before = link.load(link.rank(), offsetof(window_header, workers_expected));
    const peer_verdict written = await_workers(link, work.records, before, deadline);
    if (written.status != peer_status::ok) return {call, before, false, written};
  }
  moved_call records = begin_call(link, work.records, call, deadline, record_moves{{}, work});
  if (is_fatal(records.verdict.status)) return records;
  const peer_verdict met = await_workers(link, work.records, records.before, deadline);
  if (met.status != peer_status::ok) records.verdict = met;
  return records;
}

/// Returns how many records came, and writes it for later kernels.
template <class Link>
TMAP_HOST_DEVICE std::uint32_t count_records(Link& link, const preparation& work, const moved_call& records) {
  const announcements<Link> announced(link, work.records);
  const bool have_come = records.verdict.status == peer_status::ok;
  const std::uint32_t total = have_come ? static_cast<std::uint32_t>(announced.rows_of_ranks(link.ranks())) : 0;
  link.store(link.rank(), work.at.total, total);
  report(link, records.verdict);
  return total;
}

struct no_moves : lone_moves {
  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict move(Link&, std::uint32_t) const {
    return {};
  }
};

/// Ends the dispatch once the other blocks have moved the rows. Until then they read the epoch.
template <class Link>
TMAP_HOST_DEVICE void end_dispatch(Link& link, const preparation& work, const moved_call& records,
                                   std::uint64_t deadline) {
  const moved_call rows = begin_call(link, work.rows.call, records.call + 1, deadline, no_moves{});
  if (!rows.has_begun && records.is_counted()) {
    link.store(link.rank(), offsetof(window_header, exchanges), records.call);
  }
  static_cast<void>(end_call(link, work.rows.call, deadline, rows, no_moves{}));
  const std::uint64_t steps = offsetof(window_header, steps_expected);
  link.store(link.rank(), steps, link.load(link.rank(), steps) + 1);
}

/// Runs the first block of a dispatch. It announces the records, sorts those that came, and waits
/// for the other blocks. All threads of the block call it. `block` sorts by all of its threads:
/// `by_rank` those choices that begin a record, and then `are_pulled` returns whether some are not
/// eager. It sorts `by_expert` the choices of as many records as `set_arrived` got from the first
/// thread, as `moe::route` does.
template <class Link, class Block>
TMAP_HOST_DEVICE void prepare(Link& link, const preparation& work, const word_worker& mine, Block& block,
                              std::uint64_t deadline) {
  const bool leads = mine.thread().number == 0;
  moved_call records{};
  block.by_rank([&](std::uint32_t choice) { return rank_of_choice(link, work.at, work.given, choice); });
  // Others may read records and packets of the call before until all have their credits.
  if (leads) static_cast<void>(report(link, await_credits(link, deadline)));
  link.sync();
  if (leads) {
    records = exchange_records(link, work, block.are_pulled(), deadline);
    block.set_arrived(count_records(link, work, records));
  }
  link.sync();
  block.by_expert();
  link.sync();
  if (leads) {
    link.raise_here(offsetof(window_header, steps_raised), 1);  // the places are known
    if (records.is_counted()) give_credits(link);
  }
  write_ways_home(link, work.at, mine);
  end_pending(link, work.at.pending, mine.thread());
  if (leads) end_dispatch(link, work, records, deadline);
}

}  // namespace tmap::kernels::peer
