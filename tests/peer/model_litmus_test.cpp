// SPDX-License-Identifier: Apache-2.0
// Runs a small program for each row of the order table (docs/peers.md) in every execution that the
// model has, and its broken twins, of which some execution must fail. The first shows that the
// model is not too weak, the second that it is weak enough.
#include <gtest/gtest.h>

#include <cstdint>

#include "peer/litmus.hpp"

namespace tmap::testing::litmus {
namespace {

/// Rank 0 puts a piece into rank 1 and announces it; rank 1 waits and reads it by loads.
template <class Sender, class Receiver = model_link>
program put_and_raise() {
  return of(2, {{0, 0,
                 [](model_link& given) {
                   Sender link(given);
                   stage(link, 100);
                   link.put(1, data, staging, piece_bytes);
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
                   link.put(1, data, staging, piece_bytes);
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

/// Two blocks of a rank each store a word, and then count.
template <class Block>
program store_and_count() {
  const auto block = [](std::uint64_t own, std::uint64_t others) {
    return [own, others](model_link& given) {
      Block link(given);
      link.store(0, own, 7);
      if (link.count_here(flag) == 1) link.expect(link.load(0, others) == 7, "the last one sees the word");
    };
  };
  return of(1, {{0, 0, block(data, data + 4)}, {0, 1, block(data + 4, data)}});
}
/// Counts, and carries nothing.
struct deal_for_count : faulty_link {
  using faulty_link::faulty_link;
  std::uint32_t count_here(std::uint64_t word) { return deal(word); }
};

TEST(model_litmus, the_last_block_that_counts_sees_what_the_others_stored) {
  expect_always(store_and_count<model_link>());
}
TEST(model_litmus, a_relaxed_count_is_seen) {
  expect_failure(store_and_count<deal_for_count>(), "the last one sees the word");
}

/// One thread of a block puts and quiets, another one raises.
template <class Block>
program raise_by_another_thread() {
  return of(2, {{0, 0,
                 [](model_link& given) {
                   Block link(given);
                   stage(link, 100);
                   link.put(1, data, staging, piece_bytes);
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

/// Rank 0 puts into rank 2 and raises at rank 1, which raises at rank 2.
template <class Middle>
program raise_over_a_third() {
  return of(3, {{0, 0,
                 [](model_link& link) {
                   stage(link, 100);
                   link.put(2, data, staging, piece_bytes);
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

}  // namespace
}  // namespace tmap::testing::litmus
