// SPDX-License-Identifier: Apache-2.0
#pragma once

// Exchanges rows among all ranks: announce, judge, pull, credit. Only the ranks know how many rows
// go where. Every function is for one thread of a block.

#include "kernels/peer/protocol_eager.hpp"
#include "kernels/peer/protocol_move.hpp"

namespace tmap::kernels::peer {

/// Waits for the announcements of all ranks to call number `call`, and judges them.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict hear(Link& link, const exchange_request& request, std::uint32_t call,
                                                 std::uint64_t deadline) {
  const bool is_over = is_broken(link);  // loads that follow do not wait for it
  const peer_verdict heard = await_announcements(link, request, call, deadline);
  if (heard.status != peer_status::ok) return heard;
  return is_over ? peer_verdict{peer_status::broken} : judge(link, request);
}

/// Announces and moves rows, in every block. The first block alone announces, and sends and takes
/// eager rows.
template <class Link, class Moves>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict announce_and_move(Link& link, const exchange_request& request,
                                                              std::uint32_t call, std::uint64_t deadline,
                                                              const Moves& moves) {
  if (request.block == 0 && !request.is_announced) {
    const peer_verdict announced = announce(link, request, moves, call, deadline);
    if (announced.status != peer_status::ok) return announced;
  }
  const peer_verdict heard = hear(link, request, call, deadline);
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
/// any more.
template <class Link>
TMAP_HOST_DEVICE void give_credits(Link& link) {
  if (link.ranks() > 1) link.release();
  TMAP_KEEP_ROLLED
  for (std::uint32_t i = 0; i + 1 < link.ranks(); ++i) {
    link.raise_released(rank_in_turn(link, i), word_at(offsetof(window_header, credited), link.rank()), 1);
  }
}

/// Returns why a call must not begin, or ok.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict may_begin(Link& link, const exchange_request& request) {
  if (request.after != 0) {
    const peer_verdict before = outcome_of(link, request.after, request.after_shape);
    if (before.status != peer_status::ok) return before;
  }
  return {fits_header(link.ranks(), request.groups) ? peer_status::ok : peer_status::refused};
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
                                                     std::uint64_t deadline, const Moves& moves) {
  const std::uint32_t before = link.load(link.rank(), offsetof(window_header, workers_expected));
  const peer_verdict begun = may_begin(link, request);
  if (begun.status != peer_status::ok) return {call, before, false, begun};
  return {call, before, true, announce_and_move(link, request, call, deadline, moves)};
}

/// Waits for the other blocks and for what `moves` still does, gives the credits of a call that has
/// begun, and waits for what others still move. Returns its verdict.
template <class Link, class Moves>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict close_call(Link& link, const exchange_request& request,
                                                       std::uint64_t deadline, const moved_call& moved,
                                                       const Moves& moves) {
  if (is_fatal(moved.verdict.status)) return moved.verdict;
  const peer_verdict met = await_workers(link, request, workers, moved.before, deadline);
  if (met.status != peer_status::ok) return met;
  const peer_verdict finished = moves.finish(link);
  if (finished.status != peer_status::ok) return finished;
  if (moved.has_begun) {
    link.store(link.rank(), offsetof(window_header, exchanges), moved.call);
    give_credits(link);
  }
  return moved.verdict.status == peer_status::ok ? moves.arrive(link, moved.call) : moved.verdict;
}

/// Ends the first block's part of a call. All sources get their credit, and the verdict is in the
/// window.
template <class Link, class Moves>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict end_call(Link& link, const exchange_request& request,
                                                     std::uint64_t deadline, const moved_call& moved,
                                                     const Moves& moves) {
  return report_call(link, request, close_call(link, request, deadline, moved, moves));
}

/// Runs one rank's part of a call. The verdict of block 0 is the rank's. The rows sent may be
/// overwritten after `await_credits`.
template <class Link, class Moves>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict run_call(Link& link, const exchange_request& request,
                                                     std::uint64_t deadline, const Moves& moves) {
  const std::uint32_t call = link.load(link.rank(), offsetof(window_header, exchanges)) + 1;
  const moved_call moved = begin_call(link, request, call, deadline, moves);
  if (request.block == 0) return end_call(link, request, deadline, moved, moves);
  link.raise_here(offsetof(window_header, workers_raised), 1);
  return moved.verdict;
}

/// Is what moves of a call have in common that has no eager rows, or has sent them.
struct lone_moves {
  template <class Link>
  TMAP_HOST_DEVICE void send(Link& link, std::uint32_t call, bool is_pulled) const {
    send_slot(link, link.rank(), call, is_pulled, {0, 1});
  }
  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict finish(Link&) const {
    return {};
  }
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

/// Moves the rows of an exchange, and announces the call after it. The crew lets threads `send` the
/// slot and eager rows, and take them and write the counts, while the first one goes on. Its
/// `end_take` waits until they have taken all, and returns the rank whose rows did not come.
template <class Crew>
struct exchange_moves {
  const exchange_request& request;
  const exchange_request& next_call;
  Crew& crew;
  std::uint64_t deadline;

  template <class Link>
  TMAP_HOST_DEVICE void send(Link&, std::uint32_t call, bool is_pulled) const {
    crew.send(request, call, is_pulled);
  }
  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict move(Link& link, std::uint32_t call) const {
    if (request.block == 0) {
      crew.begin_take(request, call, deadline);
      announce_early(link, next_call, call + 1);
    }
    const announcements<Link> announced(link, request);
    if (!announced.are_moved_here() && !(request.pushes && announced.are_pushed())) return {};
    row_piece pieces[most_stages];
    rows_mover<Link>(link, request, pieces).run();
    return {};
  }
  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict finish(Link& link) const {
    if (request.pushes) link.store(link.rank(), offsetof(window_header, pieces_dealt), 0);
    return end_taking(link, crew.end_take());
  }
  /// Waits for rows that others push. A rank that has given its credit has pushed them.
  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE peer_verdict arrive(Link& link, std::uint32_t call) const {
    if (request.pushed_bytes == 0) return {};
    const announcements<Link> announced(link, request);
    TMAP_KEEP_ROLLED
    for (std::uint32_t i = 0; i + 1 < link.ranks(); ++i) {
      const std::uint32_t source = rank_in_turn(link, i);
      if (!announced.is_pushed(source, link.rank())) continue;
      if (!await(link, word_at(offsetof(window_header, credited), source), call, deadline)) {
        return give_up_waiting(link, source, protocol_step::rows);
      }
    }
    return {};
  }
};

/// Runs one rank's part of an exchange. If the verdict is ok, all rows are in `out`, and later
/// kernels of this rank may read them. If the call after it `is_announced`, this one announces it.
template <class Link, class Crew>
[[nodiscard]] TMAP_HOST_DEVICE peer_verdict exchange(Link& link, const exchange_request& request, Crew& crew,
                                                     std::uint64_t deadline, const exchange_request& next_call = {}) {
  return run_call(link, request, deadline, exchange_moves<Crew>{request, next_call, crew, deadline});
}

}  // namespace tmap::kernels::peer
