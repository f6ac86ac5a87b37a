// SPDX-License-Identifier: Apache-2.0
#include "pool/pool_fixture.hpp"

#include <thread>

// Tests leases with stream capture: the slots that a graph keeps, and the calls that a captured
// stream refuses.

namespace tmap::testing {
namespace {

class capture_test : public pool_fixture {
 protected:
  const cudaStream_t s1 = cuda.open_stream();
  const cudaStream_t s2 = cuda.open_stream();
};

TEST_F(capture_test, slots_stay_with_the_graph_and_come_back) {
  make_pool(8);
  fake_batch batch;
  const cudaGraphExec_t exec = capture_batch(5, s1, batch);
  expect_counts(3, 0, 0, 5);
  release(std::move(batch));
  cuda.run_all();
  expect_counts(3, 0, 0, 5);
  for (int replay = 0; replay < 3; ++replay) {
    cuda.launch(exec, s1);
    use_once(3, s2);
  }
  cuda.destroy_exec(exec);
  expect_counts(0, 0, 3, 5);
  run_and_expect_no_foreign_id();
  expect_counts(8, 0, 0, 0);
}

TEST_F(capture_test, a_graph_that_dies_first_leaves_the_slots_to_the_batch) {
  make_pool(8);
  fake_batch batch;
  cuda.destroy_exec(capture_batch(5, s1, batch));
  expect_counts(3, 5, 0, 0);
  release(std::move(batch));
  expect_counts(3, 0, 5, 0);
  cuda.run_all();
  expect_counts(8, 0, 0, 0);
}

TEST_F(capture_test, takes_free_slots_only_and_asks_nothing) {
  make_pool(8, 64);
  use_once(6, s1);
  cuda.run_all();
  fake_batch refused;
  const cudaGraphExec_t exec = capture_batch(3, s1, refused);
  EXPECT_EQ(refused.lease, nullptr) << "2 are free, 6 have completed, and the pool may grow";
  EXPECT_EQ(cuda.calls_made(pool_call::query_event), 0u);
  EXPECT_EQ(cuda.calls_made(pool_call::allocate), 1u);
  EXPECT_EQ(cuda.calls_made(pool_call::exchange_capture_mode), 2u + 2u) << "for the slab and the event";
  cuda.destroy_exec(exec);
  expect_counts(8, 0, 0, 0);
}

TEST_F(capture_test, takes_what_counts_found_completed_before) {
  make_pool(4);
  use_once(4, s1);
  cuda.run_all();
  EXPECT_EQ(maps->counts().free, 4u);
  fake_batch batch;
  const cudaGraphExec_t exec = capture_batch(4, s2, batch);
  EXPECT_NE(batch.lease, nullptr);
  release(std::move(batch));
  cuda.destroy_exec(exec);
}

TEST_F(capture_test, released_inside_it_needs_no_event) {
  make_pool(4);
  cuda.begin_capture(s1);
  fake_batch batch = encode(4, s1);
  consume(batch, s1);
  release(std::move(batch));
  const cudaGraphExec_t exec = end_capture(s1);
  cuda.close_stream(s1);
  EXPECT_EQ(cuda.calls_made(pool_call::record_event), 0u);
  cuda.launch(exec, s2);
  cuda.destroy_exec(exec);
  EXPECT_FALSE(maps->take(1, s2).has_value());
  run_and_expect_no_foreign_id();
  expect_counts(4, 0, 0, 0);
}

TEST_F(capture_test, eager_readers_of_a_captured_batch_are_waited_for) {
  make_pool(4);
  fake_batch batch;
  const cudaGraphExec_t exec = capture_batch(4, s1, batch);
  cuda.launch(exec, s1);
  consume(batch, s1);
  release(std::move(batch));
  cuda.destroy_exec(exec);
  const fake_stream_id id = cuda.id_of(s1);
  for (int operation = 0; operation < 3; ++operation) cuda.step(id);
  expect_counts(0, 0, 4, 0);
  use_once(4, s2);
  run_and_expect_no_foreign_id();
}

TEST_F(capture_test, eager_streams_of_a_batch_that_a_graph_took_are_waited_for_after_the_graph) {
  make_pool(4);
  fake_batch batch = encode(4, s1);
  ASSERT_TRUE(maps->use_on(batch.lease, s2, s1).has_value());
  consume(batch, s2);
  cuda.run_all();
  cuda.begin_capture(s1);
  ASSERT_TRUE(maps->use_on(batch.lease, s1, s2).has_value());
  consume(batch, s1);
  const cudaGraphExec_t exec = end_capture(s1);
  expect_counts(0, 0, 0, 4);
  consume(batch, s2);
  release(std::move(batch));
  expect_counts(0, 0, 0, 4);
  cuda.destroy_exec(exec);
  expect_counts(0, 0, 4, 0);
  EXPECT_EQ(use_once(4, s1).count, 4u);
  run_and_expect_no_foreign_id();
}

TEST_F(capture_test, a_fork_inside_the_capture_joins_it_and_is_pinned_once) {
  make_pool(4);
  cuda.begin_capture(s1);
  fake_batch batch = encode(4, s1);
  ASSERT_TRUE(maps->use_on(batch.lease, s2, s1).has_value());
  ASSERT_TRUE(maps->use_on(batch.lease, s2, s1).has_value());
  consume(batch, s2);
  EXPECT_EQ(cuda.calls_made(pool_call::retain_in_graph), 1u);
  EXPECT_EQ(cuda.calls_made(pool_call::wait_event), 1u);
  const cudaGraphExec_t exec = end_capture(s1);
  release(std::move(batch));
  cuda.launch(exec, s1);
  cuda.destroy_exec(exec);
  expect_counts(0, 0, 0, 4);
  run_and_expect_no_foreign_id();
  expect_counts(4, 0, 0, 0);
}

TEST_F(capture_test, an_event_recorded_in_it_is_not_used_again) {
  make_pool(8);
  fake_batch eager = encode(4, s1);
  const cudaStream_t s3 = cuda.open_stream();
  cuda.begin_capture(s2);
  fake_batch batch = encode(4, s2);
  ASSERT_TRUE(maps->use_on(batch.lease, s3, s2).has_value());
  release(std::move(eager));
  EXPECT_EQ(cuda.calls_made(pool_call::record_event), 2u);
  EXPECT_TRUE(cuda.violations().empty()) << "an event of an open capture";
  release(std::move(batch));
  cuda.destroy_exec(end_capture(s2));
  cuda.run_all();
  expect_counts(8, 0, 0, 0);
}

TEST_F(capture_test, captured_slots_are_in_use) {
  make_pool(8);
  fake_batch batch;
  cuda.destroy_exec(capture_batch(5, s1, batch));
  EXPECT_EQ(maps->peak_in_use(), 5u);
  release(std::move(batch));
}

TEST_F(capture_test, two_graphs_both_keep_the_slots) {
  make_pool(4);
  fake_batch batch = encode(4, s1);
  cudaGraphExec_t execs[2];
  for (cudaGraphExec_t& exec : execs) {
    cuda.begin_capture(s1);
    ASSERT_TRUE(maps->use_on(batch.lease, s1, s1).has_value());
    consume(batch, s1);
    exec = end_capture(s1);
  }
  EXPECT_EQ(cuda.calls_made(pool_call::retain_in_graph), 2u) << "though both graphs had the same handle";
  release(std::move(batch));
  cuda.launch(execs[1], s1);
  cuda.destroy_exec(execs[0]);
  cuda.run_all();
  expect_counts(0, 0, 0, 4);
  cuda.destroy_exec(execs[1]);
  run_and_expect_no_foreign_id();
  expect_counts(4, 0, 0, 0);
}

TEST_F(capture_test, an_eager_stream_cannot_wait_for_a_foreign_capture) {
  make_pool(4);
  fake_batch batch = encode(4, s1);
  cuda.begin_capture(s1);
  const auto refused = maps->use_on(batch.lease, s2, s1);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().cuda_code, cudaErrorStreamCaptureIsolation);
  cuda.destroy_exec(end_capture(s1));
  ASSERT_TRUE(maps->use_on(batch.lease, s2, s1).has_value()) << "the capture is intact, and now the call succeeds";
  consume(batch, s2);
  release(std::move(batch));
  run_and_expect_no_foreign_id();
}

/// Makes the object with CUDA, but the graph does not take it, so it drops at once.
cudaError_t refuse_to_retain(cudaGraph_t, void* object, void (*drop)(void*), cudaUserObject_t* held) {
  *held = static_cast<cudaUserObject_t>(object);
  drop(object);
  return cudaErrorInvalidValue;
}

TEST_F(capture_test, a_graph_that_does_not_take_the_object_leaves_the_slots) {
  pool::pool_calls calls = fake_streams::calls();
  calls.retain_in_graph = refuse_to_retain;
  maps = *pool::map_pool::create({.capacity = 8}, calls);
  fake_batch batch = encode(4, s2);
  cuda.begin_capture(s1);
  EXPECT_EQ(maps->take(4, s1).error().cuda_code, cudaErrorInvalidValue);
  EXPECT_EQ(maps->use_on(batch.lease, s1, s2).error().cuda_code, cudaErrorInvalidValue);
  expect_counts(4, 4, 0, 0);
  cuda.destroy_graph(cuda.end_capture(s1));
  release(std::move(batch));
  run_and_expect_no_foreign_id();
  expect_counts(8, 0, 0, 0);
}

class capture_withdrawn : public capture_test {
 protected:
  void SetUp() override { make_pool(8); }

  /// Gives up the slots of a batch of the open capture, as a failed call does.
  void withdraw(fake_batch&& batch) { EXPECT_TRUE(maps->withdraw(std::move(batch.lease)).has_value()); }
  fake_batch take(std::uint64_t count, cudaStream_t stream) { return {maps->take(count, stream).value()}; }
};

TEST_F(capture_withdrawn, what_no_node_uses_comes_back_at_once) {
  cuda.begin_capture(s1);
  const fake_batch other = encode(2, s1);
  withdraw(take(6, s1));
  expect_counts(6, 0, 0, 2);
  EXPECT_EQ(use_once(6, s2).count, 6u) << "to a stream outside of the capture";
  cuda.destroy_exec(end_capture(s1));
  run_and_expect_no_foreign_id();
}

TEST_F(capture_withdrawn, what_a_node_may_use_stays_with_the_graph) {
  cuda.begin_capture(s1);
  withdraw(encode(6, s1));
  expect_counts(2, 0, 0, 6);
  cuda.destroy_exec(end_capture(s1));
  expect_counts(8, 0, 0, 0);
}

TEST_F(capture_withdrawn, what_another_hold_has_stays_with_the_graph) {
  cuda.begin_capture(s1);
  fake_batch kept = take(6, s1);
  withdraw(fake_batch{kept});
  expect_counts(2, 0, 0, 6);
  release(std::move(kept));
  expect_counts(2, 0, 0, 6);
  cuda.destroy_exec(end_capture(s1));
  expect_counts(8, 0, 0, 0);
}

TEST_F(capture_withdrawn, a_graph_that_is_whole_meanwhile_keeps_them) {
  cuda.begin_capture(s1);
  fake_batch late = take(6, s1);
  const cudaGraphExec_t exec = end_capture(s1);
  withdraw(std::move(late));
  cuda.run_all();
  expect_counts(2, 0, 0, 6);
  cuda.destroy_exec(exec);
  expect_counts(8, 0, 0, 0);
}

TEST_F(capture_withdrawn, outside_of_any_it_is_a_release) {
  withdraw(encode(8, s1));
  expect_counts(0, 0, 8, 0);
  run_and_expect_no_foreign_id();
  expect_counts(8, 0, 0, 0);
}

TEST_F(capture_test, a_captured_stream_that_turns_eager_waits_then) {
  make_pool(4);
  fake_batch batch = encode(4, s1);
  cuda.begin_capture(s2);
  ASSERT_TRUE(maps->use_on(batch.lease, s2, s1).has_value());
  cuda.destroy_exec(end_capture(s2));
  EXPECT_EQ(cuda.calls_made(pool_call::wait_event), 0u) << "a graph cannot wait for what ran before it";
  for (int call = 0; call < 2; ++call) ASSERT_TRUE(maps->use_on(batch.lease, s2, s1).has_value());
  EXPECT_EQ(cuda.calls_made(pool_call::wait_event), 1u) << "once";
  consume(batch, s2);
  cuda.step(cuda.id_of(s2));
  release(std::move(batch));
  run_and_expect_no_foreign_id();
  expect_counts(4, 0, 0, 0);
}

TEST_F(capture_test, another_threads_capture_is_neither_broken_nor_in_the_way) {
  make_pool(4, 8);
  use_once(4, s2);
  cuda.begin_capture(s1);
  std::thread{[&] {
    fake_batch grown = encode(4, s2);
    fake_batch own = encode(4, s2);
    EXPECT_NE(own.lease, nullptr);
    release(std::move(grown));
    release(std::move(own));
    const cudaStream_t s3 = cuda.open_stream();
    EXPECT_EQ(encode(8, s3).lease, nullptr) << "8 are in no slab";
    EXPECT_EQ(use_once(4, s3).count, 4u);
  }}.join();
  const cudaGraph_t graph = cuda.end_capture(s1);
  EXPECT_NE(graph, nullptr) << "the capture is intact";
  EXPECT_TRUE(cuda.violations().empty());
}

}  // namespace
}  // namespace tmap::testing
