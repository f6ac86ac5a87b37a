// SPDX-License-Identifier: Apache-2.0
// Runs exchanges over the model whose rows come with the announcement: every execution of the
// smallest, random executions of others, and with a fault each that the model must see.
#include <gtest/gtest.h>

#include <cstdint>

#include "peer/byte_link.hpp"
#include "peer/exchange_case.hpp"
#include "peer/explored.hpp"
#include "peer/faulty_links.hpp"

namespace tmap::testing {
namespace {

/// Each rank sends to the others, and more in the second call.
exchange_case two_eager_calls() {
  exchange_case made = two_calls();
  made.row_bytes = 8;
  made.is_eager = true;
  return made;
}

exchange_case three_eager_ranks() {
  exchange_case made = three_ranks();
  made.groups = 1;
  made.is_eager = true;
  return made;
}

/// Fails if a rank reads rows of another one.
struct pulls_nothing : faulty_link {
  using faulty_link::faulty_link;
  void get(std::uint32_t, std::uint32_t, std::uint64_t, std::uint32_t, std::uint32_t) {
    expect(false, "nothing is pulled");
  }
};

TEST(protocol_eager, the_smallest_exchange_holds_in_every_execution) {
  exchange_case smallest;
  smallest.row_bytes = 8;
  smallest.stages = 1;
  smallest.is_eager = true;
  smallest.rows = [](std::uint32_t, std::uint32_t from, std::uint32_t, std::uint32_t) { return from == 0 ? 1u : 0u; };
  smallest.sent_rows = 2;
  expect_always(exchange_program<pulls_nothing>(smallest));
}

TEST(protocol_eager, replays_with_other_sizes_hold) {
  expect_at_random(exchange_program<pulls_nothing>(three_eager_ranks()), 200);
}

TEST(protocol_eager, rows_that_a_crew_moves_hold) {
  exchange_case crewed = three_eager_ranks();
  crewed.has_crew = true;
  expect_at_random(exchange_program<pulls_nothing>(crewed), 200);
  crewed.odd_ranks_pull = true;
  crewed.blocks = 2;
  expect_at_random(exchange_program(crewed), 200);
}

TEST(protocol_eager, ranks_that_send_rows_hold_with_those_that_let_them_be_pulled) {
  exchange_case mixed = three_eager_ranks();
  mixed.odd_ranks_pull = true;
  mixed.blocks = 2;
  expect_at_random(exchange_program(mixed), 200);
}

TEST(protocol_eager, rows_are_pulled_from_the_first_one_that_is_too_many) {
  exchange_case many = two_eager_calls();
  many.row_bytes = kernels::peer::most_eager_packets / 2 * detail::peer::packet_words * 4;
  many.rows = [](std::uint32_t call, std::uint32_t from, std::uint32_t to, std::uint32_t) {
    return from == to ? 0 : 2 + call;
  };
  many.sent_rows = many.capacity = 3;
  many.rows_room = 65536;
  expect_at_random(exchange_program(many), 3);
  many.calls = 1;
  expect_at_random(exchange_program<pulls_nothing>(many), 3);
}

TEST(protocol_eager, rows_at_any_byte_hold) {
  exchange_case skewed = two_eager_calls();
  skewed.row_bytes = 12;
  skewed.staging_bytes = 48;
  skewed.rows_skew = 3;
  skewed.out_skew = 6;
  expect_at_random(exchange_program<byte_link<>>(skewed), 50);
  skewed.rows_gap = 5;
  skewed.out_gap = 2;
  expect_at_random(exchange_program<byte_link<>>(skewed), 50);
}

TEST(protocol_eager, too_many_rows_are_named_to_all_and_nothing_moves) {
  exchange_case full = three_eager_ranks();
  full.capacity = 2;
  full.rows = [](std::uint32_t, std::uint32_t, std::uint32_t to, std::uint32_t) { return to == 1 ? 1u : 0u; };
  expect_at_random(exchange_program<pulls_nothing>(full, all_calls(peer_status::overflow, 1)), 200);
  full.capacity = 16;
  full.sent_rows = 2;
  full.rows = [](std::uint32_t, std::uint32_t from, std::uint32_t, std::uint32_t) { return from == 1 ? 1u : 0u; };
  expect_at_random(exchange_program<pulls_nothing>(full, all_calls(peer_status::bad_counts, 1)), 200);
}

/// Fails if a second call announces anything.
struct announces_once : pulls_nothing {
  using pulls_nothing::pulls_nothing;
  void send(std::uint32_t to, std::uint64_t offset, const detail::peer::packet& given) {
    expect(given.tag == detail::peer::tag_of(1), "a call that does not begin announces nothing");
    pulls_nothing::send(to, offset, given);
  }
};
TEST(protocol_eager, a_call_that_continues_one_without_success_does_not_begin) {
  exchange_case full = two_eager_calls();
  full.has_crew = full.continues = true;
  full.blocks = 2;
  full.capacity = 0;
  expect_at_random(exchange_program<announces_once>(full, all_calls(peer_status::overflow, 0)), 200);
}

// Seeded faults.

template <class Link>
void expect_eager_fault(const std::string& why) {
  expect_failure_at_random(exchange_program<Link>(two_eager_calls()), why);
}

TEST(protocol_eager_faults, packets_taken_before_they_came_are_seen) {
  expect_eager_fault<any_packets>("row is right");
}

TEST(protocol_eager_faults, a_missing_credit_is_seen) {
  expect_eager_fault<without_credit>("");
}

/// Lets the first thread go on before its crew has taken the rows.
template <class Link>
struct crew_that_nobody_awaits : second_thread_crew<Link> {
  using second_thread_crew<Link>::second_thread_crew;
  std::uint32_t end_take() { return kernels::peer::no_rank; }
};
TEST(protocol_eager_faults, a_credit_before_the_crew_has_taken_is_seen) {
  exchange_case crewed = two_eager_calls();
  crewed.has_crew = true;
  crewed.calls = 3;
  crewed.ranks = 3;
  using crew = crew_that_nobody_awaits<ranks::model_link>;
  expect_failure_at_random(exchange_program<ranks::model_link, crew>(crewed), "");
}
TEST(protocol_eager_faults, a_missing_barrier_with_the_crew_is_seen) {
  exchange_case crewed = two_eager_calls();
  crewed.has_crew = true;
  expect_failure_at_random(exchange_program<without_sync>(crewed), "");
}

TEST(protocol_eager_faults, a_thread_that_announces_and_hears_alone_is_seen) {
  exchange_case crewed = two_eager_calls();
  crewed.has_crew = true;
  expect_failure_at_random(exchange_program<without_sync_or>(crewed), "");
}

TEST(protocol_eager_faults, an_epoch_not_raised_is_seen) {
  expect_eager_fault<epoch_not_raised<offsetof(window_header, exchanges)>>("");
}

TEST(protocol_eager_faults, packets_for_another_rank_are_seen) {
  expect_eager_fault<packets_for_the_next_rank>("");
}

/// Announces that no rows come with the announcement.
using unannounced = changed_slots<kernels::peer::slot::flags,
                                  [](std::uint32_t bits) { return bits & ~kernels::peer::slot_flag::is_eager; }>;
TEST(protocol_eager_faults, rows_that_are_pulled_without_a_fence_are_seen) {
  expect_eager_fault<unannounced>("row is right");
}

/// Leaves a packet out, which a rank then waits for.
struct lost_packet : faulty_link {
  using faulty_link::faulty_link;
  void send(std::uint32_t to, std::uint64_t offset, const detail::peer::packet& given) {
    if (offset != kernels::peer::eager_packet_at(ranks(), rank(), 0)) faulty_link::send(to, offset, given);
  }
};
TEST(protocol_eager_faults, a_packet_that_does_not_come_breaks_the_group) {
  const auto all_fatal = [](const verdict_lists& verdicts) -> std::string {
    std::uint32_t timeouts = 0;
    for (const auto& of_rank : verdicts) {
      for (const peer_verdict& each : of_rank) {
        if (!detail::peer::is_fatal(each.status)) return "a rank went on";
        timeouts += each.status == peer_status::timeout && each.step == protocol_step::announcement;
      }
    }
    return timeouts > 0 ? "" : "nobody waited in vain";
  };
  expect_at_random(exchange_program<lost_packet>(two_eager_calls(), all_fatal), 100);
}

}  // namespace
}  // namespace tmap::testing
