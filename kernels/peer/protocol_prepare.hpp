// SPDX-License-Identifier: Apache-2.0
#pragma once

// Prepares a dispatch of few tokens in one block: all that comes before rows are fetched. A kernel
// for each step would take longer to start than to run. Many tokens need the whole GPU, and take a
// kernel for each step, made of the same functions.

#include "kernels/peer/expert_records.hpp"

namespace tmap::kernels::peer {

/// Describes what one block prepares.
struct preparation {
  expert_arrays at;
  token_choices given;
  std::uint64_t departures;  ///< records that may go
  exchange_request records;  ///< by a single block
  bool writes_list;          ///< if not, a later kernel writes it
};

/// Names a thread of the block.
struct preparing_thread {
  worker all;
  worker warp;  ///< its warp among those of the block
  worker lane;  ///< the thread in its warp
};

/// Waits for credits, sends a record for each token and rank, and makes the list of what came. All
/// threads of the block call it. Those of `sorts` (`by_rank`, `by_expert`) do what `moe::route`
/// does, by all threads, too.
template <class Link, class Sorts>
TMAP_HOST_DEVICE void prepare(Link& link, const preparation& work, const preparing_thread& mine, Sorts& sorts,
                              std::uint64_t deadline) {
  const bool leads = mine.all.number == 0;
  const expert_arrays& at = work.at;
  if (leads) static_cast<void>(report(link, await_credits(link, deadline)));
  share(mine.all, std::uint64_t{at.tokens} * at.k, [&](std::uint64_t i) { write_rank(link, at, work.given, i); });
  link.sync();
  sorts.by_rank();
  link.sync();
  write_records(link, at, work.given, work.departures, mine.warp, mine.lane);
  link.sync();
  if (leads) static_cast<void>(exchange(link, work.records, deadline));
  if (leads) link.quiet();  // the records are for this kernel, too
  link.sync();
  write_choices(link, at, mine.all);
  link.sync();
  sorts.by_expert();
  if (!work.writes_list) return;
  link.sync();
  write_list(link, at, mine.all);
}

}  // namespace tmap::kernels::peer
