// SPDX-License-Identifier: Apache-2.0
// Runs dispatches and combines over the model that cannot go well: too many tokens or rows, sizes
// that differ, ranks that die, lists that lie, and combines that have no dispatch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "peer/experts_case.hpp"
#include "peer/experts_examples.hpp"
#include "peer/explored.hpp"
#include "peer/faulty_links.hpp"
#include "support/run_seed.hpp"

namespace tmap::testing {
namespace {

using ranks::model_link;

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

TEST(protocol_experts_ends, more_tokens_than_a_rank_has_room_for_are_named_to_all) {
  experts_case full = crossing();
  full.tokens = 2;
  full.arrivals = 1;
  full.chosen = [](std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t j) { return j == 0 ? 3 : -1; };
  expect_both_ways(full, both_overflow(1), 100);
}

TEST(protocol_experts_ends, more_rows_than_a_rank_has_room_for_are_named_to_all) {
  experts_case full = crossing();
  full.rows = 3;
  full.chosen = [](std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t j) {
    return static_cast<std::int32_t>(2 + j);
  };
  expect_both_ways(full, both_overflow(1), 100);
  full.rows = 4;
  expect_at_random(experts_program(full), 100);
}

TEST(protocol_experts_ends, a_call_after_one_with_too_many_rows_holds) {
  experts_case full = crossing();
  full.rows = 1;
  full.chosen = [](std::uint32_t call, std::uint32_t from, std::uint32_t, std::uint32_t j) {
    return call == 0 || j == 0 ? static_cast<std::int32_t>(2 * from + j) : -1;
  };
  expect_both_ways(full, expect_one_overflow, 100);
}

TEST(protocol_experts_ends, a_call_after_one_with_too_many_tokens_holds) {
  experts_case full = too_many_tokens();
  expect_both_ways(full, expect_one_overflow, 100);
  full.odd_ranks_announce_late = true;
  expect_both_ways(full, expect_one_overflow, 100);
}

TEST(protocol_experts_ends, ranks_whose_sizes_differ_break_the_group) {
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

/// Expects of rank 0 that it names rank 1, or nobody. Its blocks give up at the same time, and one
/// that waits for another one of the same rank does not know who is late.
struct names_the_late_rank : faulty_link {
  using faulty_link::faulty_link;
  void store(std::uint32_t to, std::uint64_t offset, std::uint32_t value) {
    const bool is_fault = to == 0 && rank() == 0 && offset == offsetof(window_header, fault);
    expect(!is_fault || detail::peer::verdict_of(value).peer == 1, "the rank that is late is named");
    faulty_link::store(to, offset, value);
  }
};

TEST(protocol_experts_ends, a_rank_that_never_comes_is_named) {
  for_both_ways(crossing(), [](experts_case given) {
    given.blocks = 2;
    ranks::program late = experts_program<names_the_late_rank>(given, the_living_end(1));
    late.dies = ranks::death{1, 0};
    expect_at_random(late, 200);
  });
}

TEST(protocol_experts_ends, others_end_by_their_deadline_when_a_rank_dies) {
  experts_case either = crossing();
  expect_the_living_end(either);
  either.threads = 2;
  expect_the_living_end(either);
  either.blocks = 2;
  expect_the_living_end(either);
}

TEST(protocol_experts_ends, deadlines_that_come_early_break_the_group_and_no_row) {
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

/// Runs a fetch of rank 0 by a list that names a row and a place that are not there. Rank 1 has one
/// row.
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
    kernels::peer::fetch_piece pieces[kernels::peer::most_fetch_stages];
    const peer_verdict ended = fetch(link, request, pieces, experts_deadline);
    link.expect(ended.status == peer_status::ok, "the call is a success");
    link.end_kernel();
    for (std::uint32_t place = 0; place < 4; ++place) {
      const std::uint32_t want = me == 0 && place == 1 ? 77 : 0;
      link.expect(link.load(me, out + 16 * place) == want, "only the good entry moves a row");
    }
  }
};

/// Expects that what a thread of each of two ranks does holds in random executions.
void expect_of_two_ranks(const std::function<void(model_link&)>& run) {
  ranks::program made;
  for (std::uint32_t rank = 0; rank < 2; ++rank) made.threads.push_back({rank, rank, run});
  expect_at_random(made, 50);
}

TEST(protocol_experts_ends, a_list_of_rows_and_places_that_are_not_there_moves_nothing_else) {
  expect_of_two_ranks(hostile_fetch::run);
}

/// Fetches two records of rank 0, of which one names a row that is not there, and the other one a
/// place that is not there. Rank 1 has one row. One thread does the work of both blocks.
void fetch_hostile_records(model_link& link) {
  constexpr std::uint64_t rows = peer_header_bytes, arriving = rows + 64, out = arriving + 64;
  const std::uint32_t me = link.rank();
  link.store(me, rows, 77);
  if (me == 0) {
    for (std::uint32_t i = 0; i < 2; ++i) {
      link.store(me, arriving + 32 * i + 4 * kernels::peer::record::token, 1 - i);
      link.store(me, arriving + 32 * i + 4 * kernels::peer::record::source, 1);
    }
  }
  link.end_kernel();
  kernels::peer::preparation work{};
  work.at.k = 2;
  work.at.arriving = arriving;
  exchange_request& call = work.rows.call;
  call.rows = rows;
  call.out = out;
  call.row_bytes = call.staging_bytes = call.sent_pitch = work.rows.out_pitch = 16;
  call.sent_rows = call.stages = 1;
  call.blocks = call.capacity = work.rows.places = work.rows.entries = 2;
  for (std::uint32_t i = 0; i < 2; ++i) {
    const std::uint32_t choices = kernels::peer::few_tokens_layout(work.at, work.rows).choices() + 8 * i;
    link.store_shared(choices, 2 * i);  // rows 0 and 2, of 2
    link.store_shared(choices + 4, 1);
  }
  kernels::peer::fetch_request request = work.rows;
  constexpr std::uint32_t first_call = 1;
  const peer_verdict announced = kernels::peer::announce(link, request.call, first_call, experts_deadline);
  link.expect(announced.status == peer_status::ok, "the rows are announced");
  request.call.block = 1;
  kernels::peer::fetch_piece pieces[kernels::peer::most_fetch_stages];
  const kernels::peer::record_share own{0, me == 0 ? 2u : 0};
  constexpr kernels::peer::dispatch_thread alone{{0, 1}, false};
  kernels::peer::record_places<model_link> places(link, work);
  constexpr kernels::peer::pending_groups no_groups{};
  kernels::peer::group_raiser<model_link> nobody(link, no_groups);
  kernels::peer::record_fetcher<model_link> fetcher(link, work, own, request, pieces, places, nobody);
  fetcher.begin();
  fetch_records(link, request.call, first_call, alone, fetcher, experts_deadline);
  link.end_kernel();
  for (std::uint32_t place = 0; place < 4; ++place) {
    const std::uint32_t want = me == 0 && place == 1 ? 77 : 0;
    link.expect(link.load(me, out + 16 * place) == want, "only the good place gets a row");
  }
}

TEST(protocol_experts_ends, records_of_rows_and_places_that_are_not_there_move_nothing_else) {
  expect_of_two_ranks(fetch_hostile_records);
}

/// Expects that what one thread of one rank does holds in every execution.
void expect_of_one_rank(const std::function<void(model_link&)>& run) {
  ranks::program alone;
  alone.ranks = 1;
  alone.threads.push_back({0, 0, run});
  expect_always(alone);
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

TEST(protocol_experts_ends, blocks_share_lists_of_any_length) {
  expect_of_one_rank([](model_link& link) {
    using shares = std::vector<std::uint32_t>;
    link.expect(entries_of_blocks(link, 0, 3) == shares{0, 0, 0}, "nothing to do");
    link.expect(entries_of_blocks(link, 2, 3) == shares{1, 1, 0}, "an entry each");
    link.expect(entries_of_blocks(link, 8, 3) == shares{3, 3, 2}, "a short list");
    link.expect(entries_of_blocks(link, 15, 3) == shares{5, 5, 5}, "a long list");
  });
}

TEST(protocol_experts_ends, a_record_of_an_expert_that_is_not_there_has_no_choice) {
  expect_of_one_rank([](model_link& link) {
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
  });
}

/// After a call without success this rank may overwrite nothing that others might still pull. So it
/// does as if no token had come.
TEST(protocol_experts_ends, nothing_has_arrived_after_a_failure) {
  expect_of_one_rank([](model_link& link) {
    expert_arrays at{};
    at.arrived = peer_header_bytes;
    link.store(0, at.arrived, 3);
    for (std::uint32_t status = 0; status < 4; ++status) {
      detail::peer::report(link, {static_cast<peer_status>(status)});
      const std::uint32_t want = status == 0 ? 3 : 0;
      link.expect(count_arrived(link, at) == want, "failures bring nothing");
    }
  });
}

/// The arrays may be those of a dispatch of other sizes. What they hold may lead anywhere.
TEST(protocol_experts_ends, no_results_are_listed_after_a_failure) {
  expect_of_one_rank([](model_link& link) {
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
  });
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

TEST(protocol_experts_ends, a_second_combine_finds_no_dispatch_and_moves_nothing) {
  experts_case twice = crossing();
  twice.combines_twice = true;
  expect_both_ways(twice, one_finds_no_dispatch(2), 300);
}

TEST(protocol_experts_ends, a_combine_of_another_shape_moves_nothing_and_the_right_one_works) {
  experts_case otherwise = crossing();
  otherwise.combines_otherwise = true;
  for (const bool returns_rows : {false, true}) {
    otherwise.returns_rows = returns_rows;
    expect_both_ways(otherwise, one_finds_no_dispatch(1), 200);
  }
}

}  // namespace
}  // namespace tmap::testing
