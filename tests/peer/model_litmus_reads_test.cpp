// SPDX-License-Identifier: Apache-2.0
// Goes on with the rows of the order table (model_litmus_test.cpp): how what was announced is read,
// and when its source is free. Racing accesses, failures and deadlines follow.
#include <gtest/gtest.h>

#include <cstdint>

#include "peer/litmus.hpp"

namespace tmap::testing::litmus {
namespace {

/// One thread of rank 1 waits, another one reads.
template <class Block>
program read_by_another_thread() {
  return of(2, {{0, 0,
                 [](model_link& link) {
                   link.store(1, data, 7);
                   link.raise(1, flag, 1);
                 }},
                {1, 1,
                 [](model_link& given) {
                   Block link(given);
                   link.expect(link.wait(flag, 1, never), "the signal comes");
                   link.sync();
                 }},
                {1, 1, [](model_link& given) {
                   Block link(given);
                   link.sync();
                   link.expect(link.load(1, data) == 7, "the word is there");
                 }}});
}

TEST(model_litmus, one_thread_waits_for_its_block) {
  expect_always(read_by_another_thread<model_link>());
}
TEST(model_litmus, a_block_that_reads_without_its_barrier_is_seen) {
  expect_failure(read_by_another_thread<without_sync>(), "the word is there");
}

/// Rank 1 reads by a bulk copy what rank 0 has put there; Writer: by a put or by ordinary stores.
template <class Receiver, bool by_put>
program read_by_get() {
  return of(2, {{0, 0,
                 [](model_link& link) {
                   stage(link, 100);
                   if (by_put) {
                     link.put(1, data, staging, piece_bytes);
                     link.quiet();
                   } else {
                     for (std::uint32_t i = 0; i < piece_bytes; i += 4) link.store(1, data + i, 100 + i);
                     link.proxy_fence();  // of the writer's block, so it does not help the reader
                   }
                   link.raise(1, flag, 1);
                 }},
                {1, 1, [](model_link& given) {
                   Receiver link(given);
                   link.expect(link.wait(flag, 1, never), "the signal comes");
                   link.proxy_fence();
                   link.get(staging, 1, data, piece_bytes);
                   link.wait_gets();
                   for (std::uint32_t i = 0; i < piece_bytes; i += 4)
                     link.expect(link.load_shared(i) == 100 + i, "the piece is whole");
                 }}});
}

TEST(model_litmus, a_get_after_wait_and_proxy_fence_brings_what_was_put) {
  expect_always(read_by_get<model_link, true>());
}
TEST(model_litmus, a_get_after_wait_and_proxy_fence_brings_what_was_stored) {
  expect_always(read_by_get<model_link, false>());
}
TEST(model_litmus, a_get_without_a_proxy_fence_is_seen_stale) {
  expect_failure(read_by_get<without_proxy_fence, true>(), "the piece is whole");
  expect_failure(read_by_get<without_proxy_fence, false>(), "the piece is whole");
}
TEST(model_litmus, shared_memory_read_before_the_gets_ended_is_seen) {
  expect_failure(read_by_get<without_wait_gets, true>(), "the piece is whole");
}

/// Rank 1 gets a word of rank 0 and raises a credit, after which rank 0 overwrites the word.
template <class Reader, bool awaits_credit = true>
program overwrite_after_credit() {
  return of(2, {{0, 0,
                 [](model_link& link) {
                   link.store(0, data, 7);
                   link.raise(1, flag, 1);
                   if (awaits_credit) link.expect(link.wait(credit, 1, never), "the credit comes");
                   link.store(0, data, 8);
                 }},
                {1, 1, [](model_link& given) {
                   Reader link(given);
                   link.expect(link.wait(flag, 1, never), "the signal comes");
                   link.proxy_fence();
                   link.get(staging, 0, data, 4);
                   link.wait_gets();
                   link.raise(0, credit, 1);
                   model_link(link).wait_gets();
                   link.expect(link.load_shared(staging) == 7, "the word is the first");
                 }}});
}

TEST(model_litmus, a_source_is_free_after_its_credit) {
  expect_always(overwrite_after_credit<model_link>());
}
TEST(model_litmus, a_source_overwritten_without_credit_is_seen) {
  expect_failure(overwrite_after_credit<model_link, false>(), "the word is the first");
}
TEST(model_litmus, a_credit_before_the_gets_ended_is_seen) {
  expect_failure(overwrite_after_credit<without_wait_gets>(), "the word is the first");
}

// The model must be able to do all that PTX allows to racing accesses.

TEST(model_litmus, both_ranks_may_miss_the_others_store) {
  static std::uint32_t seen[2];
  const auto body = [](std::uint32_t me) {
    return [me](model_link& link) {
      link.store(0, data + me * 4, 1);
      seen[me] = link.load(0, data + (1 - me) * 4);
    };
  };
  program both = of(2, {{0, 0, body(0)}, {1, 1, body(1)}});
  both.check = [] { return seen[0] + seen[1] == 0 ? "both missed it" : ""; };
  expect_failure(both, "both missed it");
}

TEST(model_litmus, loads_of_one_word_may_see_its_writes_in_the_other_order) {
  expect_failure(of(2, {{0, 0, [](model_link& link) { link.store(1, data, 1); }},
                        {1, 1,
                         [](model_link& link) {
                           const std::uint32_t first = link.load(1, data);
                           link.expect(first <= link.load(1, data), "the order is kept");
                         }}}),
                 "the order is kept");
}

TEST(model_litmus, a_store_may_come_late_after_a_later_one_of_another_rank) {
  expect_failure(of(2, {{0, 0,
                         [](model_link& given) {
                           raise_relaxed link(given);
                           link.store(1, data, 1);
                           link.raise(1, flag, 1);
                         }},
                        {1, 1,
                         [](model_link& given) {
                           wait_relaxed link(given);
                           link.expect(link.wait(flag, 1, never), "the signal comes");
                           link.store(1, data, 2);
                           link.expect(link.load(1, data) == 2, "the later store is the last");
                         }}}),
                 "the later store is the last");
}

TEST(model_litmus, a_failure_of_random_runs_names_its_seed_and_steps) {
  const ranks::findings found = ranks::explore_random(read_by_get<without_proxy_fence, false>(), 1, 1000);
  EXPECT_EQ(found.failure.find("seed "), 0u) << found.failure;
  EXPECT_NE(found.failure.find("red.release window 1 word 0: 1"), std::string::npos) << found.failure;
}

TEST(model_litmus, a_wait_without_a_raise_ends_at_its_deadline_or_is_reported) {
  const auto waiting = [](std::uint64_t deadline) {
    return of(1, {{0, 0, [deadline](model_link& link) {
                     link.expect(!link.wait(flag, 1, deadline), "nobody raised");
                     link.expect(link.now() == deadline, "the clock shows the deadline");
                   }}});
  };
  expect_always(waiting(5));
  expect_failure(waiting(never), "waits for ever");
}

}  // namespace
}  // namespace tmap::testing::litmus
