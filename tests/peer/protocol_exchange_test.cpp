// SPDX-License-Identifier: Apache-2.0
// Runs exchanges over the model: every execution of small ones, random executions of larger ones,
// and with a fault each that the model must see.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "peer/exchange_case.hpp"
#include "peer/explored.hpp"
#include "peer/faulty_links.hpp"
#include "support/run_seed.hpp"

namespace tmap::testing {
namespace {

using ranks::model_link;

/// Sends a row to the next rank alone.
std::uint32_t ring_row(std::uint32_t, std::uint32_t from, std::uint32_t to, std::uint32_t) {
  return from == to ? 0 : 1;
}

exchange_case smallest() {
  return {.rows = ring_row, .stages = 1};
}

TEST(protocol_exchange, the_smallest_exchange_holds_in_every_execution) {
  expect_always(exchange_program(smallest()));
}

TEST(protocol_exchange, replays_with_other_sizes_hold) {
  expect_at_random(exchange_program(three_ranks()), 300);
  exchange_case by_group = three_ranks();
  by_group.placed = row_placement::group_major;
  expect_at_random(exchange_program(by_group), 300);
}

TEST(protocol_exchange, blocks_that_share_the_rows_hold) {
  exchange_case shared = three_ranks();
  shared.ranks = 2;
  shared.blocks = 2;
  expect_at_random(exchange_program(shared), 300);
}

TEST(protocol_exchange, random_sizes_hold) {
  auto random = run_random(19);
  for (int i = 0; i < 20; ++i) {
    const std::uint32_t salt = static_cast<std::uint32_t>(random());
    exchange_case drawn;
    drawn.ranks = 1 + static_cast<std::uint32_t>(random() % 4);
    drawn.groups = 1 + static_cast<std::uint32_t>(random() % 3);
    drawn.blocks = 1 + static_cast<std::uint32_t>(random() % 2);
    drawn.calls = 2;
    drawn.stages = 1 + static_cast<std::uint32_t>(random() % 6);
    drawn.placed = random() % 2 == 0 ? row_placement::rank_major : row_placement::group_major;
    drawn.sent_rows = drawn.capacity = 64;
    drawn.is_eager = drawn.groups == 1 && random() % 2 == 0;
    drawn.row_bytes = 16 * (1 + static_cast<std::uint32_t>(random() % 3));
    drawn.staging_bytes = 16 * (1 + static_cast<std::uint32_t>(random() % 4));  // cuts rows, or holds several
    drawn.rows = [salt](std::uint32_t call, std::uint32_t from, std::uint32_t to, std::uint32_t group) {
      return static_cast<std::uint32_t>(ranks::mix(ranks::mix(salt, call * 64 + from), to * 64 + group) >> 40) % 4;
    };
    expect_at_random(exchange_program(drawn), 20);
  }
}

/// Fails if a row moves.
struct moves_nothing : faulty_link {
  using faulty_link::faulty_link;
  void get(std::uint32_t, std::uint32_t, std::uint64_t, std::uint32_t, std::uint32_t) { expect(false, "no row moves"); }
};

TEST(protocol_exchange, a_rank_that_would_get_too_many_rows_is_named_to_all) {
  exchange_case full = three_ranks();
  full.capacity = 2;
  full.rows = [](std::uint32_t, std::uint32_t, std::uint32_t to, std::uint32_t group) {
    return to == 1 && group == 0 ? 1u : 0u;
  };
  expect_at_random(exchange_program<moves_nothing>(full, all_calls(peer_status::overflow, 1)), 200);
}

TEST(protocol_exchange, a_rank_that_would_send_rows_it_lacks_is_named_to_all) {
  exchange_case lacking = three_ranks();
  lacking.sent_rows = 5;
  lacking.rows = [](std::uint32_t, std::uint32_t from, std::uint32_t, std::uint32_t) { return from == 1 ? 1u : 0u; };
  expect_at_random(exchange_program<moves_nothing>(lacking, all_calls(peer_status::bad_counts, 1)), 200);
}

TEST(protocol_exchange, sums_of_counts_do_not_wrap_around) {
  constexpr std::uint32_t half = 1u << 31;
  exchange_case full = three_ranks();
  full.groups = 1;
  full.sent_rows = ~0u;
  full.rows = [](std::uint32_t, std::uint32_t from, std::uint32_t to, std::uint32_t) {
    return from != 1 && to == 1 ? half : 0;
  };
  expect_at_random(exchange_program<moves_nothing>(full, all_calls(peer_status::overflow, 1)), 20);
  full.rows = [](std::uint32_t, std::uint32_t from, std::uint32_t to, std::uint32_t) {
    return from == 2 && to != 2 ? half : 0;
  };
  expect_at_random(exchange_program<moves_nothing>(full, all_calls(peer_status::bad_counts, 2)), 20);
}

TEST(protocol_exchange, ranks_that_make_other_calls_break_the_group) {
  exchange_case odd = three_ranks();
  odd.calls = 2;
  odd.odd_rank = 2;
  const auto all_fatal = [](const verdict_lists& verdicts) -> std::string {
    std::uint32_t mismatches = 0;
    for (const auto& of_rank : verdicts) {
      if (!detail::peer::is_fatal(of_rank.at(0).status)) return "a rank went on";
      if (of_rank.at(1).status != peer_status::broken) return "a call after the end went on";
      mismatches += of_rank.at(0).status == peer_status::mismatch;
    }
    return mismatches > 0 ? "" : "nobody saw the mismatch";
  };
  expect_at_random(exchange_program(odd, all_fatal), 200);
}

/// Begins two calls before the counters wrap around.
ranks::program late_program(const exchange_case& given) {
  ranks::program late = exchange_program(given);
  for (std::uint32_t rank = 0; rank < late.ranks; ++rank) {
    late.initial.push_back({rank, offsetof(window_header, exchanges), ~0u - 1});
    for (std::uint32_t peer = 0; peer < late.ranks; ++peer) {
      late.initial.push_back({rank, word_at(offsetof(window_header, credited), peer), ~0u - 1});
    }
  }
  return late;
}

TEST(protocol_exchange, counters_wrap_around) {
  exchange_case given = three_ranks();
  expect_at_random(late_program(given), 200);
  given.groups = 1;
  given.is_eager = true;
  expect_at_random(late_program(given), 200);
}

// Seeded faults. Each is one rule of the protocol that a link breaks (faulty_links.hpp).

template <class Link>
void expect_seen(const std::string& why) {
  expect_failure_at_random(exchange_program<Link>(two_calls()), why);
}

TEST(protocol_exchange_faults, none_is_seen_without_a_fault) {
  expect_at_random(exchange_program(two_calls()), 500);
}
TEST(protocol_exchange_faults, packets_taken_without_an_acquire_are_seen) {
  expect_seen<take_relaxed>("row is right");
}
TEST(protocol_exchange_faults, a_missing_release_is_seen) {
  expect_seen<without_release>("row is right");
}
TEST(protocol_exchange_faults, a_missing_proxy_fence_is_seen) {
  expect_seen<without_proxy_fence>("the row is right");
}
TEST(protocol_exchange_faults, a_missing_wait_for_gets_is_seen) {
  expect_seen<without_wait_gets>("the row is right");
}
TEST(protocol_exchange_faults, a_wait_for_the_other_gets_is_seen) {
  expect_seen<wait_for_other_gets>("the row is right");
}
TEST(protocol_exchange_faults, counts_read_before_the_wait_are_seen) {
  expect_seen<counts_before_the_wait>("");
}
TEST(protocol_exchange_faults, a_missing_credit_is_seen) {
  expect_seen<without_credit>("");
}
TEST(protocol_exchange_faults, an_epoch_not_raised_is_seen) {
  expect_seen<epoch_not_raised<offsetof(window_header, exchanges)>>("");
}
TEST(protocol_exchange_faults, swapped_ranks_are_seen) {
  expect_seen<swapped_ranks>("the row is right");
}
TEST(protocol_exchange_faults, an_offset_off_by_one_row_is_seen) {
  expect_seen<off_by_one_row>("the row is right");
}

template <class Link>
void expect_seen_if_full(const std::string& why) {
  exchange_case full = two_calls();
  full.capacity = 1;
  expect_failure_at_random(exchange_program<Link>(full), why);
}

TEST(protocol_exchange_faults, an_unchecked_capacity_is_seen) {
  expect_seen_if_full<unchecked_capacity>("beyond the capacity");
}

/// Shows missing quiets by two blocks: the first reads what the other one pulled.
template <class Link>
void expect_seen_of_workers() {
  exchange_case shared = two_calls();
  shared.blocks = 2;
  shared.stages = 1;
  shared.rows = [](std::uint32_t, std::uint32_t from, std::uint32_t to, std::uint32_t) { return from == to ? 0u : 4u; };
  expect_failure_at_random(exchange_program<Link>(shared), "the row is right");
}

TEST(protocol_exchange_faults, a_missing_settle_is_seen) {
  expect_seen_of_workers<without_settle>();
}
TEST(protocol_exchange_faults, a_flush_for_settle_is_seen) {
  expect_seen_of_workers<flush_for_settle>();
}
TEST(protocol_exchange_faults, a_missing_flush_is_seen) {
  expect_seen_of_workers<without_flush>();
}
TEST(protocol_exchange_faults, a_flush_after_the_next_get_is_seen) {
  expect_seen_of_workers<flush_after_get>();
}

}  // namespace
}  // namespace tmap::testing
