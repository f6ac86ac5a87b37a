// SPDX-License-Identifier: Apache-2.0
#pragma once

// Exchanges rows among all ranks: announce, judge, pull, credit. Only the ranks know how many rows
// go where. Functions are for one thread of a block, or for all that it has.

#include "kernels/peer/protocol_eager.hpp"
#include "kernels/peer/protocol_move.hpp"

namespace tmap::kernels::peer {

/// Waits for the announcements of all ranks to call number `call`, and judges them.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict hear(Link& link, const exchange_request& request, std::uint32_t call,
                                                 std::uint64_t deadline) {
  const bool is_over = is_broken(link);  // loads that follow do not wait for it
  if (!await_slots(link, request, call, deadline)) return give_up_slots(link, call);
  return judge(link, request, is_over);
}

/// Announces and moves rows, in every block. The first block alone announces, and sends and takes
/// eager rows.
template <class Link, class Moves>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict announce_and_move(Link& link, const exchange_request& request,
                                                              std::uint32_t call, std::uint64_t deadline,
                                                              Moves& moves) {
  if (has_own_slot(request)) {
    const peer_verdict announced = moves.announce(link, request, call, deadline);
    if (announced.status != peer_status::ok) return announced;
  }
  const peer_verdict heard = moves.hear(link, request, call, deadline);
  if (heard.status != peer_status::ok) return heard;
  link.proxy_fence();  // peers' rows were seen by waits, and are read by bulk copies
  return moves.move(link, call);
}

/// Names a signal of this rank's blocks, and the word that counts how often they have been awaited.
struct worker_signal {
  std::uint64_t raised;
  std::uint64_t expected;
};
inline constexpr worker_signal workers{offsetof(window_header, workers_raised),
                                       offsetof(window_header, workers_expected)};

/// Waits until the other blocks of this rank have raised a signal. They had raised `before` when
/// the call began.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict await_workers(Link& link, const exchange_request& request,
                                                          worker_signal signal, std::uint32_t before,
                                                          std::uint64_t deadline) {
  if (request.blocks == 1) return {};
  const std::uint32_t expected = before + request.blocks - 1;
  if (!await(link, signal.raised, expected, deadline)) {
    return give_up_waiting(link, link.rank(), protocol_step::workers);
  }
  if (is_broken(link)) return {peer_status::broken};
  link.store(link.rank(), signal.expected, expected);
  return {};
}

/// Gives all ranks their credit for a call: no block of this rank reads from them or puts to them
/// any more. If this rank `has_read` nothing but its own memory, its credit means that it has found
/// all packets there. It has compared their tags before that, so the credit needs no fence.
template <class Link>
TMAP_HOST_DEVICE void give_credits(Link& link, bool has_read = true) {
  if (link.ranks() > 1 && has_read) link.release();
  TMAP_KEEP_ROLLED
  for (std::uint32_t i = 0; i + 1 < link.ranks(); ++i) {
    link.raise_released(rank_in_turn(link, i), word_at(offsetof(window_header, credited), link.rank()), 1);
  }
}

/// Refuses a call whose announcements do not fit the header.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict may_fit(const Link& link, const exchange_request& request) {
  return {fits_header(link.ranks(), request.groups) ? peer_status::ok : peer_status::refused};
}

/// Returns why a call must not begin, or ok.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict may_begin(Link& link, const exchange_request& request) {
  if (request.after != 0) {
    const peer_verdict before = outcome_of(link, request.after, request.after_shape);
    if (before.status != peer_status::ok) return before;
  }
  return may_fit(link, request);
}

/// Writes how a call of this rank ended to where its request wants it, too.
template <class Link>
TMAP_HOST_DEVICE peer_verdict report_call(Link& link, const exchange_request& request, const peer_verdict& verdict) {
  if (request.outcome != 0) link.store(link.rank(), request.outcome, word_of(verdict, request.outcome_shape));
  return report(link, verdict);
}

/// Holds a call of one block whose rows have moved, or will not.
struct moved_call {
  std::uint32_t call;
  std::uint32_t before;  ///< what the blocks had raised when it began
  bool has_begun;
  peer_verdict verdict;

  /// Returns whether all ranks count the call: they wait for its credits before the next one.
  TMAP_HOST_DEVICE bool is_counted() const { return has_begun && !is_fatal(verdict.status); }
};

/// Begins one block's part of call number `call`: all ranks announce and judge, and `moves` moves
/// the rows.
template <class Link, class Moves>
[[nodiscard]] TMAP_HOST_DEVICE moved_call begin_call(Link& link, const exchange_request& request, std::uint32_t call,
                                                     std::uint64_t deadline, Moves& moves) {
  const std::uint32_t before = link.load(link.rank(), offsetof(window_header, workers_expected));
  const peer_verdict begun = moves.may_begin(link, request);
  if (begun.status != peer_status::ok) return {call, before, false, begun};
  return {call, before, true, announce_and_move(link, request, call, deadline, moves)};
}

/// Waits for the other blocks and for what `moves` still does, gives the credits of a call that has
/// begun, and waits for what others still move. Returns its verdict.
template <class Link, class Moves>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict close_call(Link& link, const exchange_request& request,
                                                       std::uint64_t deadline, const moved_call& moved, Moves& moves) {
  if (is_fatal(moved.verdict.status)) return moved.verdict;
  const peer_verdict met = await_workers(link, request, workers, moved.before, deadline);
  if (met.status != peer_status::ok) return met;
  const peer_verdict finished = moves.finish(link);
  if (finished.status != peer_status::ok) return finished;
  if (moved.has_begun) {
    link.store(link.rank(), offsetof(window_header, exchanges), moved.call);
    give_credits(link, moves.has_read());
  }
  return moved.verdict.status == peer_status::ok ? moves.arrive(link, moved.call) : moved.verdict;
}

/// Ends the first block's part of a call. All sources get their credit, and the verdict is in the
/// window.
template <class Link, class Moves>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict end_call(Link& link, const exchange_request& request,
                                                     std::uint64_t deadline, const moved_call& moved, Moves& moves) {
  return report_call(link, request, close_call(link, request, deadline, moved, moves));
}

/// Runs one rank's part of a call. The verdict of block 0 is the rank's. The rows sent may be
/// overwritten after `await_credits`.
template <class Link, class Moves>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict run_call(Link& link, const exchange_request& request,
                                                     std::uint64_t deadline, Moves& moves) {
  const std::uint32_t call = link.load(link.rank(), offsetof(window_header, exchanges)) + 1;
  const moved_call moved = begin_call(link, request, call, deadline, moves);
  if (request.block == 0) return end_call(link, request, deadline, moved, moves);
  link.raise_here(offsetof(window_header, workers_raised), 1);
  return moved.verdict;
}

/// Is what moves of a call have in common that has no eager rows, or has sent them. One thread of a
/// block runs it.
struct lone_moves {
  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict may_begin(Link& link, const exchange_request& request) const {
    return peer::may_begin(link, request);
  }
  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict announce(Link& link, const exchange_request& request, std::uint32_t call,
                                                       std::uint64_t deadline) const {
    return peer::announce(link, request, call, deadline);
  }
  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict hear(Link& link, const exchange_request& request, std::uint32_t call,
                                                   std::uint64_t deadline) const {
    return peer::hear(link, request, call, deadline);
  }
  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict finish(Link&) const {
    return {};
  }
  TMAP_HOST_DEVICE static constexpr bool has_read() { return true; }
  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict arrive(Link&, std::uint32_t) const {
    return {};
  }
};

/// Ends a call whose eager rows did not all come. `late` is the rank of those.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict end_taking(Link& link, std::uint32_t late) {
  return late == no_rank ? peer_verdict{} : give_up_waiting(link, late, protocol_step::announcement);
}

// All threads of a block announce and hear together. One of them leads: it makes the slot, and
// judges what went wrong. The others learn that something did, as `broken`. `Block` is what a
// thread has of its block: whether it `leads()`, and its share of the `work()`. Its `send` sends
// its share of eager rows, and asks once whether they may go out, as `send_rows` does. All threads
// call `any`, which returns whether one of them passed true. A block may have one thread.

/// Returns why a call must not begin, or ok. The thread that leads reads how the call before ended.
/// If others did, they could find how this one ends: another block writes it to the same word.
template <class Link, class Block>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict begin_together(Link& link, const exchange_request& request, Block& block) {
  const peer_verdict begun = block.leads() ? may_begin(link, request) : may_fit(link, request);
  if (request.after == 0 || !block.any(link, begun.status != peer_status::ok)) return begun;
  return block.leads() ? begun : peer_verdict{peer_status::broken};
}

/// Announces a call, and sends eager rows. Returns whether it did, for all threads.
template <class Link, class Block, class RowsFor = rows_in_window>
[[nodiscard]] TMAP_HOST_DEVICE bool announce_together(Link& link, const exchange_request& request, std::uint32_t call,
                                                      std::uint64_t deadline, Block& block,
                                                      const RowsFor& rows_for = {}) {
  bool may = true;
  if (block.leads()) {
    may = !is_broken(link);
    std::uint32_t totals[max_group_ranks];
    slot_maker<Link, RowsFor> slots(link, request, totals, rows_for);
    if (request.groups > 1) {  // which others may still read of the call before
      may = may && have_credits(link, call - 1, deadline, {0, 1});
      if (may) slots.store_counts();
    }
    slots.write(link.rank());
  }
  const worker& mine = block.work();
  const early_credit<Link> early(link, mine);
  const auto may_send = [&](bool is_pulled) {
    const bool have = early.has_come(call - 1) || have_credits(link, call - 1, deadline, mine);
    if (block.any(link, !may || !have)) return false;
    if (is_pulled || may_be_pushed(request)) release_slot(link, mine);
    send_slot(link, link.rank(), call, mine);
    return true;
  };
  return block.send(link, request, call, may_send);
}

/// Waits for the announcements of all ranks. Returns whether they came, for all threads.
template <class Link, class Block>
[[nodiscard]] TMAP_HOST_DEVICE bool hear_together(Link& link, const exchange_request& request, std::uint32_t call,
                                                  std::uint64_t deadline, Block& block) {
  return !block.any(link, !await_packets_of_slots(link, request, call, deadline, block.work()));
}

/// Judges them. Returns whether rows may move, for all threads. One of them has looked whether the
/// group `was_broken` when the call began.
template <class Link, class Block>
[[nodiscard]] TMAP_HOST_DEVICE bool judge_together(Link& link, const exchange_request& request, bool was_broken,
                                                   Block& block) {
  return !block.any(link, was_broken || !are_good(link, request, block.work()));
}

/// Waits for the announcements of all ranks to call number `call`, and judges them.
template <class Link, class Block>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict hear_and_judge(Link& link, const exchange_request& request,
                                                           std::uint32_t call, std::uint64_t deadline, Block& block) {
  const bool leads = block.leads(), is_over = leads && is_broken(link);
  if (!hear_together(link, request, call, deadline, block)) {
    return leads ? give_up_slots(link, call) : peer_verdict{peer_status::broken};
  }
  if (judge_together(link, request, is_over, block)) return {};
  return leads ? judge(link, request, is_over) : peer_verdict{peer_status::broken};
}

/// Is what the threads of a block do together in a call.
template <class Block>
struct block_moves : lone_moves {
  Block& block;

  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict may_begin(Link& link, const exchange_request& request) const {
    return begin_together(link, request, block);
  }
  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict announce(Link& link, const exchange_request& request, std::uint32_t call,
                                                       std::uint64_t deadline) const {
    return end_announcing(link, call, announce_together(link, request, call, deadline, block));
  }
  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict hear(Link& link, const exchange_request& request, std::uint32_t call,
                                                   std::uint64_t deadline) const {
    return hear_and_judge(link, request, call, deadline, block);
  }

 protected:
  /// Returns why a call was not announced, or ok if it was.
  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict end_announcing(Link& link, std::uint32_t call, bool was_announced) const {
    if (was_announced) return {};
    return block.leads() ? give_up_credits(link, call - 1) : peer_verdict{peer_status::broken};
  }
};

/// Moves the rows of an exchange, and announces the call after it. This thread leads its block. The
/// block's `end_take` waits until the others have taken all eager rows, and returns a rank whose
/// rows did not come.
template <class Block>
struct exchange_moves : block_moves<Block> {
  const exchange_request& request;
  const exchange_request& next_call;
  std::uint64_t deadline;
  bool reads{true};  ///< memory of other ranks, or writes there

  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict move(Link& link, std::uint32_t call) {
    if (request.block == 0) {
      this->block.begin_take(link, request, call, deadline);
      make_early_slot(link, next_call);
      if (next_call.is_announced) link.release();
      send_early_slot(link, next_call, call + 1, {0, 1});
    }
    const announcements<Link> announced(link, request);
    reads = announced.are_moved_here() || (request.pushes && announced.are_pushed());
    if (!reads) return {};
    row_piece pieces[most_stages];
    rows_mover<Link>(link, request, pieces).run();
    return {};
  }
  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict finish(Link& link) const {
    if (request.pushes) link.store(link.rank(), offsetof(window_header, pieces_dealt), 0);
    return end_taking(link, this->block.end_take());
  }
  TMAP_HOST_DEVICE bool has_read() const { return reads; }
  /// Waits for rows that others push. A rank that has given its credit has pushed them.
  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict arrive(Link& link, std::uint32_t call) const {
    if (request.pushed_bytes == 0 || !reads) return {};
    const announcements<Link> announced(link, request);
    TMAP_KEEP_ROLLED
    for (std::uint32_t i = 0; i + 1 < link.ranks(); ++i) {
      const std::uint32_t source = rank_in_turn(link, i);
      if (!announced.is_pushed(source, link.rank())) continue;
      if (!await_credit(link, source, call, deadline)) {
        return give_up_waiting(link, source, protocol_step::rows);
      }
    }
    return {};
  }
};

/// Runs one rank's part of an exchange, in the thread that leads a block. If the verdict is ok, all
/// rows are in `out`, and later kernels of this rank may read them. If the call after it
/// `is_announced`, this one announces it.
template <class Link, class Block>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict exchange(Link& link, const exchange_request& request, Block& block,
                                                     std::uint64_t deadline, const exchange_request& next_call = {}) {
  exchange_moves<Block> moves{{{}, block}, request, next_call, deadline};
  return run_call(link, request, deadline, moves);
}

/// Is how a thread of a block has shared an exchange.
struct shared_exchange {
  bool moves;          ///< rows
  std::uint32_t late;  ///< a rank whose eager rows did not come
};

/// Shares an exchange, in another thread of the block: until it has taken the eager rows if that is
/// the first one, and otherwise until rows move. The block's `take` takes its share, as `take_rows`
/// does.
template <class Link, class Block>
[[nodiscard]] TMAP_HOST_DEVICE shared_exchange share_exchange(Link& link, const exchange_request& request,
                                                              std::uint32_t call, std::uint64_t deadline,
                                                              Block& block) {
  shared_exchange shared{false, no_rank};
  if (begin_together(link, request, block).status != peer_status::ok) return shared;
  if (has_own_slot(request) && !announce_together(link, request, call, deadline, block)) return shared;
  if (!hear_together(link, request, call, deadline, block)) return shared;
  const auto may_take = [&] { return shared.moves = judge_together(link, request, false, block); };
  if (request.block != 0) {
    may_take();
  } else {
    shared.late = block.take(link, request, call, deadline, may_take);
    if (shared.moves) write_out_splits(link, request, block.work());
  }
  return shared;
}

}  // namespace tmap::kernels::peer
