// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/peer/protocol_exchange.hpp"
#include "lib/simulator/ranks/explore.hpp"
#include "peer/lone_thread.hpp"

// Exchanges over the model, whose every row is checked against the definition.

namespace tmap::testing {

using kernels::peer::exchange_request;

/// Returns how many rows rank `from` sends to `group` of rank `to` in call `call`.
using row_counts =
    std::function<std::uint32_t(std::uint32_t call, std::uint32_t from, std::uint32_t to, std::uint32_t group)>;

struct exchange_case {
  std::uint32_t ranks{2};
  std::uint32_t groups{1};
  std::uint32_t blocks{1};
  std::uint32_t calls{1};
  row_counts rows;
  row_placement placed{row_placement::rank_major};
  std::uint32_t sent_rows{16};
  std::uint32_t capacity{16};
  std::uint32_t stages{2};
  std::uint32_t row_bytes{16};
  std::uint32_t staging_bytes{0};           ///< 0: those of a row
  std::optional<std::uint32_t> odd_rank{};  ///< a rank whose request has other rows
  std::uint32_t rows_skew{0};     ///< bytes from an aligned address to the rows of rank 0; one more for each rank
  std::uint32_t out_skew{0};      ///< the same to where rows come
  std::uint32_t rows_gap{0};      ///< bytes between two rows that are sent
  std::uint32_t out_gap{0};       ///< the same of rows that come
  std::uint64_t rows_room{4096};  ///< bytes of the rows that are sent
  std::uint64_t pair_bytes{512};  ///< the most from one rank to another, for links that carry parcels
  bool is_eager{false};           ///< rows that are few come with the announcement
  bool odd_ranks_pull{false};     ///< and let others pull theirs
  bool has_crew{false};           ///< a second thread of each block shares its work
  bool continues{false};          ///< a call after one that was no success ends as that one did
  std::uint32_t pushed_bytes{0};  ///< rows of so many bytes are pushed; 0: none
  bool odd_ranks_do_not_push{false};
};

inline constexpr std::uint64_t exchange_deadline = 100;

/// Returns counts that differ by call, rank and group; some are zero.
inline std::uint32_t mixed_rows(std::uint32_t call, std::uint32_t from, std::uint32_t to, std::uint32_t group) {
  return (call * 2 + from + to * 3 + group) % 3;
}

inline exchange_case three_ranks() {
  return {.ranks = 3, .groups = 2, .calls = 3, .rows = mixed_rows};
}
/// Each rank sends to the others, and more in the second call.
inline exchange_case two_calls() {
  return {.groups = 1, .calls = 2, .rows = [](std::uint32_t call, std::uint32_t from, std::uint32_t to, std::uint32_t) {
            return from == to ? 0u : 1 + call;
          }};
}

/// The verdicts of each rank's calls.
using verdict_lists = std::vector<std::vector<peer_verdict>>;

/// Leads a block of two threads, of which the second one shares the work, as crews of kernels do.
template <class Link>
class second_thread_crew {
 public:
  explicit second_thread_crew(Link& link) : link_(link) {}

  static constexpr bool leads() { return true; }
  static constexpr kernels::peer::worker work() { return {~std::uint64_t{0}, 1}; }
  static bool any(Link& link, bool mine) { return link.sync_or(mine); }
  template <class MaySend>
  static bool send(Link&, const exchange_request&, std::uint32_t, const MaySend& may_send) {
    return may_send(false);
  }

  void begin_take(Link&, const exchange_request&, std::uint32_t, std::uint64_t) { is_working_ = true; }
  std::uint32_t end_take() {
    const bool has_taken = is_working_;
    await_work();
    return has_taken ? link_.load_shared(late_at) : kernels::peer::no_rank;
  }
  void dismiss() { await_work(); }

  /// Is the second thread.
  static void serve(Link& link, const exchange_request& request) {
    const second_thread member{{request.row_bytes}};
    const std::uint32_t call = link.load(link.rank(), offsetof(detail::peer::window_header, exchanges)) + 1;
    const auto done = kernels::peer::share_exchange(link, request, call, exchange_deadline, member);
    if (!done.moves || request.block != 0) return;
    link.store_shared(late_at, done.late);
    link.sync();
  }

 private:
  struct second_thread : lone_thread {
    static constexpr bool leads() { return false; }
    static bool any(Link& link, bool mine) { return link.sync_or(mine); }
  };
  static constexpr std::uint32_t late_at = 1 << 16;

  void await_work() {
    if (is_working_) link_.sync();
    is_working_ = false;
  }

  Link& link_;
  bool is_working_{false};
};

/// Writes, exchanges and checks the rows of one block of one rank. The second thread of a block is
/// its crew.
template <class Link, class Crew = second_thread_crew<Link>>
class exchange_body {
 public:
  exchange_body(const exchange_case& given, std::uint32_t block, std::uint32_t thread, verdict_lists& verdicts)
      : case_(given), block_(block), thread_(thread), verdicts_(verdicts) {}

  void operator()(ranks::model_link& sound) const {
    Link link(sound);
    if (thread_ != 0) return serve(link);
    for (std::uint32_t call = 0; call < case_.calls; ++call) {
      const peer_verdict verdict = run_call(link, call);
      link.end_kernel();
      link.expect(link.now() <= exchange_deadline, "the call ends by its deadline");
      if (block_ == 0) verdicts_[link.rank()].push_back(verdict);
      if (block_ == 0) expect_in_window(link, verdict);
      if (block_ == 0 && verdict.status == peer_status::ok) check_rows(link, call);
    }
  }

 private:
  // Offsets in the window. The canary follows the last row of `out`.
  static constexpr std::uint64_t splits = peer_header_bytes, out_splits = splits + 256;
  static constexpr std::uint64_t rows = out_splits + 256;

  peer_verdict run_call(Link& link, std::uint32_t call) const {
    if (block_ == 0) {
      const peer_verdict free = kernels::peer::await_credits(link, exchange_deadline);
      if (free.status == peer_status::ok) write_rows(link, call);
    }
    link.end_kernel();
    if constexpr (requires { &Link::exchange_by_parcels; }) {
      return link.exchange_by_parcels(request(link.rank()), case_.pair_bytes, exchange_deadline);
    } else {
      if (!case_.has_crew) {
        lone_thread alone{request(link.rank()).row_bytes};
        return kernels::peer::exchange(link, request(link.rank()), alone, exchange_deadline);
      }
      Crew crew(link);
      const peer_verdict verdict = kernels::peer::exchange(link, request(link.rank()), crew, exchange_deadline);
      crew.dismiss();
      return verdict;
    }
  }
  void serve(Link& link) const {
    for (std::uint32_t call = 0; call < case_.calls; ++call) {
      link.end_kernel();
      Crew::serve(link, request(link.rank()));
      link.end_kernel();
    }
  }

  std::uint32_t rows_step() const { return case_.row_bytes + case_.rows_gap; }
  std::uint32_t out_step() const { return case_.row_bytes + case_.out_gap; }
  std::uint64_t out() const { return rows + case_.rows_room; }
  std::uint64_t rows_of(std::uint32_t rank) const {
    return case_.rows_skew == 0 ? rows : rows + case_.rows_skew + rank;
  }
  std::uint64_t out_of(std::uint32_t rank) const { return case_.out_skew == 0 ? out() : out() + case_.out_skew + rank; }

  static void expect_in_window(Link& link, const peer_verdict& verdict) {
    const std::uint32_t word = link.load(link.rank(), offsetof(detail::peer::window_header, verdict));
    link.expect(detail::peer::verdict_of(word).status == verdict.status, "the window has the verdict");
  }

  exchange_request request(std::uint32_t rank) const {
    const std::uint32_t row_bytes = case_.row_bytes * (case_.odd_rank == rank ? 2 : 1);
    const std::uint32_t staging = case_.staging_bytes == 0 ? row_bytes : case_.staging_bytes;
    exchange_request made{rows_of(rank), splits,          out_of(rank),   out_splits,   case_.groups,
                          row_bytes,     case_.sent_rows, case_.capacity, case_.placed, staging,
                          case_.stages,  block_,          case_.blocks};
    made.is_eager = case_.is_eager && !(case_.odd_ranks_pull && rank % 2 == 1);
    made.pushed_bytes = case_.pushed_bytes;
    if (case_.continues) made.after = offsetof(detail::peer::window_header, verdict);
    made.pushes = !(case_.odd_ranks_do_not_push && rank % 2 == 1);
    if (case_.rows_gap != 0) made.sent_pitch = rows_step();
    if (case_.out_gap != 0) made.out_pitch = out_step();
    return made;
  }

  std::uint32_t value(std::uint32_t call, std::uint32_t from, std::uint32_t to, std::uint32_t group,
                      std::uint32_t row) const {
    return ((((call + 1) * 16 + from) * 16 + to) * 16 + group) * 16 + row;
  }

  static constexpr bool has_bytes = requires(Link & link) { link.load_byte(0); };

  static std::uint32_t byte_of(std::uint32_t value, std::uint32_t i) { return (value + i) * 0x9E3779B1u >> 24 | 1u; }
  /// Returns the last word of a row, which may lie in another piece than the first one.
  std::uint64_t end_word(std::uint64_t at) const { return at + case_.row_bytes - 4; }

  /// Writes all bytes of a row and the gap after it, or the row's first and last word.
  void write_row(Link& link, std::uint64_t at, std::uint32_t value) const {
    if constexpr (has_bytes) {
      for (std::uint32_t i = 0; i < rows_step(); ++i) link.store_byte(at + i, byte_of(value, i));
    } else {
      link.store(link.rank(), at, value);
      link.store(link.rank(), end_word(at), ~value);
    }
  }
  void check_row(Link& link, std::uint64_t at, std::uint32_t value) const {
    if constexpr (has_bytes) {
      for (std::uint32_t i = 0; i < case_.row_bytes; ++i) {
        link.expect(link.load_byte(at + i) == byte_of(value, i), "the row is right");
      }
      for (std::uint32_t i = 0; i < case_.out_gap; ++i) {
        link.expect(link.load_byte(at + case_.row_bytes + i) == 0, "nothing lies between rows");
      }
    } else {
      link.expect(link.load(link.rank(), at) == value, "the row is right");
      link.expect(link.load(link.rank(), end_word(at)) == ~value, "the end of the row is right");
    }
  }

  /// Writes all rows, and how many there are.
  void write_rows(Link& link, std::uint32_t call) const {
    const std::uint32_t me = link.rank();
    std::uint64_t at = rows_of(me);
    for (std::uint32_t to = 0; to < case_.ranks; ++to) {
      for (std::uint32_t group = 0; group < case_.groups; ++group) {
        const std::uint32_t count = case_.rows(call, me, to, group);
        link.store(me, splits + 4 * (to * case_.groups + group), count);
        for (std::uint32_t row = 0; row < count && at < rows + case_.rows_room; ++row, at += rows_step()) {
          write_row(link, at, value(call, me, to, group, row));
        }
      }
    }
  }

  /// Expects the rows of one (rank, group) from offset `at` on; returns where they end.
  std::uint64_t check_block(Link& link, std::uint32_t call, std::uint32_t from, std::uint32_t group,
                            std::uint64_t at) const {
    const std::uint32_t me = link.rank(), count = case_.rows(call, from, me, group);
    link.expect(link.load(me, out_splits + 4 * (from * case_.groups + group)) == count, "the count is right");
    for (std::uint32_t row = 0; row < count; ++row, at += out_step()) {
      check_row(link, at, value(call, from, me, group, row));
    }
    return at;
  }

  void check_rows(Link& link, std::uint32_t call) const {
    std::uint64_t at = out_of(link.rank());
    if (case_.placed == row_placement::rank_major) {
      for (std::uint32_t from = 0; from < case_.ranks; ++from) {
        for (std::uint32_t group = 0; group < case_.groups; ++group) at = check_block(link, call, from, group, at);
      }
    } else {
      for (std::uint32_t group = 0; group < case_.groups; ++group) {
        for (std::uint32_t from = 0; from < case_.ranks; ++from) at = check_block(link, call, from, group, at);
      }
    }
    const std::uint64_t end = out_of(link.rank()) + std::uint64_t{case_.capacity} * out_step();
    link.expect(at <= end, "no row lies beyond the capacity");
    if constexpr (has_bytes) {
      link.expect(link.load_byte(out_of(link.rank()) - 1) == 0, "nothing lies before the rows");
      link.expect(link.load_byte(end) == 0, "nothing lies beyond the capacity");
    } else {
      link.expect(link.load(link.rank(), end) == 0, "nothing lies beyond the capacity");
    }
  }

  const exchange_case case_;
  std::uint32_t block_;
  std::uint32_t thread_;
  verdict_lists& verdicts_;
};

/// Returns the fault in the verdicts of an execution, or nothing.
using verdict_check = std::function<std::string(const verdict_lists&)>;

inline verdict_check all_calls_ok(std::uint32_t calls) {
  return [calls](const verdict_lists& verdicts) -> std::string {
    for (const auto& of_rank : verdicts) {
      if (of_rank.size() != calls) return "a rank ended early";
      for (const peer_verdict& each : of_rank) {
        if (each.status != peer_status::ok)
          return "a call ended with status " + std::to_string(static_cast<int>(each.status));
      }
    }
    return {};
  };
}

/// Expects that all ranks end all calls as rank `peer` made them end.
inline verdict_check all_calls(peer_status status, std::uint32_t peer) {
  return [status, peer](const verdict_lists& verdicts) -> std::string {
    for (const auto& of_rank : verdicts) {
      for (const peer_verdict& each : of_rank) {
        if (each.status != status || each.peer != peer) return "a rank has another verdict";
      }
    }
    return {};
  };
}

/// Makes a program of an exchange. Rows are checked after each call that returns ok.
template <class Link = ranks::model_link, class Crew = second_thread_crew<Link>>
ranks::program exchange_program(const exchange_case& given, const verdict_check& check) {
  const auto verdicts = std::make_shared<verdict_lists>();
  ranks::program made;
  made.ranks = given.ranks;
  for (std::uint32_t rank = 0; rank < given.ranks; ++rank) {
    for (std::uint32_t block = 0; block < given.blocks; ++block) {
      for (std::uint32_t thread = 0; thread < (given.has_crew ? 2u : 1u); ++thread) {
        made.threads.push_back(
            {rank, rank * given.blocks + block, exchange_body<Link, Crew>(given, block, thread, *verdicts)});
      }
    }
  }
  made.begin = [verdicts, given] { verdicts->assign(given.ranks, {}); };
  made.check = [verdicts, check] { return check(*verdicts); };
  return made;
}

template <class Link = ranks::model_link, class Crew = second_thread_crew<Link>>
ranks::program exchange_program(const exchange_case& given) {
  return exchange_program<Link, Crew>(given, all_calls_ok(given.calls));
}

}  // namespace tmap::testing
