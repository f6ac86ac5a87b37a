// SPDX-License-Identifier: Apache-2.0
#pragma once

// Prepares a dispatch of few tokens in one block: all that comes before rows are fetched. A kernel
// for each step would take longer to start than to run. Other blocks of the same kernel fetch the
// rows (protocol_record_fetch.hpp). Many tokens need the whole GPU, and take a kernel for each
// step. Ranks of both kinds exchange the same records.

#include "kernels/peer/expert_list.hpp"

namespace tmap::kernels::peer {

/// Bounds the choices of a rank, and those that it has room for. With more, a kernel for each step
/// is faster.
inline constexpr std::uint32_t most_prepared_choices = 2048;

/// Describes a dispatch whose first block prepares it.
struct preparation {
  expert_arrays at;
  token_choices given;
  exchange_request records;  ///< by the first block
  fetch_request rows;        ///< by the other blocks; it is announced early or not

  /// Returns whether so many records for one rank are eager rows.
  [[nodiscard]] TMAP_HOST_DEVICE bool has_eager_records(std::uint32_t ranks, std::uint32_t count) const {
    return records.is_eager && are_eager(ranks, count, records.row_bytes);
  }
};

/// Names a thread of the block. Its first one leads.
struct preparing_thread {
  word_worker all;
  bool takes;          ///< whether it takes records
  word_worker taking;  ///< among those that do

  TMAP_HOST_DEVICE bool leads() const { return all.thread().number == 0; }
};

/// Lets the threads of a block that take records do so once the first one has waited for them.
/// `work(call)` returns the rank of records that did not come.
template <class Block, class Work>
class block_team {
 public:
  TMAP_HOST_DEVICE block_team(Block& block, const Work& work) : block_(block), work_(work) {}

  TMAP_HOST_DEVICE void begin(std::uint32_t call) {
    has_begun_ = true;
    block_.begin(true, call);
  }
  /// Works, too, if the block has no others. Returns the rank of records that did not come.
  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t finish(std::uint32_t call) {
    std::uint32_t late = no_rank;
    if constexpr (Block::leader_takes) late = work_(call);
    const std::uint32_t others = block_.await_others();
    return late == no_rank ? others : late;
  }
  TMAP_HOST_DEVICE void dismiss() {
    if (!has_begun_) block_.begin(false, 0);
  }
  TMAP_HOST_DEVICE void follow() {
    if (block_.await_begin()) block_.end(work_(block_.call()));
  }

 private:
  Block& block_;
  const Work& work_;
  bool has_begun_{false};
};

template <class Team>
struct record_moves {
  const preparation& work;
  Team& team;

  TMAP_HOST_DEVICE void send(std::uint32_t) const {}  // all threads have
  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict move(Link& link, std::uint32_t call) const {
    team.begin(call);
    announce_early(link, work.rows.call, call + 1);
    const std::uint32_t late = team.finish(call);
    const announcements<Link> told(link, work.records);
    const auto total = static_cast<std::uint32_t>(told.rows_of_ranks(link.ranks()));
    if (late == no_rank) link.store(link.rank(), work.at.total, total);
    return end_taking(link, late);
  }
};

/// Does as if no token had come.
template <class Link>
TMAP_HOST_DEVICE void clear_arrivals(Link& link, const expert_arrays& at, const worker& mine) {
  if (mine.number == 0) link.store(link.rank(), at.total, 0);
  share(mine, link.ranks(), [&](std::uint64_t i) { link.store(link.rank(), word_at(at.arrived, i), 0); });
  share(mine, at.arrivals * at.k, [&](std::uint64_t i) { link.store(link.rank(), word_at(at.ids, i), none); });
}

/// Writes one of the words of the records, in the order of `block`, and sends it if it is eager.
template <class Link, class Block>
struct departing_field {
  Link& link;
  const expert_arrays& at;
  const Block& block;
  record_field made;
  std::uint32_t word;
  std::uint32_t tag;

  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t load(std::uint32_t i) const { return made.load(block.record(i).token); }
  TMAP_HOST_DEVICE void use(std::uint32_t i, std::uint32_t loaded) const {
    const departing_record of = block.record(i);
    const std::uint32_t value = made.finish(i, of, loaded);
    if (of.eager == none) return link.store(link.rank(), record_word(at, at.departing, i, word), value);
    const std::uint32_t number = of.eager * record_words(at.k, at.scales) + word;
    link.send_word(of.rank, eager_word_at(link.ranks(), link.rank(), number), tagged_word{value, tag});
  }
};

/// Writes or sends the records, unless the last verdict in the window is a failure: others may then
/// still read those that are there.
template <class Link, class Block>
TMAP_HOST_DEVICE void write_departing(Link& link, const preparation& work, const word_worker& mine,
                                      const Block& block) {
  const std::uint32_t call = link.load(link.rank(), offsetof(window_header, exchanges)) + 1;
  if (!is_success(link, offsetof(window_header, verdict))) return;
  share_words(mine, block.records(), record_words(work.at.k, work.at.scales), [&](std::uint32_t word) {
    return departing_field<Link, Block>{link, work.at, block, {work.at, work.given, word}, word, tag_of(call)};
  });
}

/// Takes a lane's share of the records that all ranks have announced. Returns a rank whose records
/// did not come.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE std::uint32_t take_arriving(Link& link, const preparation& work, std::uint32_t call,
                                                           std::uint64_t deadline, const word_worker& mine) {
  const announcements<Link> told(link, work.records);
  if (mine.thread().number == 0) write_out_splits(link, work.records);
  std::uint32_t first = 0, late = no_rank;
  TMAP_KEEP_ROLLED
  for (std::uint32_t source = 0; source < link.ranks() && late == no_rank; ++source) {
    const eager_source<Link> of(link, source, call, deadline);
    const coming_records from{told.begin_at(source), told.is_eager(source), told.total(source, link.rank()), first};
    share(mine.lane, record_words(work.at.k, work.at.scales), [&](std::uint64_t word) {
      taken_field<Link> field(link, work.at, of, from, static_cast<std::uint32_t>(word));
      share_field(mine.warp, from.count, field);
      if (field.is_late()) late = source;
    });
    first += from.count;
  }
  return late;
}

/// Announces the records, and takes those that came. Returns the call to the leader.
template <class Link, class Block>
[[nodiscard]] TMAP_HOST_DEVICE moved_call exchange_records(Link& link, const preparation& work,
                                                           const preparing_thread& mine, Block& block,
                                                           std::uint64_t deadline) {
  moved_call moved{};
  const auto take = [&](std::uint32_t call) { return take_arriving(link, work, call, deadline, mine.taking); };
  block_team<Block, decltype(take)> team(block, take);
  if (mine.leads()) {
    moved = begin_call(link, work.records, deadline, record_moves<decltype(team)>{work, team});
    team.dismiss();
  } else if (mine.takes) {
    team.follow();
  }
  return moved;
}

/// Lets the other blocks go on with their next step. It carries what this block has written. They
/// fetch rows once the records have come, and put them to their places once these are known.
template <class Link>
TMAP_HOST_DEVICE void raise_step(Link& link) {
  link.raise_here(offsetof(window_header, steps_raised), 1);
}
inline constexpr std::uint32_t records_step = 1, places_step = 2;  ///< steps raised by then, and in the end

/// Lets the other blocks go on with the records that came, or without any.
template <class Link>
TMAP_HOST_DEVICE void show_records(Link& link, const moved_call& records) {
  if (records.has_begun && !is_fatal(records.verdict.status))
    link.store(link.rank(), offsetof(window_header, exchanges), records.call);
  report(link, records.verdict);
  raise_step(link);
}

struct no_moves : lone_moves {
  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict move(Link&, std::uint32_t) const {
    return {};
  }
};

/// Ends the exchange of records, and the fetch of rows once the other blocks have moved them.
template <class Link>
TMAP_HOST_DEVICE void end_dispatch(Link& link, const preparation& work, const moved_call& records,
                                   std::uint64_t deadline) {
  static_cast<void>(end_call(link, work.records, deadline, records));
  const moved_call rows = begin_call(link, work.rows.call, deadline, no_moves{});
  static_cast<void>(end_call(link, work.rows.call, deadline, rows));
  const std::uint64_t steps = offsetof(window_header, steps_expected);
  link.store(link.rank(), steps, link.load(link.rank(), steps) + places_step);
}

/// Runs the first block of a dispatch. It waits for credits, sends a record for each token and
/// rank, sorts what came, and waits for the other blocks. All threads of the block call it. `block`
/// sorts by all of its threads: `by_rank` those choices that begin a record, and then `records` and
/// `record` return their order, and `by_expert` those that came, as `moe::route` does. Its `begin`
/// ends `await_begin` in the other threads that take records, and gives them the `call`. Their
/// `end` ends its `await_others`, which returns a rank that one of them gave, or `no_rank`.
template <class Link, class Block>
TMAP_HOST_DEVICE void prepare(Link& link, const preparation& work, const preparing_thread& mine, Block& block,
                              std::uint64_t deadline) {
  if (mine.leads()) static_cast<void>(report(link, await_credits(link, deadline)));
  block.by_rank([&](std::uint32_t choice) { return rank_of_choice(link, work.at, work.given, choice); });
  link.sync();  // nothing is overwritten before all have their credits
  clear_arrivals(link, work.at, mine.all.thread());
  write_departing(link, work, mine.all, block);
  link.sync();
  const moved_call records = exchange_records(link, work, mine, block, deadline);
  if (mine.leads()) show_records(link, records);
  link.sync();
  block.by_expert();
  link.sync();
  if (mine.leads()) raise_step(link);
  write_ways_home(link, work.at, mine.all);
  end_pending(link, work.at.pending, mine.all.thread());
  if (mine.leads()) end_dispatch(link, work, records, deadline);
}

}  // namespace tmap::kernels::peer
