// SPDX-License-Identifier: Apache-2.0
// Lets a thread of each rank read the rows of each expert over the model, as soon as its word is 0:
// random routes, calls that fail, and with a fault each that the model must see.
#include <gtest/gtest.h>

#include <cstdint>

#include "peer/experts_case.hpp"
#include "peer/explored.hpp"
#include "peer/faulty_links.hpp"
#include "support/run_seed.hpp"

namespace tmap::testing {
namespace {

/// Each token goes to two experts, of either rank. They differ by call.
experts_case awaited_rows() {
  experts_case made;
  made.tokens = 3;
  made.calls = 2;
  made.chosen = [](std::uint32_t call, std::uint32_t from, std::uint32_t token, std::uint32_t j) {
    return static_cast<std::int32_t>((call + from + token + 3 * j) % 4);
  };
  made.is_awaited = true;
  return made;
}

TEST(protocol_pending, rows_are_there_once_their_word_is_0) {
  for (experts_case awaited = awaited_rows(); awaited.blocks < 3; ++awaited.blocks) {
    for_both_ways(awaited, [](const experts_case& each) { expect_at_random(experts_program(each), 200); });
  }
}

TEST(protocol_pending, rows_of_any_sizes_are_there_once_their_word_is_0) {
  auto random = run_random(29);
  for (int i = 0; i < 100; ++i) {
    experts_case drawn = awaited_rows();
    drawn.ranks = 1 + static_cast<std::uint32_t>(random() % 3);
    drawn.stages = 1 + static_cast<std::uint32_t>(random() % 6);
    drawn.entries = 1 + static_cast<std::uint32_t>(random() % 4);
    drawn.blocks = 1 + static_cast<std::uint32_t>(random() % 3);
    drawn.row_bytes = 16 * (1 + static_cast<std::uint32_t>(random() % 3));
    drawn.alignment = 1u << random() % 3;
    drawn.odd_ranks_have_many = random() % 2 == 1;
    drawn.threads = random() % 2 == 1 ? 2 : 0;
    expect_at_random(experts_program(drawn), 4);
  }
}

/// Takes any verdict.
std::string take_all(const verdict_lists&) {
  return {};
}

/// Expects that nobody waits for ever, however the calls end.
void expect_zeros(const experts_case& given) {
  for_both_ways(given, [](const experts_case& each) { expect_at_random(experts_program(each, take_all), 100); });
}

TEST(protocol_pending, words_come_to_0_if_a_rank_has_too_little_room) {
  experts_case full = awaited_rows();
  full.rows = 1;
  expect_zeros(full);
}

TEST(protocol_pending, words_come_to_0_after_a_mismatch) {
  experts_case odd = awaited_rows();
  odd.odd_rank = 1;
  expect_zeros(odd);
}

TEST(protocol_pending, words_come_to_0_by_deadlines_that_come_early) {
  experts_case awaited = awaited_rows();
  awaited.blocks = 2;
  for_both_ways(awaited, [](const experts_case& each) {
    ranks::program hasty = experts_program(each, take_all);
    hasty.early_timeouts = 1;
    expect_at_random(hasty, 300);
  });
}

TEST(protocol_pending, words_come_to_0_when_another_rank_dies) {
  experts_case awaited = awaited_rows();
  awaited.calls = 1;
  ranks::program dying = experts_program(awaited, take_all);
  constexpr std::uint32_t the_lost = 1, stride = 5;
  for (std::uint32_t step = 0;; step += stride) {
    dying.dies = ranks::death{the_lost, step};
    const ranks::findings found = ranks::explore_random(dying, run_random(step)(), 3);
    ASSERT_EQ(found.failure, "") << "dies before step " << step;
    if (!found.has_died) break;
  }
}

// Seeded faults. Each is one rule that a link breaks.

/// Expects that rows that are read too early are seen. Each stage is stored before the next one.
template <class Link>
void expect_early_rows() {
  experts_case early = awaited_rows();
  early.stages = 1;
  expect_failure_at_random(experts_program<Link>(early), "the awaited row is right");
}

/// Raises words of rows whose stores may not have completed.
struct quiet_without_completion : faulty_link {
  using faulty_link::faulty_link;
  void quiet_flushed() { release(); }
};
TEST(protocol_pending_faults, a_word_raised_before_the_stores_have_completed_is_seen) {
  expect_early_rows<quiet_without_completion>();
}

/// Raises words without the fence after the stores have completed.
struct completion_without_fence : faulty_link {
  using faulty_link::faulty_link;
  void quiet_flushed() { machine_->wait_earlier_groups(thread_); }
};
TEST(protocol_pending_faults, a_word_raised_without_a_fence_is_seen) {
  expect_early_rows<completion_without_fence>();
}

/// Raises words of rows whose stores have only been issued.
struct raised_too_far : faulty_link {
  using faulty_link::faulty_link;
  std::uint32_t load_shared(std::uint32_t offset) {
    const std::uint32_t entry = (offset - lists_at) % (4 * kernels::peer::entry_words(2));
    const bool is_group = offset >= lists_at && offset < late_at && entry == 4 * kernels::peer::entry_word::group;
    return faulty_link::load_shared(offset) + (is_group ? 1 : 0);
  }
  static constexpr std::uint32_t lists_at = 32;
};
TEST(protocol_pending_faults, a_group_too_far_is_seen) {
  expect_failure_at_random(experts_program<raised_too_far>(awaited_rows()), "the awaited row is right");
}

}  // namespace
}  // namespace tmap::testing
