// SPDX-License-Identifier: Apache-2.0
// Runs exchanges whose rows are pushed over the model: every execution of small ones, random
// executions of larger ones, and with a fault each that the model must see.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "peer/exchange_case.hpp"
#include "peer/explored.hpp"
#include "peer/faulty_links.hpp"
#include "support/run_seed.hpp"

namespace tmap::testing {
namespace {

exchange_case pushed(exchange_case given) {
  given.groups = 1;
  given.pushed_bytes = 1;
  return given;
}

TEST(protocol_push, the_smallest_exchange_holds_in_every_execution) {
  const auto to_next = [](std::uint32_t, std::uint32_t from, std::uint32_t to, std::uint32_t) {
    return from == to ? 0u : 1u;
  };
  expect_always(exchange_program(pushed({.rows = to_next, .stages = 1})));
}
TEST(protocol_push, replays_with_other_sizes_hold) {
  expect_at_random(exchange_program(pushed(three_ranks())), 300);
}

/// Pulls of other ranks' rows would end the execution.
struct pulls_nothing : faulty_link {
  using faulty_link::faulty_link;
  void get(std::uint32_t to_shared, std::uint32_t from, std::uint64_t offset, std::uint32_t bytes, std::uint32_t set) {
    expect(from == rank(), "no row is pulled");
    faulty_link::get(to_shared, from, offset, bytes, set);
  }
};
TEST(protocol_push, no_row_is_pulled) {
  expect_at_random(exchange_program<pulls_nothing>(pushed(two_calls())), 200);
}

/// Pushes would end the execution.
struct pushes_nothing : faulty_link {
  using faulty_link::faulty_link;
  void put(std::uint32_t to, std::uint64_t offset, std::uint32_t from_shared, std::uint32_t bytes) {
    expect(to == rank(), "no row is pushed");
    faulty_link::put(to, offset, from_shared, bytes);
  }
};
TEST(protocol_push, rows_that_are_fewer_than_a_rank_asks_for_are_pulled) {
  exchange_case few = pushed(two_calls());
  few.pushed_bytes = 16 * 3;
  expect_at_random(exchange_program<pushes_nothing>(few), 200);
}
TEST(protocol_push, rows_that_come_with_the_announcement_are_not_pushed) {
  exchange_case eager = pushed(two_calls());
  eager.is_eager = true;
  expect_at_random(exchange_program<pushes_nothing>(eager), 200);
}
TEST(protocol_push, rows_of_some_ranks_come_with_the_announcement) {
  exchange_case mixed = pushed(three_ranks());
  mixed.is_eager = mixed.odd_ranks_pull = true;
  expect_at_random(exchange_program(mixed), 300);
}

TEST(protocol_push, some_ranks_push_and_others_do_not) {
  exchange_case mixed = pushed(three_ranks());
  mixed.odd_ranks_do_not_push = true;
  expect_at_random(exchange_program(mixed), 300);
}

TEST(protocol_push, random_sizes_hold) {
  auto random = run_random(29);
  for (int i = 0; i < 20; ++i) {
    const auto salt = static_cast<std::uint32_t>(random());
    exchange_case drawn = pushed({});
    drawn.ranks = 1 + static_cast<std::uint32_t>(random() % 4);
    drawn.blocks = 1 + static_cast<std::uint32_t>(random() % 2);
    drawn.calls = 2;
    drawn.stages = 1 + static_cast<std::uint32_t>(random() % 6);
    drawn.sent_rows = drawn.capacity = 64;
    drawn.row_bytes = 16 * (1 + static_cast<std::uint32_t>(random() % 3));
    drawn.rows_gap = 16 * static_cast<std::uint32_t>(random() % 2);
    drawn.out_gap = 16 * static_cast<std::uint32_t>(random() % 2);
    drawn.staging_bytes = 16 * (1 + static_cast<std::uint32_t>(random() % 4));  // cuts rows, or holds several
    drawn.pushed_bytes = 1 + static_cast<std::uint32_t>(random() % 100);
    drawn.odd_ranks_do_not_push = random() % 2 == 0;
    drawn.rows = [salt](std::uint32_t call, std::uint32_t from, std::uint32_t to, std::uint32_t) {
      return static_cast<std::uint32_t>(ranks::mix(ranks::mix(salt, call * 64 + from), to) >> 40) % 4;
    };
    expect_at_random(exchange_program(drawn), 20);
  }
}

TEST(protocol_push, a_rank_that_would_get_too_many_rows_is_named_to_all) {
  exchange_case full = pushed(three_ranks());
  full.capacity = 2;
  full.rows = [](std::uint32_t, std::uint32_t, std::uint32_t to, std::uint32_t) { return to == 1 ? 1u : 0u; };
  expect_at_random(exchange_program<pushes_nothing>(full, all_calls(peer_status::overflow, 1)), 200);
}

// Seeded faults. Each is one rule of the protocol that a link breaks (faulty_links.hpp).

/// Two blocks push, so that what one of them put is announced by the other.
exchange_case two_pushing_blocks() {
  exchange_case shared = pushed(two_calls());
  shared.blocks = 2;
  shared.stages = 1;
  shared.rows = [](std::uint32_t, std::uint32_t from, std::uint32_t to, std::uint32_t) { return from == to ? 0u : 4u; };
  return shared;
}
template <class Link>
void expect_seen(const std::string& why) {
  expect_failure_at_random(exchange_program<Link>(two_pushing_blocks()), why);
}

TEST(protocol_push_faults, none_is_seen_without_a_fault) {
  expect_at_random(exchange_program(two_pushing_blocks()), 500);
}
TEST(protocol_push_faults, a_missing_quiet_is_seen) {
  expect_seen<without_quiet>("the row is right");
}
TEST(protocol_push_faults, a_quiet_without_a_fence_is_seen) {
  expect_seen<quiet_without_fence>("the row is right");
}
TEST(protocol_push_faults, an_announcement_that_does_not_carry_what_was_written_is_seen) {
  exchange_case mixed = pushed(three_ranks());
  mixed.is_eager = mixed.odd_ranks_pull = true;
  expect_failure_at_random(exchange_program<without_release>(mixed), "row is right");
}
TEST(protocol_push_faults, a_missing_flush_is_seen) {
  expect_seen<without_flush>("the row is right");
}
TEST(protocol_push_faults, rows_read_before_they_came_are_seen) {
  expect_seen<without_credit>("the row is right");
}
TEST(protocol_push_faults, a_missing_wait_for_the_other_blocks_is_seen) {
  expect_seen<without_waiting_for<offsetof(window_header, workers_raised)>>("the row is right");
}
TEST(protocol_push_faults, a_counter_that_is_not_cleared_is_seen) {
  // The second call goes on where the first one ended.
  expect_seen<epoch_not_raised<offsetof(window_header, pieces_dealt)>>("the row is right");
}

/// Puts to the neighbour of the rank that it should put to.
struct puts_to_the_next_rank : faulty_link {
  using faulty_link::faulty_link;
  void put(std::uint32_t to, std::uint64_t offset, std::uint32_t from_shared, std::uint32_t bytes) {
    faulty_link::put((to + 1) % ranks(), offset, from_shared, bytes);
  }
};
TEST(protocol_push_faults, swapped_ranks_are_seen) {
  expect_seen<puts_to_the_next_rank>("right");
}

/// Announces another place for the rows that come.
using place_off_by_one = changed_slots<kernels::peer::slot::out_units, [](std::uint32_t units) { return units + 1; }>;
TEST(protocol_push_faults, a_place_off_by_one_row_is_seen) {
  expect_seen<place_off_by_one>("the row is right");
}
TEST(protocol_push_faults, an_unchecked_capacity_is_seen) {
  exchange_case full = pushed(two_calls());
  full.capacity = 1;
  expect_failure_at_random(exchange_program<unchecked_capacity>(full), "beyond the capacity");
}

}  // namespace
}  // namespace tmap::testing
