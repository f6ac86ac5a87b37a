// SPDX-License-Identifier: Apache-2.0
// Runs dispatches to experts and combines over the model: every execution of the smallest, and
// random executions of many routes and sizes.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "peer/experts_case.hpp"
#include "peer/experts_examples.hpp"
#include "peer/explored.hpp"
#include "peer/faulty_links.hpp"
#include "support/run_seed.hpp"

namespace tmap::testing {
namespace {

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
          .entries = 1,
          .pulls_all = true};  // words of eager rows have too many orders
}

TEST(protocol_experts, the_smallest_dispatch_and_combine_hold_in_every_execution) {
  experts_case smallest = smallest_dispatch();
  expect_always(experts_program(smallest));
  smallest.returns_rows = true;
  expect_always(experts_program(smallest));
}

/// It has too many executions to run them all.
TEST(protocol_experts, the_smallest_dispatch_of_few_tokens_holds) {
  experts_case smallest = smallest_dispatch();
  smallest.threads = 2;
  expect_at_random(experts_program(smallest), 3000);
  smallest.odd_ranks_have_many = true;
  expect_at_random(experts_program(smallest), 3000);
}

TEST(protocol_experts, dispatch_and_combine_hold) {
  expect_at_random(experts_program(two_ranks()), 200);
  expect_at_random(experts_program(crossing()), 200);
}

TEST(protocol_experts, few_tokens_that_one_block_prepares_hold) {
  for (experts_case few : {two_ranks(), crossing()}) {
    few.threads = 3;
    few.blocks = few.fetching_threads = 2;
    expect_at_random(experts_program(few), 200);
    few.pulls_all = true;
    expect_at_random(experts_program(few), 200);
  }
}

/// Fails if a rank stores experts of arrivals before it has the credits of its dispatch. Arrays of
/// other sizes may lie where peers still pull.
struct watched_credits : faulty_link {
  using faulty_link::faulty_link;
  static inline std::uint64_t begin, end;                // of the experts of arrivals
  static inline std::vector<std::uint32_t> has_credits;  // of each rank: in which kernel it got them last

  void end_kernel() {
    ++kernel_;
    faulty_link::end_kernel();
  }
  [[nodiscard]] bool wait(std::uint64_t signal, std::uint32_t value, std::uint64_t deadline,
                          std::uint64_t unless = no_word) {
    const bool has_come = faulty_link::wait(signal, value, deadline, unless);
    if (has_come && is_word_of(signal, offsetof(window_header, credited))) has_credits.at(rank()) = kernel_;
    return has_come;
  }
  void store(std::uint32_t to, std::uint64_t offset, std::uint32_t value) {
    const bool is_watched = begin <= offset && offset < end;
    expect(!is_watched || has_credits.at(rank()) == kernel_, "nothing is overwritten before the credits");
    faulty_link::store(to, offset, value);
  }

 private:
  std::uint32_t kernel_{1};
};

TEST(protocol_experts, few_tokens_overwrite_nothing_before_they_have_all_credits) {
  experts_case few = crossing();
  few.threads = 3;
  watched_credits::begin = expert_windows(few).at.weights;
  watched_credits::end = watched_credits::begin + 4 * few.arrivals * few.k;
  watched_credits::has_credits.assign(few.ranks, 0);
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

TEST(protocol_experts, dispatches_without_combines_hold) {
  experts_case alone = crossing();
  alone.combines_never = true;
  alone.blocks = 2;
  expect_both_ways(alone, all_calls_ok(2), 200);
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
  drawn.threads = below(2) * (2 + below(2));
  drawn.fetching_threads = 1 + below(2);
  drawn.odd_ranks_have_many = below(2) == 1;
  drawn.odd_ranks_announce_late = below(2) == 1;
  drawn.pulls_all = below(3) == 0;
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

TEST(protocol_experts, ranks_that_announce_a_fetch_early_hold_with_those_that_announce_it_late) {
  for (experts_case mixed : {two_ranks(), crossing()}) {
    mixed.odd_ranks_announce_late = true;
    mixed.blocks = 2;
    expect_both_ways(mixed, all_calls_ok(4), 200);
  }
}

}  // namespace
}  // namespace tmap::testing
