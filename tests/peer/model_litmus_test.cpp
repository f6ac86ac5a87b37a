// SPDX-License-Identifier: Apache-2.0
// Runs a small program for each row of the order table (docs/peers.md) in every execution that the
// model has, and its broken twins, of which some execution must fail. The first shows that the model
// is not too weak, the second that it is weak enough.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "lib/simulator/ranks/explore.hpp"
#include "peer/explored.hpp"
#include "peer/faulty_links.hpp"

namespace tmap::testing {
namespace {

using ranks::model_link;
using ranks::never;
using ranks::program;

// Offsets in windows and in shared memory.
constexpr std::uint64_t flag = 0, credit = 16, data = 32;
constexpr std::uint32_t staging = 0;
constexpr std::uint32_t piece = 16;

/// Makes a program of one thread for each body: (rank, block, body).
program of(std::uint32_t rank_count, std::vector<program::thread> threads) {
  program made;
  made.ranks = rank_count;
  made.threads = std::move(threads);
  return made;
}

/// Fills a piece of shared memory as the copy engine will read it.
template <class Link>
void stage(Link& link, std::uint32_t value) {
  for (std::uint32_t i = 0; i < piece; i += 4) link.store_shared(staging + i, value + i);
  link.proxy_fence();
}

template <class Link>
void expect_piece(Link& link, std::uint32_t value) {
  for (std::uint32_t i = 0; i < piece; i += 4)
    link.expect(link.load(link.rank(), data + i) == value + i, "the piece is whole");
}

/// Rank 0 puts a piece into rank 1 and announces it; rank 1 waits and reads it by loads.
template <class Sender, class Receiver = model_link>
program put_and_raise() {
  return of(2, {{0, 0,
                 [](model_link& given) {
                   Sender link(given);
                   stage(link, 100);
                   link.put(1, data, staging, piece);
                   link.quiet();
                   link.raise(1, flag, 1);
                 }},
                {1, 1, [](model_link& given) {
                   Receiver link(given);
                   link.expect(link.wait(flag, 1, never), "the signal comes");
                   expect_piece(link, 100);
                 }}});
}

TEST(model_litmus, a_put_is_there_after_quiet_raise_and_wait) {
  expect_always(put_and_raise<model_link>());
}
TEST(model_litmus, a_put_without_quiet_is_seen_missing) {
  expect_failure(put_and_raise<without_quiet>(), "the piece is whole");
}
TEST(model_litmus, a_put_with_flush_for_quiet_is_seen_missing) {
  expect_failure(put_and_raise<flush_for_quiet>(), "the piece is whole");
}
TEST(model_litmus, a_put_whose_quiet_lacks_the_fence_is_seen_missing) {
  expect_failure(put_and_raise<quiet_without_fence>(), "the piece is whole");
}
TEST(model_litmus, a_relaxed_raise_is_seen) {
  expect_failure(put_and_raise<raise_relaxed>(), "the piece is whole");
}
TEST(model_litmus, a_relaxed_wait_is_seen) {
  expect_failure(put_and_raise<model_link, wait_relaxed>(), "the piece is whole");
}

/// Rank 0 stores a word into rank 1 by an ordinary store and announces it.
template <class Sender, class Receiver = model_link>
program store_and_raise() {
  return of(2, {{0, 0,
                 [](model_link& given) {
                   Sender link(given);
                   link.store(1, data, 7);
                   link.raise(1, flag, 1);
                 }},
                {1, 1, [](model_link& given) {
                   Receiver link(given);
                   link.expect(link.wait(flag, 1, never), "the signal comes");
                   link.expect(link.load(1, data) == 7, "the word is there");
                 }}});
}

TEST(model_litmus, a_store_is_there_after_raise_and_wait) {
  expect_always(store_and_raise<model_link>());
}
TEST(model_litmus, a_store_with_a_relaxed_raise_is_seen_missing) {
  expect_failure(store_and_raise<raise_relaxed>(), "the word is there");
}
TEST(model_litmus, a_store_with_a_relaxed_wait_is_seen_missing) {
  expect_failure(store_and_raise<model_link, wait_relaxed>(), "the word is there");
}

/// Two threads of rank 0 write shared memory, and one of them puts it.
template <class Writer>
program put_of_two_writers() {
  const auto body = [](bool is_elected) {
    return [is_elected](model_link& given) {
      Writer link(given);
      link.store_shared(is_elected ? 0 : 4, 5);
      link.proxy_fence();
      link.sync();
      if (!is_elected) return;
      link.put(1, data, staging, 8);
      link.quiet();
      link.raise(1, flag, 1);
    };
  };
  return of(2, {{0, 0, body(true)}, {0, 0, body(false)}, {1, 1, [](model_link& link) {
                                                            link.expect(link.wait(flag, 1, never), "the signal comes");
                                                            link.expect(
                                                                link.load(1, data) == 5 && link.load(1, data + 4) == 5,
                                                                "both words are there");
                                                          }}});
}

TEST(model_litmus, shared_memory_is_put_after_fence_and_barrier) {
  expect_always(put_of_two_writers<model_link>());
}
TEST(model_litmus, shared_memory_put_without_a_proxy_fence_is_seen_stale) {
  expect_failure(put_of_two_writers<without_proxy_fence>(), "both words are there");
}
TEST(model_litmus, shared_memory_put_without_a_barrier_is_seen_stale) {
  expect_failure(put_of_two_writers<without_sync>(), "both words are there");
}

/// Rank 0 puts two values to one place. Bulk copies have no order, except by quiet.
template <class Sender>
program put_twice() {
  return of(2, {{0, 0,
                 [](model_link& given) {
                   Sender link(given);
                   link.store_shared(0, 1);
                   link.store_shared(16, 2);
                   link.proxy_fence();
                   link.put(1, data, 0, 4);
                   link.quiet();
                   link.proxy_fence();
                   link.put(1, data, 16, 4);
                   model_link(link).quiet();
                   link.raise(1, flag, 1);
                 }},
                {1, 1, [](model_link& link) {
                   link.expect(link.wait(flag, 1, never), "the signal comes");
                   link.expect(link.load(1, data) == 2, "the later put is the last");
                 }}});
}

TEST(model_litmus, puts_to_one_place_have_the_order_of_a_quiet_between_them) {
  expect_always(put_twice<model_link>());
}
TEST(model_litmus, puts_to_one_place_without_quiet_are_seen_in_the_other_order) {
  expect_failure(put_twice<without_quiet>(), "the later put is the last");
}

/// Rank 0 uses the source of a put again.
template <class Sender>
program overwrite_the_source() {
  return of(2, {{0, 0,
                 [](model_link& given) {
                   Sender link(given);
                   stage(link, 100);
                   link.put(1, data, staging, piece);
                   link.flush();
                   stage(link, 200);
                   link.quiet();
                   link.raise(1, flag, 1);
                 }},
                {1, 1, [](model_link& link) {
                   link.expect(link.wait(flag, 1, never), "the signal comes");
                   expect_piece(link, 100);
                 }}});
}

TEST(model_litmus, the_source_of_a_put_is_free_after_flush) {
  expect_always(overwrite_the_source<model_link>());
}
TEST(model_litmus, a_source_overwritten_without_flush_is_seen) {
  expect_failure(overwrite_the_source<without_flush>(), "the piece is whole");
}

/// One thread of a block puts and quiets, another one raises.
template <class Block>
program raise_by_another_thread() {
  return of(2, {{0, 0,
                 [](model_link& given) {
                   Block link(given);
                   stage(link, 100);
                   link.put(1, data, staging, piece);
                   link.quiet();
                   link.sync();
                 }},
                {0, 0,
                 [](model_link& given) {
                   Block link(given);
                   link.sync();
                   link.raise(1, flag, 1);
                 }},
                {1, 1, [](model_link& link) {
                   link.expect(link.wait(flag, 1, never), "the signal comes");
                   expect_piece(link, 100);
                 }}});
}

TEST(model_litmus, another_thread_may_raise_after_a_barrier) {
  expect_always(raise_by_another_thread<model_link>());
}
TEST(model_litmus, a_raise_by_another_thread_without_a_barrier_is_seen) {
  expect_failure(raise_by_another_thread<without_sync>(), "the piece is whole");
}

/// Rank 0 puts into rank 2 and tells rank 1, which tells rank 2.
template <class Middle>
program raise_over_a_third() {
  return of(3, {{0, 0,
                 [](model_link& link) {
                   stage(link, 100);
                   link.put(2, data, staging, piece);
                   link.quiet();
                   link.raise(1, flag, 1);
                 }},
                {1, 1,
                 [](model_link& given) {
                   Middle link(given);
                   link.expect(link.wait(flag, 1, never), "the signal comes");
                   link.raise(2, flag, 1);
                 }},
                {2, 2, [](model_link& link) {
                   link.expect(link.wait(flag, 1, never), "the signal comes");
                   expect_piece(link, 100);
                 }}});
}

TEST(model_litmus, a_raise_carries_what_its_thread_has_acquired) {
  expect_always(raise_over_a_third<model_link>());
}
TEST(model_litmus, a_third_that_waits_relaxed_is_seen) {
  expect_failure(raise_over_a_third<wait_relaxed>(), "the piece is whole");
}
TEST(model_litmus, a_third_that_raises_relaxed_is_seen) {
  expect_failure(raise_over_a_third<raise_relaxed>(), "the piece is whole");
}

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
                     link.put(1, data, staging, piece);
                     link.quiet();
                   } else {
                     for (std::uint32_t i = 0; i < piece; i += 4) link.store(1, data + i, 100 + i);
                     link.proxy_fence();  // of the writer's block, so it does not help the reader
                   }
                   link.raise(1, flag, 1);
                 }},
                {1, 1, [](model_link& given) {
                   Receiver link(given);
                   link.expect(link.wait(flag, 1, never), "the signal comes");
                   link.proxy_fence();
                   link.get(staging, 1, data, piece);
                   link.wait_gets();
                   for (std::uint32_t i = 0; i < piece; i += 4)
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

// What PTX allows to racing accesses, the model must be able to do.

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
  const ranks::findings found = ranks::explore_random(put_and_raise<without_quiet>(), 1, 1000);
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
}  // namespace tmap::testing
