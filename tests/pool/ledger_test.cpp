// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "lib/pool/slot_ledger.hpp"

// Tests the ledger of a pool, step by step.

namespace tmap::testing {
namespace {

using pool::holding;
using pool::slot_ledger;

constexpr std::size_t all = ~std::size_t{0};

class ledger_test : public ::testing::Test {
 protected:
  explicit ledger_test(std::uint64_t capacity = 16) { ledger.add_slab(capacity); }

  holding* lend(std::uint64_t count) { return lend(*ledger.find_free(count)); }
  holding* lend(const pool::slot_window& window) {
    ledger.reserve_lease();
    return ledger.lend(window);
  }

  void end(holding* slots, std::size_t streams) {
    for (std::size_t stream = 0; stream < streams; ++stream) {
      ledger.reserve_stream(slots);
      ledger.add_stream(slots);
    }
    ledger.end(slots);
  }
  void give_back(holding* slots, const std::vector<pool::stream_id>& streams) {
    end(slots, streams.size());
    for (const pool::stream_id stream : streams) ledger.mark(slots, stream, new_event());
  }

  std::size_t idle_events() {
    std::vector<pool::event_handle> idle;
    while (const auto event = ledger.borrow_event()) idle.push_back(*event);
    for (const pool::event_handle event : idle) ledger.give_back(event);
    return idle.size();
  }

  pool::event_handle new_event() { return &events[used_events++]; }

  void expect_counts(std::uint64_t free, std::uint64_t leased, std::uint64_t pending, std::uint64_t captured) const {
    const slot_counts& counts = ledger.counts();
    EXPECT_EQ(counts.free, free);
    EXPECT_EQ(counts.leased, leased);
    EXPECT_EQ(counts.pending, pending);
    EXPECT_EQ(counts.captured, captured);
  }

  slot_ledger ledger;
  std::array<char, 64> events{};
  std::size_t used_events{};
};

TEST_F(ledger_test, neighbours_become_whole_again_in_any_order) {
  constexpr int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const auto& order : orders) {
    holding* const parts[] = {lend(5), lend(6), lend(5)};
    EXPECT_FALSE(ledger.find_free(1).has_value());
    for (const int part : order) ledger.end(parts[part]);
    ASSERT_TRUE(ledger.find_free(16).has_value());
    expect_counts(16, 0, 0, 0);
  }
}

TEST_F(ledger_test, slabs_do_not_touch) {
  ledger.add_slab(16);
  expect_counts(32, 0, 0, 0);
  EXPECT_FALSE(ledger.find_free(17).has_value());
  holding* const first = lend(16);
  holding* const second = lend(16);
  EXPECT_EQ(first->window.first, 0u);
  EXPECT_EQ(second->window.first, std::uint64_t{1} << 32);
  give_back(first, {7});
  give_back(second, {7});
  EXPECT_FALSE(ledger.find_own(17, 7, all).has_value());
  EXPECT_FALSE(ledger.find_returned(17).has_value());
  EXPECT_TRUE(ledger.find_own(16, 7, all).has_value());
}

TEST_F(ledger_test, a_part_of_a_returned_lease_leaves_the_rest_marked) {
  holding* const slots = lend(16);
  give_back(slots, {7});
  const auto window = ledger.find_own(6, 7, all);
  ASSERT_TRUE(window.has_value());
  holding* const part = lend(*window);
  expect_counts(0, 6, 10, 0);
  EXPECT_EQ(idle_events(), 0u) << "the rest still needs the event";
  ledger.complete_oldest_mark(7);
  expect_counts(10, 6, 0, 0);
  EXPECT_EQ(idle_events(), 1u);
  ledger.end(part);
  EXPECT_TRUE(ledger.find_free(16).has_value());
}

TEST_F(ledger_test, all_of_a_returned_lease_leaves_its_event_idle) {
  give_back(lend(16), {7, 8});
  const auto window = ledger.find_returned(16);
  ASSERT_TRUE(window.has_value());
  EXPECT_EQ(ledger.marks_before(*window, 9).size(), 2u);
  ASSERT_EQ(ledger.marks_before(*window, 7).size(), 1u);
  EXPECT_EQ(ledger.marks_before(*window, 7)[0].stream, 8u);
  lend(*window);
  EXPECT_EQ(idle_events(), 2u);
  EXPECT_FALSE(ledger.marked_stream_above(0).has_value());
}

TEST_F(ledger_test, a_window_reaches_over_states_in_both_directions) {
  holding* const a = lend(4);
  holding* const b = lend(4);
  holding* const c = lend(4);
  give_back(b, {7});
  EXPECT_EQ(ledger.find_own(4, 7, all)->first, 4u);
  EXPECT_FALSE(ledger.find_own(5, 7, all).has_value());
  give_back(a, {7});
  EXPECT_EQ(ledger.find_own(5, 7, all)->first, 3u) << "b was returned first, and its left neighbour joins";
  give_back(c, {8});
  EXPECT_FALSE(ledger.find_own(9, 7, all).has_value()) << "c belongs to another stream";
  EXPECT_EQ(ledger.find_returned(16)->first, 0u) << "the end of the slab is free";
  ledger.complete_oldest_mark(8);
  EXPECT_EQ(ledger.find_own(16, 7, all)->count, 16u);
}

TEST_F(ledger_test, a_look_may_be_short) {
  holding* const parts[] = {lend(4), lend(2), lend(6), lend(4)};
  give_back(parts[0], {7});
  give_back(parts[2], {7});
  EXPECT_FALSE(ledger.find_own(6, 7, 1).has_value()) << "the first has 4 slots";
  EXPECT_EQ(ledger.find_own(6, 7, 2)->first, 6u);
}

TEST_F(ledger_test, the_last_mark_of_each_stream_is_enough) {
  for (int lease = 0; lease < 8; ++lease) give_back(lend(2), {static_cast<pool::stream_id>(lease % 2)});
  const auto marks = ledger.marks_before({0, 16}, 9);
  ASSERT_EQ(marks.size(), 2u);
  EXPECT_EQ(marks[0].mark.event, &events[6]);
  EXPECT_EQ(marks[1].mark.event, &events[7]);
  const auto inner = ledger.marks_before({3, 2}, 9);
  ASSERT_EQ(inner.size(), 2u) << "a window that begins inside a lease";
  EXPECT_EQ(inner[0].mark.event, &events[1]);
  EXPECT_EQ(inner[1].mark.event, &events[2]);
}

TEST_F(ledger_test, captured_slots_wait_for_all_their_graphs_and_marks) {
  holding* const slots = lend(16);
  ledger.pin(slots);
  ledger.pin(slots);
  expect_counts(0, 0, 0, 16);
  give_back(slots, {7});
  ledger.unpin(slots);
  expect_counts(0, 0, 0, 16);
  EXPECT_FALSE(ledger.find_own(1, 7, all).has_value());
  EXPECT_FALSE(ledger.find_returned(1).has_value());
  ledger.unpin(slots);
  expect_counts(0, 0, 16, 0);
  EXPECT_TRUE(ledger.find_own(16, 7, all).has_value());
}

TEST_F(ledger_test, marks_that_complete_while_captured_need_no_further_asking) {
  holding* const slots = lend(16);
  ledger.pin(slots);
  give_back(slots, {7});
  ledger.complete_oldest_mark(7);
  expect_counts(0, 0, 0, 16);
  ledger.unpin(slots);
  expect_counts(16, 0, 0, 0);
}

TEST_F(ledger_test, without_a_mark_on_each_stream_nothing_is_returned) {
  holding* const slots = lend(16);
  end(slots, 2);
  ledger.mark(slots, 7, new_event());
  ledger.complete_oldest_mark(7);
  expect_counts(0, 0, 16, 0);
  EXPECT_FALSE(ledger.find_returned(1).has_value());
  ledger.pass(slots);
  expect_counts(16, 0, 0, 0);
}

TEST_F(ledger_test, generations_are_never_zero) {
  EXPECT_EQ(lend(1)->generation, 1u);
  EXPECT_EQ(lend(1)->generation, 2u);
  EXPECT_EQ(pool::next_generation(0xfffffffe), 0xffffffffu);
  EXPECT_EQ(pool::next_generation(0xffffffff), 1u);
}

}  // namespace
}  // namespace tmap::testing
