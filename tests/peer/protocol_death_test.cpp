// SPDX-License-Identifier: Apache-2.0
// Ends a rank before each of its steps in turn. All others must end with a status by their
// deadline, and rows that a call reports as moved must be right.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "peer/exchange_case.hpp"
#include "peer/explored.hpp"

namespace tmap::testing {
namespace {

using ranks::findings;
using ranks::program;

constexpr std::uint32_t the_dying = 1, no_rank = ~0u;

exchange_case dying_case(std::uint32_t blocks) {
  return {.ranks = 3,
          .blocks = blocks,
          .calls = 2,
          .rows = [](std::uint32_t call, std::uint32_t, std::uint32_t, std::uint32_t) { return 1 + call; }};
}
/// Rows of ranks 0 and 2 come with their announcements.
exchange_case dying_eager_case(std::uint32_t blocks) {
  exchange_case made = dying_case(blocks);
  made.is_eager = made.odd_ranks_pull = true;
  return made;
}

/// Ranks push their rows.
exchange_case dying_pushing_case(std::uint32_t blocks) {
  exchange_case made = dying_case(blocks);
  made.pushed_bytes = 1;
  return made;
}

/// Expects of each living rank that all its calls ended, and after a fatal one with `broken` alone.
/// If calls `continue` others, they end as these did.
verdict_check living_ranks_end(std::uint32_t calls, std::uint32_t dead, bool continue_others = false) {
  return [calls, dead, continue_others](const verdict_lists& verdicts) -> std::string {
    for (std::uint32_t rank = 0; rank < verdicts.size(); ++rank) {
      if (rank == dead) continue;
      if (verdicts[rank].size() != calls) return "a rank ended early";
      bool is_over = false;
      for (const peer_verdict& each : verdicts[rank]) {
        const bool has_ended =
            continue_others ? detail::peer::is_fatal(each.status) : each.status == peer_status::broken;
        if (is_over && !has_ended) return "a call after the end went on";
        if (each.status != peer_status::ok && !detail::peer::is_fatal(each.status)) return "a status is wrong";
        is_over = detail::peer::is_fatal(each.status);
      }
    }
    return {};
  };
}

/// Runs a program with the death at each step, until the rank no longer has so many. Returns how
/// many it has.
std::uint32_t die_at_each_step(program dying, std::uint64_t executions) {
  std::uint64_t all = 0;
  for (std::uint32_t step = 0;; ++step) {
    dying.dies = ranks::death{the_dying, step};
    const findings found = ranks::explore_random(dying, run_random(step)(), executions);
    all += found.executions;
    EXPECT_EQ(found.failure, "") << "dies before step " << step;
    if (!found.has_died || !found.failure.empty()) {
      std::printf("%llu executions, %u steps\n", static_cast<unsigned long long>(all), step);
      return step;
    }
  }
}

TEST(protocol_death, others_end_by_their_deadline) {
  EXPECT_GT(die_at_each_step(exchange_program(dying_case(1), living_ranks_end(2, the_dying)), 10), 100u);
}
TEST(protocol_death, others_end_by_their_deadline_with_several_blocks) {
  EXPECT_GT(die_at_each_step(exchange_program(dying_case(2), living_ranks_end(2, the_dying)), 4), 100u);
}
TEST(protocol_death, others_end_by_their_deadline_with_eager_rows) {
  exchange_case eager = dying_eager_case(1);
  EXPECT_GT(die_at_each_step(exchange_program(eager, living_ranks_end(2, the_dying)), 6), 100u);
  eager.odd_ranks_pull = false;
  EXPECT_GT(die_at_each_step(exchange_program(eager, living_ranks_end(2, the_dying)), 6), 100u);
}

TEST(protocol_death, others_end_by_their_deadline_with_pushed_rows) {
  EXPECT_GT(die_at_each_step(exchange_program(dying_pushing_case(1), living_ranks_end(2, the_dying)), 6), 100u);
  EXPECT_GT(die_at_each_step(exchange_program(dying_pushing_case(2), living_ranks_end(2, the_dying)), 4), 100u);
}

/// All threads of a block must come to the same end. The next call reads how this one ended, which
/// another block may write before some thread of this block begins.
TEST(protocol_death, crews_end_with_the_thread_that_leads_them) {
  for (exchange_case each : {dying_case(2), dying_eager_case(2), dying_pushing_case(2)}) {
    each.has_crew = each.continues = true;
    program broken = exchange_program(each, all_calls(peer_status::broken, 0));
    for (std::uint32_t rank = 0; rank < each.ranks; ++rank) {
      broken.initial.push_back({rank, offsetof(detail::peer::window_header, broken), 1});
    }
    expect_at_random(broken, 300);
    program hasty = exchange_program(each, living_ranks_end(2, no_rank, true));
    hasty.early_timeouts = 1;
    expect_at_random(hasty, 300);
    EXPECT_GT(die_at_each_step(exchange_program(each, living_ranks_end(2, the_dying, true)), 2), 50u);
  }
}

/// A rank that gave up must leave its rows alone, since others may still pull them.
TEST(protocol_death, deadlines_that_come_early_break_the_group_and_no_row) {
  for (const exchange_case& each : {dying_case(1), dying_case(2), dying_eager_case(1), dying_eager_case(2),
                                    dying_pushing_case(1), dying_pushing_case(2)}) {
    program hasty = exchange_program(each, living_ranks_end(2, no_rank));
    hasty.early_timeouts = 1;
    expect_at_random(hasty, 1000);
  }
}

}  // namespace
}  // namespace tmap::testing
