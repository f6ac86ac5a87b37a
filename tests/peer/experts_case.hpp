// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <tmap/moe.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/peer/expert_returns.hpp"
#include "kernels/peer/protocol_record_fetch.hpp"
#include "kernels/peer/protocol_sums.hpp"
#include "peer/choice_sort.hpp"
#include "peer/exchange_case.hpp"
#include "peer/expert_values.hpp"

// Dispatches and combines over the model. Every row and every sum is checked against the definition
// of the order by expert.

namespace tmap::testing {

using kernels::peer::fetch_request;

inline constexpr std::uint64_t experts_deadline = 100;
// In shared memory, after stages and lists.
inline constexpr std::uint32_t late_at = 1 << 16;
inline constexpr std::uint32_t awaiting_thread = ~0u;  ///< of a rank: waits for rows
inline constexpr std::uint32_t dispatched_shape = 7;

/// Runs one thread of a block of one rank. The first thread alone does what is not shared.
template <class Link>
class experts_body {
 public:
  struct worker_place {
    std::uint32_t rank;
    std::uint32_t block;
    std::uint32_t thread;
  };
  experts_body(const experts_case& given, const worker_place& at, verdict_lists& verdicts)
      : case_(given),
        in_(given),
        values_(case_, in_),
        block_(at.block),
        thread_(at.thread),
        threads_(given.threads_of(at.rank)),
        verdicts_(verdicts) {}

  void operator()(ranks::model_link& sound) const {
    Link link(sound);
    for (std::uint32_t call = 0; call < case_.calls; ++call) {
      dispatch(link, call);
      if (case_.combines_never) continue;
      if (case_.combines_otherwise) combine(link, call, dispatched_shape + 1);
      combine(link, call, dispatched_shape);
      if (case_.combines_twice) combine_again(link, call);
    }
  }

 private:
  template <class Run>
  void alone(Link& link, const Run& run) const {
    if (leads()) run();
    link.end_kernel();
  }
  void end(Link& link, const peer_verdict& verdict) const {
    link.end_kernel();
    link.expect(link.now() <= experts_deadline, "the call ends by its deadline");
    const std::uint32_t fault = link.load(link.rank(), offsetof(detail::peer::window_header, fault));
    const bool is_mismatch = detail::peer::verdict_of(fault).status == peer_status::mismatch;
    link.expect(!is_mismatch || case_.odd_rank.has_value(), "no rank is blamed for another call");
    if (!leads()) return;
    const bool has_cause = verdict.status == peer_status::broken && fault != 0;  // another block gave up
    verdicts_[link.rank()].push_back(has_cause ? detail::peer::verdict_of(fault) : verdict);
  }
  bool leads() const { return block_ == 0 && thread_ == 0; }

  bool awaits() const { return thread_ == awaiting_thread; }

  peer_verdict fetch(Link& link, const fetch_request& request) const {
    if (awaits() || thread_ != 0 || is_extra()) return {};
    std::array<kernels::peer::fetch_piece, kernels::peer::most_fetch_stages> pieces;
    return kernels::peer::fetch(link, request, pieces.data(), experts_deadline);
  }
  peer_verdict exchange(Link& link, const exchange_request& request, const exchange_request& next = {}) const {
    lone_thread alone{request.row_bytes};
    if (awaits() || thread_ != 0 || is_extra()) return {};
    return kernels::peer::exchange(link, request, alone, experts_deadline, next);
  }
  /// Returns whether only dispatches of few tokens have this block.
  bool is_extra() const { return block_ == case_.blocks; }

  void dispatch(Link& link, std::uint32_t call) const {
    std::vector<awaited_row> awaited;
    peer_verdict verdict{};
    if (threads_ == 0) {
      prepare_many(link, call);
      if (awaits()) awaited = await_rows(link, call);
      verdict = fetch(link, rows_request(link));
      end(link, verdict);
    } else {
      verdict = dispatch_few(link, call);
      end(link, verdict);
      if (awaits()) awaited = await_rows(link, call);  // all have come
    }
    if (awaits() && kernels::peer::is_success(link, in_.outcome, dispatched_shape)) check_awaited(link, awaited);
    if (leads() && verdict.status == peer_status::ok) values_.check_rows(link, call);
  }
  /// Holds what a row should begin and end with, and what it did.
  struct awaited_row {
    std::uint32_t wanted, first, last;
  };
  /// Reads the rows of each expert by bulk copies once they are there, as products do.
  std::vector<awaited_row> await_rows(Link& link, std::uint32_t call) const {
    std::vector<awaited_row> found;
    await_word(link, case_.experts);
    std::uint64_t at = 0;
    for (std::uint32_t expert = 0; expert < case_.experts; ++expert) {
      await_word(link, expert);
      link.proxy_fence();
      at = (at + case_.alignment - 1) / case_.alignment * case_.alignment;
      for (const std::uint32_t wanted : values_.values_of_expert(link, call, expert)) {
        if (at >= case_.rows) break;
        link.get(0, link.rank(), in_.out + at++ * case_.row_bytes, case_.row_bytes);
        link.wait_gets();
        found.push_back({wanted, link.load_shared(0), link.load_shared(case_.row_bytes - 4)});
      }
    }
    return found;
  }
  void await_word(Link& link, std::uint32_t number) const {
    const bool has_come = link.wait(in_.pending + 4 * std::uint64_t{number}, 0, ranks::never);
    link.expect(has_come, "nobody waits for ever");
  }
  static void check_awaited(Link& link, const std::vector<awaited_row>& rows) {
    for (const awaited_row& each : rows) {
      link.expect(each.first == each.wanted && each.last == ~each.wanted, "the awaited row is right");
    }
  }

  void combine(Link& link, std::uint32_t call, std::uint32_t shape) const {
    if (case_.returns_rows) return combine_rows(link, call, shape);
    const peer_verdict verdict = combine_sums(link, call, shape);
    if (leads() && verdict.status == peer_status::ok) values_.check_returned(link, call);
    if (leads() && verdict.status == peer_status::overflow && call == 0) values_.expect_nothing_returned(link);
  }
  /// Combines other sums. They go nowhere, and those that came stay.
  void combine_again(Link& link, std::uint32_t call) const {
    static_cast<void>(combine_sums(link, call + 1, dispatched_shape));
    if (leads()) values_.check_returned(link, call);
  }
  /// Runs a combine whose blocks are senders and takers in one.
  peer_verdict combine_sums(Link& link, std::uint32_t call, std::uint32_t shape) const {
    const kernels::peer::sums_request request{in_.outcome, in_.at.total, shape, case_.blocks, in_.at.place};
    if (!awaits() && thread_ == 0 && !is_extra()) {
      const peer_verdict dispatched = detail::peer::outcome_of(link, in_.outcome, shape);
      if (dispatched.status == peer_status::ok) {
        if (leads()) detail::peer::come_to_barrier(link);  // what follows is not announced by that
        send_sums(link, call);
        take_sums(link, call);
      }
      kernels::peer::end_sums(link, request, dispatched);
    }
    link.end_kernel();
    const peer_verdict ended =
        detail::peer::verdict_of(link.load(link.rank(), offsetof(detail::peer::window_header, verdict)));
    end(link, ended);
    return ended;
  }
  void combine_rows(Link& link, std::uint32_t call, std::uint32_t shape) const {
    alone(link, [&] { values_.multiply(link, call); });
    static_cast<void>(exchange(link, places_request(shape)));
    link.end_kernel();
    alone(link, [&] { write_returns(link, in_.at, {0, 1}); });
    const peer_verdict verdict = fetch(link, results_request());
    end(link, verdict);
    if (leads() && verdict.status == peer_status::ok) values_.check_landed(link, call);
  }

  exchange_request request(std::uint64_t rows, std::uint32_t row_bytes, std::uint32_t sent, std::uint64_t out,
                           std::uint32_t capacity) const {
    exchange_request made{};
    made.rows = rows;
    made.out = out;
    made.groups = 1;
    made.row_bytes = row_bytes;
    made.sent_rows = sent;
    made.capacity = capacity;
    made.staging_bytes = case_.staging_bytes;
    made.stages = case_.stages;
    made.block = block_;
    made.blocks = case_.blocks;
    return made;
  }
  expert_arrays arrays(Link& link) const {
    expert_arrays at = in_.at;
    at.pending = {case_.is_awaited ? link.address(link.rank(), in_.pending) : 0, case_.experts, case_.blocks};
    return at;
  }
  exchange_request records_request(std::uint32_t rank) const {
    exchange_request made = request(in_.at.departing, 4 * kernels::peer::record_words(case_.k, 0),
                                    case_.tokens * case_.ranks, in_.at.arriving, case_.arrivals);
    made.salt = case_.odd_rank == rank ? 1 : 0;
    made.is_eager = threads_ != 0 && !case_.pulls_all;
    made.splits = in_.at.departed;
    made.out_splits = in_.at.arrived;
    made.after = offsetof(detail::peer::window_header, verdict);
    return made;
  }
  fetch_request rows_request(Link& link) const {
    fetch_request made{};
    made.call = request(in_.x, case_.row_bytes, case_.tokens, in_.out, case_.rows);
    made.call.kind = kernels::peer::call_kind::fetch;
    made.call.groups = 0;
    made.call.sent_pitch = case_.row_bytes;
    made.call.after = offsetof(detail::peer::window_header, verdict);
    made.call.outcome = in_.outcome;
    made.call.outcome_shape = dispatched_shape;
    made.call.is_announced = case_.announces_early(link.rank());
    if (!made.call.is_announced) made.call.lacking = in_.lacking;
    made.pending = arrays(link).pending;
    made.listed = in_.at.total;
    made.list = in_.at.list;
    made.places = case_.k;
    made.entries = case_.entries;
    made.out_pitch = case_.row_bytes;
    return made;
  }
  exchange_request places_request(std::uint32_t shape) const {
    const std::uint32_t places = 4 * kernels::peer::place_words(case_.k);
    exchange_request made =
        request(in_.at.sent_places, places, case_.arrivals, in_.at.returned_places, case_.tokens * case_.ranks);
    made.splits = in_.at.arrived;
    made.out_splits = in_.returned_splits;
    made.is_eager = !case_.pulls_all;
    made.after = in_.outcome;
    made.after_shape = shape;
    return made;
  }
  fetch_request results_request() const {
    fetch_request made{};
    made.call = request(in_.values, 16, case_.rows, in_.landed, case_.tokens * case_.k);
    made.call.kind = kernels::peer::call_kind::fetch;
    made.call.groups = 0;
    made.call.sent_pitch = 16;
    made.call.after = offsetof(detail::peer::window_header, verdict);
    made.listed = in_.at.return_count;
    made.list = in_.at.return_list;
    made.places = 1;
    made.entries = case_.entries;
    made.out_pitch = 16;
    return made;
  }

  void prepare_many(Link& link, std::uint32_t call) const {
    alone(link, [&] { depart(link, call); });
    static_cast<void>(exchange(link, records_request(link.rank()), rows_request(link).call));
    link.end_kernel();
    alone(link, [&] { arrive(link); });
  }
  /// After a combine without success, `x` may be overwritten once all ranks have pulled it.
  peer_verdict dispatch_few(Link& link, std::uint32_t call) const {
    alone(link, [&] {
      const std::uint32_t last = link.load(link.rank(), offsetof(detail::peer::window_header, verdict));
      const bool has_barrier = detail::peer::verdict_of(last).status == peer_status::ok && !case_.combines_never;
      if (has_barrier || has_credits(link)) write_rows(link, call);
    });
    if (awaits()) return {};
    const given_ids ids = choices(call, link.rank());
    kernels::peer::preparation work{arrays(link), of(ids), few_records(link.rank()), rows_request(link)};
    work.rows.call.blocks = work.records.blocks;
    const kernels::peer::word_worker mine{{thread_, threads_of_block()}, {0, 1}};
    if (block_ == 0) {
      preparing_block block{{*this, link, work}};
      kernels::peer::prepare(link, work, mine, block, experts_deadline);
    } else {
      std::array<kernels::peer::fetch_piece, kernels::peer::most_fetch_stages> pieces;
      fetching_block block{{*this, link, work}};
      kernels::peer::take_and_fetch(link, work, work.rows, mine, pieces.data(), block, experts_deadline);
    }
    const std::uint32_t ended = leads() ? link.load(link.rank(), offsetof(detail::peer::window_header, verdict)) : 0;
    return detail::peer::verdict_of(ended);
  }
  std::uint32_t threads_of_block() const { return block_ == 0 ? threads_ : case_.fetching_threads; }
  exchange_request few_records(std::uint32_t rank) const {
    exchange_request made = records_request(rank);
    made.blocks = case_.blocks + 1;
    made.after = 0;
    return made;
  }

  using given_ids = std::array<std::int32_t, 64>;
  given_ids choices(std::uint32_t call, std::uint32_t rank) const {
    given_ids ids{};
    for (std::uint32_t i = 0; i < case_.tokens * case_.k; ++i) {
      ids.at(i) = case_.chosen(call, rank, i / case_.k, i % case_.k);
    }
    return ids;
  }
  static kernels::peer::token_choices of(const given_ids& ids) { return {ids.data(), nullptr, nullptr, 0}; }

  static bool has_credits(Link& link) {
    const peer_verdict free = detail::peer::report(link, kernels::peer::await_credits(link, experts_deadline));
    return free.status == peer_status::ok;
  }
  void write_rows(Link& link, std::uint32_t call) const {
    const std::uint32_t me = link.rank();
    for (std::uint32_t token = 0; token < case_.tokens; ++token) {
      const std::uint64_t row = in_.x + std::uint64_t{token} * case_.row_bytes;
      link.store(me, row, expert_values<Link>::value(call, me, token));
      link.store(me, row + case_.row_bytes - 4, ~expert_values<Link>::value(call, me, token));
    }
  }
  /// Makes room, and then writes rows and records.
  void depart(Link& link, std::uint32_t call) const {
    if (!has_credits(link)) return;
    write_rows(link, call);
    const given_ids ids = choices(call, link.rank());
    for (std::uint32_t i = 0; i < case_.tokens * case_.k; ++i) write_rank(link, in_.at, of(ids), i);
    sort_by_rank(link);
    write_records(link, in_.at, of(ids), case_.tokens * case_.ranks, {{0, 1}, {0, 1}});
  }
  /// Makes the list of what came.
  void arrive(Link& link) const {
    write_choices(link, in_.at, {0, 1});
    sort_by_expert(link, case_.arrivals, words_at(link, in_.at.ids));
    sort_choices(link, words_at(link, in_.at.first_ids),
                 {case_.arrivals, case_.experts, 1, case_.arrivals, in_.at.order, 0});
    write_list(link, arrays(link), {{0, 1}, {0, 1}});
  }

  /// Stands in for the sort by expert. The last thread of a block sorts, and others read.
  struct expert_sort {
    const experts_body& body;
    Link& link;
    const kernels::peer::preparation& work;

    void clear(const kernels::peer::worker&) const {}
    void set_expert(std::uint32_t choice, std::uint32_t expert, bool) const {
      link.store_shared(word_of(choice), expert);
    }
    bool by_expert(std::uint32_t records, const kernels::peer::record_share& own) const {
      if (body.thread_ + 1 != body.threads_of_block()) return false;
      const auto id_of = [&](std::uint32_t i) { return link.load_shared(word_of(i)); };
      const std::uint32_t begin = own.begin * body.case_.k, end = own.end * body.case_.k;
      const auto keep = [&](std::uint32_t i, std::uint32_t row) {
        if (i < begin || i >= end) return;
        link.store_shared(word_of(i), row);
        link.store(link.rank(), word_at(body.in_.at.places, i), row);
      };
      return sort_each(link, id_of, body.sort_of_arrivals(records), keep) != 0;
    }

   private:
    std::uint32_t word_of(std::uint32_t choice) const {
      return kernels::peer::few_tokens_layout(work.at, work.rows).choices() + 4 * choice;
    }
  };
  /// Stands in for the sorts of `prepare`. The first thread alone sorts by rank.
  struct preparing_block : expert_sort {
    using expert_sort::body, expert_sort::link, expert_sort::work;

    template <class RankOf>
    void by_rank(const RankOf& rank_of) const {
      if (body.thread_ != 0) return;
      for (std::uint32_t i = 0; i < body.case_.tokens * body.case_.k; ++i) {
        link.store(link.rank(), word_at(work.at.rank_of_choice, i), rank_of(i));
      }
      body.sort_by_rank(link);
    }
    std::uint32_t departures(std::uint32_t rank) const {
      return link.load(link.rank(), word_at(work.at.departed, rank));
    }
    bool are_pulled() const {
      bool pulled = false;
      for (std::uint32_t rank = 0; rank < link.ranks(); ++rank) {
        const std::uint32_t count = departures(rank);
        pulled = pulled || (count != 0 && !work.has_eager_records(link.ranks(), count));
      }
      return pulled;
    }
    void set_late(std::uint32_t rank) const { link.store_shared(late_at, rank); }
    std::uint32_t late() const { return link.load_shared(late_at); }
  };
  /// Stands in for a block that sends and takes records. Each thread sorts by rank for itself.
  struct fetching_block : expert_sort {
    using expert_sort::body, expert_sort::link, expert_sort::work;
    std::vector<kernels::peer::departing_record> order{};
    bool has_pulled{false};

    template <class RankOf>
    void by_rank(const RankOf& rank_of) {
      order.clear();
      for (std::uint32_t rank = 0; rank < link.ranks(); ++rank) take(rank, rank_of);
    }
    bool are_pulled() const { return has_pulled; }
    kernels::peer::record_share departing() const {
      return kernels::peer::share_of_block(static_cast<std::uint32_t>(order.size()), body.block_, work.records.blocks);
    }
    kernels::peer::departing_record record(std::uint32_t i) const { return order.at(i); }

   private:
    /// Appends the records for a rank.
    template <class RankOf>
    void take(std::uint32_t rank, const RankOf& rank_of) {
      const auto first = static_cast<std::uint32_t>(order.size());
      for (std::uint32_t i = 0; i < body.case_.tokens * body.case_.k; ++i) {
        if (rank_of(i) == rank) order.push_back({i / body.case_.k, rank, kernels::peer::none});
      }
      const std::uint32_t count = static_cast<std::uint32_t>(order.size()) - first;
      const bool is_eager = work.has_eager_records(link.ranks(), count);
      has_pulled = has_pulled || (count != 0 && !is_eager);
      for (std::uint32_t i = 0; is_eager && i < count; ++i) order.at(first + i).eager = i;
    }
  };
  void sort_by_rank(Link& link) const {
    const std::uint64_t records = case_.tokens * case_.ranks;
    for (std::uint64_t i = 0; i < records; ++i) {
      link.store(link.rank(), word_at(in_.at.token_of_record, i), kernels::peer::none);
    }
    sort_choices(link, words_at(link, in_.at.rank_of_choice),
                 {case_.tokens * case_.k, case_.ranks, 1, records, in_.at.record_of_choice, in_.at.departed});
    for (std::uint32_t choice = 0; choice < case_.tokens * case_.k; ++choice) {
      const std::uint32_t i = link.load(link.rank(), word_at(in_.at.record_of_choice, choice));
      if (i != kernels::peer::none) link.store(link.rank(), word_at(in_.at.token_of_record, i), choice / case_.k);
    }
  }
  template <class IdOf>
  void sort_by_expert(Link& link, std::uint32_t records, const IdOf& id_of) const {
    link.store(link.rank(), in_.lacking, sort_choices(link, id_of, sort_of_arrivals(records)));
  }

  choice_sort sort_of_arrivals(std::uint32_t records) const {
    return {records * case_.k, case_.experts, case_.alignment, case_.rows, in_.at.places, 0};
  }

  /// Sends this block's share of the sums to the ranks of their tokens.
  void send_sums(Link& link, std::uint32_t call) const {
    const std::uint32_t total = link.load(link.rank(), in_.at.total);
    for (std::uint32_t i = block_; i < total; i += case_.blocks) {
      if (kernels::peer::rank_of_record(link, in_.at.arrived, i) == link.rank()) continue;
      link.store_at(target(link, i), values_.sum_of_record(link, call, i));
      link.release();
      kernels::peer::count_units(link, in_.at.place, target(link, i), in_.at.place.units());
    }
  }
  /// Takes the sums of this block's share of the tokens. Results may lie anywhere in `x`.
  void take_sums(Link& link, std::uint32_t call) const {
    if (!kernels::peer::await_combines(link, experts_deadline)) return;
    for (std::uint32_t token = block_; token < case_.tokens; token += case_.blocks) {
      for (std::uint32_t choice = token * case_.k; choice < (token + 1) * case_.k; ++choice) {
        if (!take_sum(link, call, choice)) return;
      }
      link.store(link.rank(), in_.x + std::uint64_t{case_.tokens - 1 - token} * case_.row_bytes, 0);
    }
  }
  bool take_sum(Link& link, std::uint32_t call, std::uint32_t choice) const {
    const std::uint32_t i = link.load(link.rank(), word_at(in_.at.record_of_choice, choice));
    if (i == kernels::peer::none) return true;
    const std::uint32_t rank = kernels::peer::rank_of_record(link, in_.at.departed, i);
    if (rank == link.rank()) return true;
    if (!kernels::peer::await_sum(link, in_.at.place, values_.place_of(i), rank, experts_deadline)) return false;
    values_.check_sum(link, call, choice, i);
    return true;
  }
  std::uint64_t target(Link& link, std::uint32_t i) const {
    const std::uint64_t at = word_at(in_.at.targets, std::uint64_t{2} * i);
    const std::uint64_t high = link.load(link.rank(), at + 4);
    return high << 32 | link.load(link.rank(), at);
  }
  const experts_case case_;
  const expert_windows in_;
  const expert_values<Link> values_;
  std::uint32_t block_;
  std::uint32_t thread_;
  std::uint32_t threads_;
  verdict_lists& verdicts_;
};

/// Makes a program of dispatches and combines. Each call has two verdicts.
template <class Link = ranks::model_link>
ranks::program experts_program(const experts_case& given, const verdict_check& check) {
  const auto verdicts = std::make_shared<verdict_lists>();
  ranks::program made;
  made.ranks = given.ranks;
  const std::uint32_t most_blocks = given.blocks + 2;  // of a rank: one prepares few tokens, one waits for rows
  for (std::uint32_t rank = 0; rank < given.ranks; ++rank) {
    const std::uint32_t blocks = given.blocks + (given.threads_of(rank) != 0 ? 1 : 0);
    for (std::uint32_t block = 0; block < blocks; ++block) {
      const bool has_few = given.threads_of(rank) != 0;
      const std::uint32_t threads = !has_few ? 1 : block == 0 ? given.threads : given.fetching_threads;
      for (std::uint32_t thread = 0; thread < threads; ++thread) {
        made.threads.push_back(
            {rank, rank * most_blocks + block, experts_body<Link>(given, {rank, block, thread}, *verdicts)});
      }
    }
    if (!given.is_awaited) continue;
    made.threads.push_back(
        {rank, (rank + 1) * most_blocks - 1, experts_body<Link>(given, {rank, blocks, awaiting_thread}, *verdicts)});
  }
  made.begin = [verdicts, given] { verdicts->assign(given.ranks, {}); };
  made.check = [verdicts, check] { return check(*verdicts); };
  return made;
}

/// Runs `use` with a kernel for each step of a dispatch, and with a block that prepares it.
template <class Use>
void for_both_ways(experts_case given, const Use& use) {
  for (given.threads = 0; given.threads < 4; given.threads += 3) {
    SCOPED_TRACE(given.threads);
    use(given);
  }
}

template <class Link = ranks::model_link>
ranks::program experts_program(const experts_case& given) {
  return experts_program<Link>(given, all_calls_ok(2 * given.calls));
}

}  // namespace tmap::testing
