// SPDX-License-Identifier: Apache-2.0
#include "pool/pool_fixture.hpp"

// Tests which slots a take prefers and which events it waits for.

namespace tmap::testing {
namespace {

class preference : public pool_fixture {
 protected:
  std::uint64_t queries() const { return cuda.calls_made(pool_call::query_event); }
  std::uint64_t waits() const { return cuda.calls_made(pool_call::wait_event); }

  const cudaStream_t s1 = cuda.open_stream();
  const cudaStream_t s2 = cuda.open_stream();
  const cudaStream_t s3 = cuda.open_stream();
};

TEST_F(preference, free_slots_come_first) {
  make_pool(8);
  const auto first = use_once(4, s1);
  const auto second = use_once(4, s1);
  EXPECT_EQ(first.first, 0u);
  EXPECT_EQ(second.first, 4u) << "free slots before those returned on the same stream";
  EXPECT_EQ(queries() + waits(), 0u);
  expect_counts(0, 0, 8, 0);
}

TEST_F(preference, the_smallest_free_piece_that_fits) {
  make_pool(16);
  fake_batch a = encode(6, s1), b = encode(2, s1), c = encode(3, s1), d = encode(5, s1);
  release(std::move(a));
  release(std::move(c));
  cuda.run_all();
  expect_counts(9, 7, 0, 0);
  EXPECT_EQ(use_once(3, s1).first, 8u);
  release(std::move(b));
  release(std::move(d));
}

TEST_F(preference, the_same_stream_takes_its_own_back_without_asking_or_waiting) {
  make_pool(4);
  const auto first = use_once(4, s1);
  const auto second = use_once(4, s1);
  EXPECT_EQ(first.first, second.first);
  EXPECT_EQ(queries() + waits(), 0u);
  EXPECT_EQ(maps->cross_stream_reuses(), 0u);
  cuda.run_all();
  EXPECT_EQ(cuda.foreign_ids(), 0u);
}

TEST_F(preference, own_slots_join_free_ones) {
  make_pool(8);
  use_once(6, s1);
  EXPECT_EQ(use_once(8, s1).count, 8u) << "6 returned here and 2 free ones, which are adjacent";
  EXPECT_EQ(queries() + waits(), 0u);
}

TEST_F(preference, another_stream_takes_what_has_completed_without_waiting) {
  make_pool(4);
  use_once(4, s1);
  cuda.run_all();
  EXPECT_EQ(use_once(4, s2).count, 4u);
  EXPECT_EQ(queries(), 1u);
  EXPECT_EQ(waits(), 0u);
  EXPECT_EQ(maps->cross_stream_reuses(), 1u);
}

TEST_F(preference, its_own_completed_slots_are_no_reuse_across_streams) {
  make_pool(20);
  std::vector<fake_batch> small;
  std::vector<fake_batch> between;
  for (int pair = 0; pair < 8; ++pair) {
    small.push_back(encode(1, s1));
    between.push_back(encode(1, s2));
  }
  fake_batch large = encode(4, s1);
  for (fake_batch& batch : small) release(std::move(batch));
  release(std::move(large));
  cuda.run_all();
  EXPECT_EQ(use_once(4, s1).first, 16u) << "past the first leases that it checks";
  EXPECT_EQ(queries(), 9u);
  EXPECT_EQ(maps->cross_stream_reuses(), 0u);
  for (fake_batch& batch : between) release(std::move(batch));
}

TEST_F(preference, another_stream_waits_on_the_device_for_what_runs) {
  make_pool(4);
  use_once(4, s1);
  EXPECT_EQ(use_once(4, s2).count, 4u);
  EXPECT_EQ(waits(), 1u);
  cuda.step(cuda.id_of(s2));
  EXPECT_EQ(cuda.ready(), std::vector<fake_stream_id>{cuda.id_of(s1)}) << "s2 waits until s1 has run";
  cuda.run_all();
  EXPECT_EQ(cuda.foreign_ids(), 0u);
  EXPECT_EQ(maps->cross_stream_reuses(), 1u);
}

TEST_F(preference, waits_for_exactly_the_streams_in_the_window) {
  make_pool(9);
  use_once(3, s1);
  use_once(3, s2);
  use_once(3, s3);
  const cudaStream_t s4 = cuda.open_stream();
  EXPECT_EQ(use_once(3, s4).first, 0u) << "the slots returned first";
  EXPECT_EQ(waits(), 1u);
  EXPECT_EQ(use_once(6, s3).first, 3u) << "s2's and its own";
  EXPECT_EQ(waits(), 2u);
}

TEST_F(preference, one_wait_for_several_batches_of_one_stream) {
  make_pool(8);
  for (int batch = 0; batch < 8; ++batch) use_once(1, s1);
  EXPECT_EQ(use_once(8, s2).count, 8u);
  EXPECT_EQ(waits(), 1u);
  cuda.run_all();
  EXPECT_EQ(cuda.foreign_ids(), 0u);
}

TEST_F(preference, asks_the_oldest_event_first_and_stops_at_the_first_that_runs) {
  make_pool(8);
  for (int batch = 0; batch < 8; ++batch) use_once(1, s1);
  EXPECT_EQ(use_once(1, s2).count, 1u);
  EXPECT_EQ(queries(), 1u) << "none has completed: one query";
  for (int operation = 0; operation < 9; ++operation) cuda.step(cuda.id_of(s1));
  EXPECT_EQ(use_once(2, s2).count, 2u);
  EXPECT_EQ(queries(), 1u + 1u + 3u) << "its own has not completed; batches 1 and 2 of s1 have, batch 3 has not";
}

TEST_F(preference, asks_no_more_streams_than_it_needs) {
  make_pool(2);
  use_once(1, s1);
  use_once(1, s2);
  cuda.run_all();
  EXPECT_EQ(use_once(1, s3).count, 1u);
  EXPECT_EQ(queries(), 1u);
}

TEST_F(preference, slots_of_two_streams_are_nobodys_own) {
  make_pool(4);
  fake_batch batch = encode(4, s1);
  ASSERT_TRUE(maps->use_on(batch.lease, s2, s1).has_value());
  consume(batch, s2);
  release(std::move(batch));
  const std::uint64_t before = waits();
  EXPECT_EQ(use_once(4, s1).count, 4u);
  EXPECT_EQ(waits(), before + 1) << "for s2, not for itself";
  cuda.run_all();
  EXPECT_EQ(cuda.foreign_ids(), 0u);
}

TEST_F(preference, slots_of_two_streams_are_own_once_the_other_has_completed) {
  make_pool(4);
  fake_batch batch = encode(4, s1);
  ASSERT_TRUE(maps->use_on(batch.lease, s2, s1).has_value());
  consume(batch, s2);
  for (int operation = 0; operation < 2; ++operation) cuda.step(cuda.id_of(s1));
  release(std::move(batch));
  for (int operation = 0; operation < 3; ++operation) cuda.step(cuda.id_of(s2));
  const std::uint64_t before = waits();
  EXPECT_EQ(use_once(4, s1).count, 4u) << "s1's event has not run, s2's has";
  EXPECT_EQ(waits(), before);
}

TEST_F(preference, use_on_waits_once_and_only_for_others) {
  make_pool(4);
  fake_batch batch = encode(4, s1);
  ASSERT_TRUE(maps->use_on(batch.lease, s1, s1).has_value());
  EXPECT_EQ(waits(), 0u);
  ASSERT_TRUE(maps->use_on(batch.lease, s2, s1).has_value());
  ASSERT_TRUE(maps->use_on(batch.lease, s2, s1).has_value());
  EXPECT_EQ(waits(), 1u);
  const auto stranger = maps->use_on(batch.lease, s1, s3);
  EXPECT_EQ(testing::refused_argument(stranger), "map_batch") << "s3 is not a stream of the lease";
  release(std::move(batch));
}

TEST_F(preference, a_reused_handle_is_another_stream) {
  make_pool(4);
  use_once(4, s1);
  cuda.close_stream(s1);
  const cudaStream_t reused = cuda.open_stream();
  ASSERT_EQ(reused, s1);
  use_once(4, reused);
  EXPECT_EQ(waits(), 1u);
  cuda.run_all();
  EXPECT_EQ(cuda.foreign_ids(), 0u);
}

TEST_F(preference, exhaustion_says_where_the_slots_are_and_changes_nothing) {
  make_pool(8);
  fake_batch held = encode(5, s1);
  use_once(2, s2);
  const auto refused = maps->take(4, s3);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, status::pool_exhausted);
  EXPECT_EQ(refused.error().found, 4u);
  EXPECT_EQ(refused.error().slots.capacity, 8u);
  EXPECT_EQ(refused.error().slots.free, 1u);
  EXPECT_EQ(refused.error().slots.leased, 5u);
  EXPECT_EQ(refused.error().slots.pending, 2u);
  expect_counts(1, 5, 2, 0);
  EXPECT_EQ(waits(), 0u);
  EXPECT_EQ(use_once(3, s2).first, 5u) << "and a take that fits still succeeds";
  release(std::move(held));
}

TEST_F(preference, completed_slots_beside_free_ones_need_no_wait) {
  make_pool(8);
  use_once(4, s1);
  cuda.run_all();
  EXPECT_EQ(use_once(8, s2).first, 0u);
  EXPECT_EQ(waits(), 0u);
}

TEST_F(preference, no_slots_are_no_lease) {
  make_pool(4);
  const auto refused = maps->take(0, s1);
  EXPECT_EQ(testing::refused_argument(refused), "count");
}

TEST_F(preference, generations_differ_and_the_peak_is_kept) {
  make_pool(8);
  fake_batch a = encode(3, s1), b = encode(4, s1);
  EXPECT_NE(pool::generation_of(*a.lease), 0u);
  EXPECT_NE(pool::generation_of(*a.lease), pool::generation_of(*b.lease));
  release(std::move(a));
  release(std::move(b));
  fake_batch c = encode(3, s1);
  EXPECT_EQ(maps->peak_in_use(), 7u);
  EXPECT_EQ(pool::generation_of(*c.lease), 3u);
  release(std::move(c));
}

}  // namespace
}  // namespace tmap::testing
