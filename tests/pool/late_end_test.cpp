// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <thread>
#include <utility>

#include "pool/pool_fixture.hpp"

// Tests leases that are released while a stream cannot be marked yet.

namespace tmap::testing {
namespace {

class late_end : public pool_fixture {
 protected:
  void run_once(cudaGraphExec_t exec) {
    cuda.launch(exec, s1);
    cuda.run_all();
    cuda.destroy_exec(exec);
  }

  const cudaStream_t s1 = cuda.open_stream();
  const cudaStream_t s2 = cuda.open_stream();
};

TEST_F(late_end, a_release_while_the_stream_is_in_another_capture_is_made_up_for_later) {
  make_pool(4);
  fake_batch batch = encode(4, s1);
  consume(batch, s1);
  cuda.begin_capture(s1);
  release(std::move(batch));
  EXPECT_EQ(cuda.calls_made(pool_call::record_event), 0u) << "an event would belong to the graph";
  EXPECT_FALSE(maps->take(4, s2).has_value()) << "no event marks the end of s1";
  expect_counts(0, 0, 4, 0);
  cuda.destroy_exec(end_capture(s1));
  EXPECT_EQ(use_once(4, s2).count, 4u);
  EXPECT_EQ(cuda.calls_made(pool_call::wait_event), 1u);
  run_and_expect_no_foreign_id();
}

TEST_F(late_end, a_release_on_the_legacy_stream_waits_for_the_capture_that_forbids_it) {
  make_pool(4);
  fake_batch batch = encode(4, nullptr);
  consume(batch, nullptr);
  cuda.begin_capture(s1);
  release(std::move(batch));
  expect_counts(0, 0, 4, 0);
  const auto refused = maps->take(1, nullptr);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().cuda_code, cudaErrorStreamCaptureImplicit);
  cuda.destroy_exec(end_capture(s1));
  EXPECT_EQ(use_once(4, s2).count, 4u);
  run_and_expect_no_foreign_id();
}

TEST_F(late_end, a_broken_capture_gives_its_slots_back) {
  make_pool(4);
  cuda.begin_capture(s1);
  fake_batch batch = encode(4, s1);
  cuda.invalidate_captures();
  release(std::move(batch));
  const auto refused = maps->take(1, s1);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().cuda_code, cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cuda.end_capture(s1), nullptr);
  EXPECT_EQ(use_once(4, s1).count, 4u);
  cuda.run_all();
  expect_counts(4, 0, 0, 0);
}

/// Runs another thread's action just before, or just after, the next event is recorded.
std::function<void()> before_record;
std::function<void()> after_record;

cudaError_t record_beside_another_thread(cudaEvent_t event, cudaStream_t stream) {
  if (before_record) std::exchange(before_record, {})();
  const cudaError_t code = fake_streams::calls().record_event(event, stream);
  if (after_record) std::exchange(after_record, {})();
  return code;
}

class late_end_beside_a_capture : public late_end {
 protected:
  void SetUp() override {
    pool::pool_calls calls = fake_streams::calls();
    calls.record_event = record_beside_another_thread;
    maps = *pool::map_pool::create({.capacity = 4}, calls);
  }

  /// Uses all slots on a stream and releases them. The event at the release does not mark the end
  /// of their use.
  void release_all(cudaStream_t stream) {
    fake_batch batch = encode(4, stream);
    consume(batch, stream);
    release(std::move(batch));
    expect_counts(0, 0, 4, 0);
  }

  /// Expects that the slots go to another stream, after the work of the first one, once its capture
  /// has ended.
  void expect_made_up_for() {
    EXPECT_EQ(use_once(4, s2).count, 4u);
    EXPECT_EQ(cuda.calls_made(pool_call::wait_event), 1u) << "for work that has not run yet";
    run_and_expect_no_foreign_id();
    expect_counts(4, 0, 0, 0);
  }
};

TEST_F(late_end_beside_a_capture, an_event_that_may_be_the_graphs_is_thrown_away) {
  before_record = [&] { cuda.begin_capture(s1); };
  release_all(s1);
  EXPECT_EQ(cuda.live_events(), 0u);
  const auto refused = maps->take(4, s2);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, status::pool_exhausted) << "no event marks the end of s1";
  cuda.destroy_exec(end_capture(s1));
  expect_made_up_for();
}

TEST_F(late_end_beside_a_capture, so_is_one_of_a_capture_that_broke) {
  before_record = [&] { cuda.begin_capture(s1); };
  after_record = [&] { cuda.invalidate_captures(); };
  release_all(s1);
  EXPECT_EQ(cuda.live_events(), 0u);
  EXPECT_EQ(cuda.end_capture(s1), nullptr);
  expect_made_up_for();
}

TEST_F(late_end_beside_a_capture, one_that_began_behind_the_event_is_taken_for_the_same) {
  after_record = [&] { cuda.begin_capture(s1); };
  release_all(s1);
  cuda.destroy_exec(end_capture(s1));
  expect_made_up_for();
}

TEST_F(late_end_beside_a_capture, a_capture_that_ended_meanwhile_is_found_by_the_question) {
  before_record = [&] { cuda.begin_capture(s1); };
  after_record = [&] { cuda.destroy_exec(end_capture(s1)); };
  fake_batch batch = encode(4, s1);
  consume(batch, s1);
  release(std::move(batch));
  EXPECT_FALSE(maps->take(4, s2).has_value()) << "nothing marks s1";
  EXPECT_EQ(cuda.live_events(), 0u);
  expect_made_up_for();
}

TEST_F(late_end_beside_a_capture, or_by_the_wait) {
  release_all(s1);
  EXPECT_EQ(use_once(4, s1).count, 4u);
  cuda.run_all();
  fake_batch first = encode(2, s1);
  fake_batch second = encode(2, s1);
  consume(first, s1);
  release(std::move(first));
  before_record = [&] { cuda.begin_capture(s1); };
  after_record = [&] { cuda.destroy_exec(end_capture(s1)); };
  consume(second, s1);
  release(std::move(second));
  EXPECT_FALSE(maps->take(4, s2).has_value()) << "the first mark is not reached, and the second does not exist";
  EXPECT_EQ(use_once(4, s2).count, 4u);
  run_and_expect_no_foreign_id();
  expect_counts(4, 0, 0, 0);
}

TEST_F(late_end_beside_a_capture, on_the_legacy_stream_its_refusal_is_no_failure) {
  before_record = [&] { cuda.begin_capture(s1); };
  release_all(nullptr);
  EXPECT_EQ(cuda.end_capture(s1), nullptr) << "CUDA breaks a capture if the legacy stream is used meanwhile";
  EXPECT_EQ(use_once(4, s2).count, 4u);
  cuda.run_all();
  expect_counts(4, 0, 0, 0);
  EXPECT_EQ(cuda.take_violations().size(), 1u) << "that one";
}

TEST_F(late_end_beside_a_capture, neither_is_one_of_an_event_recorded_again) {
  fake_batch slow = encode(2, s1);
  fake_batch quick = encode(2, s1);
  consume(slow, s1);
  after_record = [&] {
    release(std::move(quick));
    before_record = [&] { cuda.begin_capture(s1); };
  };
  release(std::move(slow));
  cuda.destroy_exec(end_capture(s1));
  EXPECT_EQ(use_once(4, s2).count, 4u);
  run_and_expect_no_foreign_id();
  expect_counts(4, 0, 0, 0);
}

TEST_F(late_end, a_release_asks_no_id_that_it_knows) {
  make_pool(4);
  fake_batch batch = encode(4, s1);
  const std::uint64_t asked = cuda.calls_made(pool_call::stream_id);
  release(std::move(batch));
  EXPECT_EQ(cuda.calls_made(pool_call::stream_id), asked) << "the query would break a capture that begins now";
}

TEST_F(late_end, a_release_asks_no_id_of_a_stream_that_it_knows_from_a_capture) {
  make_pool(4);
  fake_batch batch;
  run_once(capture_batch(4, s1, batch));
  consume(batch, s1);
  const std::uint64_t asked = cuda.calls_made(pool_call::stream_id);
  release(std::move(batch));
  EXPECT_EQ(cuda.calls_made(pool_call::stream_id), asked) << "the query would break a capture that begins now";
  EXPECT_EQ(use_once(4, s2).count, 4u);
  EXPECT_EQ(cuda.calls_made(pool_call::wait_event), 1u) << "for the work on s1";
  run_and_expect_no_foreign_id();
  expect_counts(4, 0, 0, 0);
}

TEST_F(late_end, two_streams_known_from_captures_are_both_waited_for) {
  make_pool(4);
  fake_batch batches[2];
  const cudaStream_t streams[] = {s1, s2};
  for (int i = 0; i < 2; ++i) {
    run_once(capture_batch(2, streams[i], batches[i]));
    consume(batches[i], streams[i]);
  }
  for (fake_batch& each : batches) release(std::move(each));
  EXPECT_EQ(use_once(4, cuda.open_stream()).count, 4u);
  EXPECT_EQ(cuda.calls_made(pool_call::wait_event), 2u);
  run_and_expect_no_foreign_id();
  expect_counts(4, 0, 0, 0);
}

TEST_F(late_end, one_known_from_a_capture_is_made_up_for_without_its_id) {
  make_pool(4);
  fake_batch batch;
  run_once(capture_batch(4, s1, batch));
  consume(batch, s1);
  cuda.begin_capture(s1);
  release(std::move(batch));
  expect_counts(0, 0, 4, 0);
  cuda.destroy_exec(end_capture(s1));
  const std::uint64_t asked = cuda.calls_made(pool_call::stream_id);
  EXPECT_EQ(use_once(4, s2).count, 4u);
  EXPECT_EQ(cuda.calls_made(pool_call::stream_id), asked + 1) << "of s2";
  run_and_expect_no_foreign_id();
  expect_counts(4, 0, 0, 0);
}

TEST_F(late_end, one_that_fails_keeps_no_other_from_being_made_up_for) {
  make_pool(4);
  fake_batch one = encode(2, s1);
  fake_batch two = encode(2, s2);
  for (const cudaStream_t stream : {s1, s2}) cuda.begin_capture(stream);
  release(std::move(one));
  release(std::move(two));
  for (const cudaStream_t stream : {s1, s2}) cuda.destroy_exec(end_capture(stream));
  const cudaStream_t s3 = cuda.open_stream();
  cuda.fail_call(pool_call::capture_id, 2, cudaErrorUnknown);
  EXPECT_EQ(maps->take(4, s3).error().cuda_code, cudaErrorUnknown) << "the first one's";
  EXPECT_EQ(use_once(4, s3).count, 4u);
  cuda.run_all();
  expect_counts(4, 0, 0, 0);
}

TEST_F(late_end, the_per_thread_stream_is_marked_by_its_own_thread) {
  make_pool(4);
  fake_batch batch = encode(4, cudaStreamPerThread);
  consume(batch, cudaStreamPerThread);
  std::thread{[&] { release(std::move(batch)); }}.join();
  expect_counts(0, 0, 4, 0);
  EXPECT_EQ(cuda.calls_made(pool_call::record_event), 0u) << "here it would have marked another stream";
  EXPECT_EQ(use_once(4, s1).count, 4u) << "a take by the right thread";
  EXPECT_EQ(cuda.calls_made(pool_call::wait_event), 1u);
  run_and_expect_no_foreign_id();
}

TEST_F(late_end, the_per_thread_stream_of_a_thread_that_is_gone_is_never_marked) {
  make_pool(4);
  fake_batch batch;
  std::thread{[&] {
    batch = encode(4, cudaStreamPerThread);
    consume(batch, cudaStreamPerThread);
  }}.join();
  release(std::move(batch));
  cuda.run_all();
  expect_counts(0, 0, 4, 0);
  EXPECT_FALSE(maps->take(4, s1).has_value());
}

TEST_F(late_end, only_its_own_thread_spreads_a_per_thread_stream) {
  make_pool(4);
  fake_batch batch = encode(4, cudaStreamPerThread);
  std::thread{[&] {
    const auto refused = maps->use_on(batch.lease, s1, cudaStreamPerThread);
    EXPECT_EQ(testing::refused_argument(refused), "map_batch") << "here it is another stream";
  }}.join();
  EXPECT_TRUE(maps->use_on(batch.lease, s1, cudaStreamPerThread).has_value());
  release(std::move(batch));
}

}  // namespace
}  // namespace tmap::testing
