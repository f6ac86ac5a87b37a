// SPDX-License-Identifier: Apache-2.0
// Runs dispatches to experts and combines over the model: many random routes, capacities that are
// exceeded, deaths, and with a fault each that the model must see.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "peer/experts_case.hpp"
#include "peer/explored.hpp"
#include "peer/faulty_links.hpp"
#include "support/run_seed.hpp"

namespace tmap::testing {
namespace {

using ranks::mix;
using ranks::model_link;

/// Chooses experts that differ by call, rank and token. Some are none, some come twice.
expert_choice random_choices(std::uint32_t salt, std::uint32_t experts) {
  return [salt, experts](std::uint32_t call, std::uint32_t from, std::uint32_t token, std::uint32_t j) {
    const auto drawn = mix(mix(salt, call * 64 + from), token * 64 + j) >> 40;
    return drawn % 8 == 0 ? -1 : static_cast<std::int32_t>(drawn / 8 % experts);
  };
}

experts_case two_ranks() {
  return {.calls = 2, .chosen = random_choices(5, 4)};
}
/// Each token goes to both experts of the other rank.
experts_case crossing() {
  return {.tokens = 1, .calls = 2, .chosen = [](std::uint32_t, std::uint32_t from, std::uint32_t, std::uint32_t j) {
            return static_cast<std::int32_t>((1 - from) * 2 + j);
          }};
}

/// Each rank has a token for the expert of the other one.
experts_case smallest_dispatch() {
  return {.experts = 1,
          .k = 1,
          .tokens = 1,
          .chosen = [](std::uint32_t, std::uint32_t from, std::uint32_t,
                       std::uint32_t) { return static_cast<std::int32_t>(1 - from); },
          .arrivals = 2,
          .rows = 2,
          .stages = 1,
          .entries = 1};
}

TEST(protocol_experts, the_smallest_dispatch_and_combine_hold_in_every_execution) {
  experts_case smallest = smallest_dispatch();
  expect_always(experts_program(smallest));
  smallest.returns_rows = true;
  expect_always(experts_program(smallest));
}

TEST(protocol_experts, the_smallest_dispatch_of_one_block_holds_in_every_execution) {
  experts_case smallest = smallest_dispatch();
  smallest.threads = 1;
  expect_always(experts_program(smallest));
  smallest.odd_ranks_have_many = true;
  expect_always(experts_program(smallest));
}

TEST(protocol_experts, dispatch_and_combine_hold) {
  expect_at_random(experts_program(two_ranks()), 200);
  expect_at_random(experts_program(crossing()), 200);
}

TEST(protocol_experts, few_tokens_that_one_block_prepares_hold) {
  for (experts_case few : {two_ranks(), crossing()}) {
    few.threads = 3;
    few.blocks = 2;
    expect_at_random(experts_program(few), 200);
  }
}

/// Fails if a rank stores experts of arrivals before it has the credits of its dispatch. Arrays of
/// other sizes may lie where peers still pull.
struct watched_credits : faulty_link {
  using faulty_link::faulty_link;
  static inline std::uint64_t begin, end;       // of the experts of arrivals
  static inline std::vector<bool> has_credits;  // of each rank, in this kernel

  void end_kernel() {
    has_credits.at(rank()) = false;
    faulty_link::end_kernel();
  }
  [[nodiscard]] bool wait(std::uint64_t signal, std::uint32_t value, std::uint64_t deadline,
                          std::uint64_t unless = no_word) {
    const bool has_come = faulty_link::wait(signal, value, deadline, unless);
    if (has_come && is_word_of(signal, offsetof(window_header, credited))) has_credits.at(rank()) = true;
    return has_come;
  }
  void store(std::uint32_t to, std::uint64_t offset, std::uint32_t value) {
    if (begin <= offset && offset < end) expect(has_credits.at(rank()), "nothing is overwritten before the credits");
    faulty_link::store(to, offset, value);
  }
};

TEST(protocol_experts, few_tokens_overwrite_nothing_before_they_have_all_credits) {
  experts_case few = crossing();
  few.threads = 3;
  watched_credits::begin = expert_windows(few).at.ids;
  watched_credits::end = watched_credits::begin + 4 * few.arrivals * few.k;
  watched_credits::has_credits.assign(few.ranks, false);
  expect_at_random(experts_program<watched_credits>(few), 200);
}

TEST(protocol_experts, ranks_with_few_tokens_and_with_many_hold_together) {
  for (experts_case mixed : {two_ranks(), crossing()}) {
    mixed.threads = 3;
    mixed.odd_ranks_have_many = true;
    mixed.blocks = 2;
    expect_at_random(experts_program(mixed), 200);
    mixed.returns_rows = true;
    expect_at_random(experts_program(mixed), 100);
  }
}

TEST(protocol_experts, results_that_come_home_one_by_one_hold) {
  experts_case by_rows = two_ranks();
  by_rows.returns_rows = true;
  expect_at_random(experts_program(by_rows), 200);
  by_rows.blocks = 2;
  expect_at_random(experts_program(by_rows), 100);
}

TEST(protocol_experts, blocks_that_share_the_rows_hold) {
  experts_case shared = two_ranks();
  shared.blocks = 2;
  shared.tokens = 3;
  expect_at_random(experts_program(shared), 100);
}

experts_case draw_case(std::mt19937_64& random) {
  const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  experts_case drawn;
  drawn.ranks = 1 + below(4);
  drawn.experts = 1 + below(3);
  drawn.k = 1 + below(4);
  drawn.tokens = below(5);
  drawn.blocks = 1 + below(2);
  drawn.calls = 2;
  drawn.alignment = 1u << below(3);
  drawn.stages = 1 + below(6);
  drawn.entries = 1 + below(4);
  drawn.row_bytes = 16 * (1 + below(3));
  drawn.staging_bytes = 16 * (1 + below(4));
  drawn.rows = 96;
  drawn.returns_rows = below(2) == 1;
  drawn.threads = below(4);
  drawn.odd_ranks_have_many = below(2) == 1;
  drawn.odd_ranks_announce_late = below(2) == 1;
  drawn.chosen = random_choices(below(1u << 30), drawn.ranks * drawn.experts);
  return drawn;
}

TEST(protocol_experts, random_routes_hold) {
  auto random = run_random(23);
  for (int i = 0; i < 200; ++i) expect_at_random(experts_program(draw_case(random)), 4);
}

TEST(protocol_experts, numbers_that_are_no_experts_are_left_out) {
  experts_case odd = two_ranks();
  odd.chosen = [](std::uint32_t, std::uint32_t from, std::uint32_t token, std::uint32_t j) -> std::int32_t {
    if (j == 0) return from == 0 ? -2147483647 : 4;
    return token == 0 ? 2147483647 : 1;
  };
  expect_at_random(experts_program(odd), 50);
}

TEST(protocol_experts, all_tokens_may_go_to_one_expert) {
  experts_case skewed = two_ranks();
  skewed.ranks = 3;
  skewed.chosen = [](std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t) { return 3; };
  expect_at_random(experts_program(skewed), 50);
}

/// Expects that random executions do not fail, whether one block prepares or each step is a kernel.
void expect_both_ways(const experts_case& given, const verdict_check& check, std::uint32_t executions) {
  for_both_ways(given, [&](const experts_case& each) { expect_at_random(experts_program(each, check), executions); });
}

/// Expects that all ranks end both calls with the overflow of rank `peer`.
verdict_check both_overflow(std::uint32_t peer) {
  return [peer](const verdict_lists& verdicts) -> std::string {
    for (const auto& of_rank : verdicts) {
      if (of_rank.empty()) return "a rank ended early";
      for (const peer_verdict& each : of_rank) {
        if (each.status != peer_status::overflow || each.peer != peer) return "a rank has another verdict";
      }
    }
    return {};
  };
}

TEST(protocol_experts, more_tokens_than_a_rank_has_room_for_are_named_to_all) {
  experts_case full = crossing();
  full.tokens = 2;
  full.arrivals = 1;
  full.chosen = [](std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t j) { return j == 0 ? 3 : -1; };
  expect_both_ways(full, both_overflow(1), 100);
}

TEST(protocol_experts, more_rows_than_a_rank_has_room_for_are_named_to_all) {
  experts_case full = crossing();
  full.rows = 3;
  full.chosen = [](std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t j) {
    return static_cast<std::int32_t>(2 + j);
  };
  expect_both_ways(full, both_overflow(1), 100);
  full.rows = 4;
  expect_at_random(experts_program(full), 100);
}

/// Expects that the first dispatch and its combine end with an overflow, and the second ones do
/// not.
std::string expect_one_overflow(const verdict_lists& verdicts) {
  for (const auto& of_rank : verdicts) {
    for (std::size_t i = 0; i < 4; ++i) {
      const peer_status wanted = i < 2 ? peer_status::overflow : peer_status::ok;
      if (of_rank.at(i).status != wanted) return "a call ended otherwise";
    }
  }
  return {};
}

TEST(protocol_experts, a_call_after_one_with_too_many_rows_holds) {
  experts_case full = crossing();
  full.rows = 1;
  full.chosen = [](std::uint32_t call, std::uint32_t from, std::uint32_t, std::uint32_t j) {
    return call == 0 || j == 0 ? static_cast<std::int32_t>(2 * from + j) : -1;
  };
  expect_both_ways(full, expect_one_overflow, 100);
}

/// The first call has more tokens than there is room for. The fetch was announced by then.
experts_case too_many_tokens() {
  experts_case full = crossing();
  full.blocks = 2;
  full.tokens = 2;
  full.arrivals = 1;
  full.chosen = [](std::uint32_t call, std::uint32_t from, std::uint32_t token, std::uint32_t j) {
    return call == 0 || token == 0 ? static_cast<std::int32_t>(2 * (1 - from) + j) : -1;
  };
  return full;
}

TEST(protocol_experts, a_call_after_one_with_too_many_tokens_holds) {
  experts_case full = too_many_tokens();
  expect_both_ways(full, expect_one_overflow, 100);
  full.odd_ranks_announce_late = true;
  expect_both_ways(full, expect_one_overflow, 100);
}

TEST(protocol_experts, ranks_that_announce_a_fetch_early_hold_with_those_that_announce_it_late) {
  for (experts_case mixed : {two_ranks(), crossing()}) {
    mixed.odd_ranks_announce_late = true;
    mixed.blocks = 2;
    expect_both_ways(mixed, all_calls_ok(4), 200);
  }
}

TEST(protocol_experts, ranks_whose_sizes_differ_break_the_group) {
  experts_case odd = crossing();
  odd.calls = 1;
  odd.odd_rank = 1;
  const auto all_fatal = [](const verdict_lists& verdicts) -> std::string {
    std::uint32_t mismatches = 0;
    for (const auto& of_rank : verdicts) {
      for (const peer_verdict& each : of_rank) {
        if (!detail::peer::is_fatal(each.status)) return "a rank went on";
        mismatches += each.status == peer_status::mismatch;
      }
    }
    return mismatches > 0 ? "" : "nobody saw the mismatch";
  };
  expect_both_ways(odd, all_fatal, 100);
}

/// Expects of each living rank that its calls ended, and after a fatal one none is ok.
verdict_check the_living_end(std::uint32_t dead) {
  return [dead](const verdict_lists& verdicts) -> std::string {
    for (std::uint32_t rank = 0; rank < verdicts.size(); ++rank) {
      if (rank == dead) continue;
      if (verdicts[rank].size() != 4) return "a rank ended early";
      bool is_over = false;
      for (const peer_verdict& each : verdicts[rank]) {
        if (is_over && !detail::peer::is_fatal(each.status)) return "a call after the end went on";
        if (each.status != peer_status::ok && !detail::peer::is_fatal(each.status)) return "a status is wrong";
        is_over = detail::peer::is_fatal(each.status);
      }
    }
    return {};
  };
}

/// Lets rank 1 die before steps of a program, up to its end.
void expect_the_living_end(const experts_case& given) {
  constexpr std::uint32_t the_lost = 1, stride = 3;
  ranks::program dying = experts_program(given, the_living_end(the_lost));
  for (std::uint32_t step = 0;; step += stride) {
    dying.dies = ranks::death{the_lost, step};
    const ranks::findings found = ranks::explore_random(dying, run_random(step)(), 3);
    ASSERT_EQ(found.failure, "") << "dies before step " << step;
    if (found.has_died) continue;
    EXPECT_GT(step, 100u);
    break;
  }
}

TEST(protocol_experts, others_end_by_their_deadline_when_a_rank_dies) {
  experts_case either = crossing();
  expect_the_living_end(either);
  either.threads = 2;
  expect_the_living_end(either);
  either.blocks = 2;
  expect_the_living_end(either);
}

TEST(protocol_experts, deadlines_that_come_early_break_the_group_and_no_row) {
  experts_case either = crossing();
  for (std::uint32_t i = 0; i < 8; ++i) {
    either.returns_rows = i % 2 == 1;
    either.threads = i / 2 % 2 * 2;
    either.blocks = 1 + i / 4;
    ranks::program hasty = experts_program(either, the_living_end(kernels::peer::none));
    hasty.early_timeouts = 1;
    expect_at_random(hasty, 300);
  }
}

/// Moves rows by bulk copies.
struct by_copies {
  static peer_verdict move(model_link& link, const kernels::peer::fetch_request& request) {
    kernels::peer::fetch_piece pieces[kernels::peer::most_fetch_stages];
    return fetch(link, request, pieces, experts_deadline);
  }
};

/// Moves the first words of rows as threads do that read them where they lie.
struct by_threads {
  model_link& link;
  const kernels::peer::fetch_request& request;

  static peer_verdict move(model_link& link, const kernels::peer::fetch_request& request) {
    by_threads only{link, request};
    return gather(link, request, experts_deadline, only);
  }
  void work() const {
    const kernels::peer::listed_rows<model_link> listed(link, request);
    for (std::uint32_t i = 0; i < listed.count(); ++i) {
      const kernels::peer::row_place from = listed.find(listed.entry(i));
      const std::uint64_t to = listed.target(i, 0);
      if (from.offset != 0 && to != 0) link.store(link.rank(), to, link.load(from.rank, from.offset));
    }
  }
  void dismiss() const {}
};

/// Runs a fetch of rank 0 by a list that names a row and a place that are not there. Rank 1 has one
/// row.
template <class By>
struct hostile_fetch {
  static constexpr std::uint64_t rows = peer_header_bytes, list = rows + 64, listed = list + 64, out = listed + 16;

  static void run(model_link& link) {
    const std::uint32_t me = link.rank();
    link.store(me, rows, 77);
    if (me == 0) {
      const std::uint32_t entries[]{1, 1, 0, 0, 0, 1, 0, 2, 0, 1, 0, 1};  // row, source, group, place
      for (std::uint32_t i = 0; i < 12; ++i) link.store(me, word_at(list, i), entries[i]);
      link.store(me, listed, 3);
    }
    link.end_kernel();
    kernels::peer::fetch_request request{};
    request.call.rows = rows;
    request.call.out = out;
    request.call.row_bytes = request.call.staging_bytes = 16;
    request.call.sent_rows = request.call.stages = request.call.blocks = 1;
    request.call.capacity = 2;
    request.call.sent_pitch = 16;
    request.listed = listed;
    request.list = list;
    request.places = 1;
    request.entries = 2;
    request.out_pitch = 16;
    link.expect(By::move(link, request).status == peer_status::ok, "the call is a success");
    link.end_kernel();
    for (std::uint32_t place = 0; place < 4; ++place) {
      const std::uint32_t want = me == 0 && place == 1 ? 77 : 0;
      link.expect(link.load(me, out + 16 * place) == want, "only the good entry moves a row");
    }
  }
};

TEST(protocol_experts, a_list_of_rows_and_places_that_are_not_there_moves_nothing_else) {
  for (const auto& run : {hostile_fetch<by_copies>::run, hostile_fetch<by_threads>::run}) {
    ranks::program hostile;
    for (std::uint32_t rank = 0; rank < 2; ++rank) hostile.threads.push_back({rank, rank, run});
    expect_at_random(hostile, 50);
  }
}

/// Runs the walks of all blocks over a list. Returns how many entries each has.
std::vector<std::uint32_t> entries_of_blocks(model_link& link, std::uint32_t entries, std::uint32_t blocks) {
  kernels::peer::fetch_request request{};
  request.listed = peer_header_bytes;
  request.entries = 4;
  request.call.blocks = blocks;
  link.store(0, request.listed, entries);
  std::vector<std::uint32_t> taken(blocks);
  std::vector<bool> is_taken(entries);
  for (request.call.block = 0; request.call.block < blocks; ++request.call.block) {
    kernels::peer::list_walk<model_link> walk(link, request);
    std::uint32_t number = request.call.block;  // in the order of the fetch
    for (auto part = walk.next(); part.entries != 0; part = walk.next()) {
      link.expect(part.entries <= request.entries, "shared memory holds the part");
      taken[request.call.block] += part.entries;
      for (std::uint32_t i = 0; i < part.entries; ++i, number += blocks) {
        link.expect(kernels::peer::list_deal(entries, blocks).place(number) == part.first + i, "blocks take turns");
        is_taken.at(part.first + i) = true;
      }
    }
  }
  link.expect(std::count(is_taken.begin(), is_taken.end(), true) == entries, "each entry has a block");
  return taken;
}

TEST(protocol_experts, blocks_share_lists_of_any_length) {
  ranks::program walks;
  walks.ranks = 1;
  walks.threads.push_back({0, 0, [](model_link& link) {
                             using shares = std::vector<std::uint32_t>;
                             link.expect(entries_of_blocks(link, 0, 3) == shares{0, 0, 0}, "nothing to do");
                             link.expect(entries_of_blocks(link, 2, 3) == shares{1, 1, 0}, "an entry each");
                             link.expect(entries_of_blocks(link, 8, 3) == shares{3, 3, 2}, "a short list");
                             link.expect(entries_of_blocks(link, 15, 3) == shares{5, 5, 5}, "a long list");
                           }});
  expect_always(walks);
}

TEST(protocol_experts, a_record_of_an_expert_that_is_not_there_has_no_choice) {
  ranks::program odd;
  odd.ranks = 1;
  odd.threads.push_back({0, 0, [](model_link& link) {
                           expert_arrays at{};
                           at.k = 1;
                           at.experts = 2;
                           at.arriving = peer_header_bytes;
                           at.ids = peer_header_bytes + 64;
                           at.weights = peer_header_bytes + 128;
                           for (const std::uint32_t id : {1u, 2u, 0x80000000u}) {
                             link.store(0, at.arriving + 4 * kernels::peer::record::experts, id);
                             write_choice(link, at, 0, 1);
                             link.expect(link.load(0, at.ids) == (id == 1 ? 1 : kernels::peer::none), "it is judged");
                           }
                         }});
  expect_always(odd);
}

/// After a call without success this rank may overwrite nothing that others might still pull. So it
/// does as if no token had come.
TEST(protocol_experts, nothing_has_arrived_after_a_failure) {
  ranks::program failed;
  failed.ranks = 1;
  failed.threads.push_back({0, 0, [](model_link& link) {
                              expert_arrays at{};
                              at.arrived = peer_header_bytes;
                              link.store(0, at.arrived, 3);
                              for (std::uint32_t status = 0; status < 4; ++status) {
                                detail::peer::report(link, {static_cast<peer_status>(status)});
                                const std::uint32_t want = status == 0 ? 3 : 0;
                                link.expect(count_arrived(link, at) == want, "failures bring nothing");
                              }
                            }});
  expect_always(failed);
}

/// The arrays may be those of a dispatch of other sizes. What they hold may lead anywhere.
TEST(protocol_experts, no_results_are_listed_after_a_failure) {
  ranks::program failed;
  failed.ranks = 1;
  failed.threads.push_back({0, 0, [](model_link& link) {
                              expert_arrays at{};
                              at.tokens = at.k = at.list_parts = 1;
                              at.departed = peer_header_bytes;
                              at.return_count = at.departed + 64;
                              link.store(0, at.departed, 3);
                              for (std::uint32_t status = 1; status < 9; ++status) {
                                detail::peer::report(link, {static_cast<peer_status>(status)});
                                write_returns(link, at, {0, 1});
                                link.expect(link.load(0, at.return_count) == 0, "failures list nothing");
                              }
                            }});
  expect_always(failed);
}

/// Expects that of each dispatch and its two combines, call number `which` finds no dispatch. The
/// others are successes.
verdict_check one_finds_no_dispatch(std::size_t which) {
  return [which](const verdict_lists& verdicts) -> std::string {
    for (const auto& of_rank : verdicts) {
      for (std::size_t i = 0; i < of_rank.size(); ++i) {
        const peer_status want = i % 3 == which ? peer_status::no_dispatch : peer_status::ok;
        if (of_rank[i].status != want) return "call " + std::to_string(i) + " ended otherwise";
      }
      if (of_rank.size() != 6) return "a call is missing";
    }
    return "";
  };
}

TEST(protocol_experts, a_second_combine_finds_no_dispatch_and_moves_nothing) {
  experts_case twice = crossing();
  twice.combines_twice = true;
  expect_both_ways(twice, one_finds_no_dispatch(2), 300);
}

TEST(protocol_experts, a_combine_of_another_shape_moves_nothing_and_the_right_one_works) {
  experts_case otherwise = crossing();
  otherwise.combines_otherwise = true;
  for (const bool returns_rows : {false, true}) {
    otherwise.returns_rows = returns_rows;
    expect_both_ways(otherwise, one_finds_no_dispatch(1), 200);
  }
}

// Seeded faults. Each is one rule of the protocol that a link breaks (faulty_links.hpp).

template <class Link>
void expect_dispatch_fault(const experts_case& given, const std::string& why) {
  for_both_ways(given, [&](const experts_case& each) { expect_failure_at_random(experts_program<Link>(each), why); });
}

/// Two blocks, so that what one of them fetched is read by another thread.
experts_case two_blocks() {
  experts_case shared = crossing();
  shared.blocks = 2;
  shared.tokens = 3;
  shared.stages = 1;
  shared.entries = 1;
  return shared;
}

using sums_before_the_barrier = without_waiting_for<offsetof(window_header, barrier_raised)>;
TEST(protocol_experts_faults, sums_read_before_the_barrier_are_seen) {
  expect_failure_at_random(experts_program<sums_before_the_barrier>(crossing()), "the sum is right");
}
TEST(protocol_experts_faults, sums_announced_without_a_fence_are_seen) {
  expect_failure_at_random(experts_program<quiet_without_fence>(crossing()), "is right");
}
TEST(protocol_experts_faults, a_missing_quiet_is_seen) {
  expect_failure_at_random(experts_program<without_quiet>(two_blocks()), "right");
}
TEST(protocol_experts_faults, a_missing_flush_is_seen) {
  expect_failure_at_random(experts_program<without_flush>(two_blocks()), "right");
}
TEST(protocol_experts_faults, a_missing_credit_is_seen) {
  // A second block may take the packets of a call after the first one has ended it. Where a call is
  // a success, the barrier of the combine stands in for credits.
  for_both_ways(too_many_tokens(), [](const experts_case& late) {
    expect_failure_at_random(experts_program<without_credit>(late, expect_one_overflow), "");
  });
}
TEST(protocol_experts_faults, a_stale_epoch_is_seen) {
  expect_dispatch_fault<epoch_not_raised<offsetof(window_header, exchanges)>>(crossing(), "");
}
TEST(protocol_experts_faults, a_missing_wait_for_gets_is_seen) {
  expect_failure_at_random(experts_program<without_wait_gets>(crossing()), "");
}
TEST(protocol_experts_faults, a_missing_proxy_fence_is_seen) {
  expect_failure_at_random(experts_program<without_proxy_fence>(crossing()), "");
}
TEST(protocol_experts_faults, counts_read_before_the_wait_are_seen) {
  expect_dispatch_fault<counts_before_the_wait>(crossing(), "");
}
TEST(protocol_experts_faults, swapped_ranks_are_seen) {
  expect_failure_at_random(experts_program<swapped_ranks>(two_ranks()), "");
}

/// Threads of a block that read rows where they lie, after one of them has waited.
experts_case three_threads() {
  experts_case few = crossing();
  few.threads = 3;
  return few;
}
TEST(protocol_experts_faults, a_missing_barrier_of_the_block_is_seen) {
  expect_failure_at_random(experts_program<without_sync>(three_threads()), "right");
}
TEST(protocol_experts_faults, a_fault_of_a_rank_with_few_tokens_is_seen_next_to_one_with_many) {
  experts_case mixed = three_threads();
  mixed.odd_ranks_have_many = true;
  expect_failure_at_random(experts_program<wait_relaxed>(mixed), "");
}
TEST(protocol_experts_faults, rows_read_after_a_relaxed_wait_are_seen) {
  expect_failure_at_random(experts_program<wait_relaxed>(three_threads()), "");
}

/// Loads from the wrong peer.
struct swapped_loads : faulty_link {
  using faulty_link::faulty_link;
  std::uint32_t load(std::uint32_t from, std::uint64_t offset) {
    return faulty_link::load(from == rank() ? from : (from + 1) % ranks(), offset);
  }
};
TEST(protocol_experts_faults, swapped_ranks_of_loads_are_seen) {
  expect_failure_at_random(experts_program<swapped_loads>(three_threads()), "");
}

TEST(protocol_experts_faults, an_unchecked_capacity_is_seen) {
  experts_case full = crossing();
  full.rows = 1;
  expect_dispatch_fault<unchecked_room>(full, "right");
}

/// Puts rows one place too far.
struct off_by_one_place : faulty_link {
  using faulty_link::faulty_link;
  std::uint32_t load_shared(std::uint32_t offset) { return faulty_link::load_shared(offset) + 1; }
};
TEST(protocol_experts_faults, a_place_off_by_one_is_seen) {
  expect_failure_at_random(experts_program<off_by_one_place>(crossing()), "the row is right");
}

}  // namespace
}  // namespace tmap::testing
