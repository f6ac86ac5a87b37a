// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "pool/pool_fixture.hpp"

// Leases released where a stream cannot be marked yet.

namespace tmap::testing {
namespace {

class LateEnd : public pool_fixture {
 protected:
  const cudaStream_t s1 = cuda.open_stream();
  const cudaStream_t s2 = cuda.open_stream();
};

TEST_F(LateEnd, AReleaseWhileTheStreamIsInAnotherCaptureIsMadeUpForLater) {
  make_pool(4);
  fake_batch batch = encode(4, s1);
  consume(batch, s1);
  cuda.begin_capture(s1);
  release(std::move(batch));
  EXPECT_EQ(cuda.calls_made(pool_call::record_event), 0u) << "an event would be the graph's";
  EXPECT_FALSE(maps->take(4, s2).has_value()) << "nobody can say when s1 is done";
  expect_counts(0, 0, 4, 0);
  cuda.destroy_exec(end_capture(s1));
  EXPECT_EQ(use_once(4, s2).count, 4u);
  EXPECT_EQ(cuda.calls_made(pool_call::wait_event), 1u);
  run_and_expect_no_foreign_id();
}

TEST_F(LateEnd, AReleaseOnTheLegacyStreamWaitsForTheCaptureThatForbidsIt) {
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

TEST_F(LateEnd, ABrokenCaptureGivesItsSlotsBack) {
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

TEST_F(LateEnd, ThePerThreadStreamIsMarkedByItsOwnThread) {
  make_pool(4);
  fake_batch batch = encode(4, cudaStreamPerThread);
  consume(batch, cudaStreamPerThread);
  std::thread{[&] { release(std::move(batch)); }}.join();
  expect_counts(0, 0, 4, 0);
  EXPECT_EQ(cuda.calls_made(pool_call::record_event), 0u) << "here it would have marked another stream";
  EXPECT_EQ(use_once(4, s1).count, 4u) << "a take of the right thread";
  EXPECT_EQ(cuda.calls_made(pool_call::wait_event), 1u);
  run_and_expect_no_foreign_id();
}

TEST_F(LateEnd, ThePerThreadStreamOfAThreadThatIsGoneIsNeverMarked) {
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

TEST_F(LateEnd, OnlyItsOwnThreadSpreadsAPerThreadStream) {
  make_pool(4);
  fake_batch batch = encode(4, cudaStreamPerThread);
  std::thread{[&] {
    const auto refused = maps->use_on(batch.lease, s1, cudaStreamPerThread);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, status::invalid_argument) << "here it is another stream";
  }}.join();
  EXPECT_TRUE(maps->use_on(batch.lease, s1, cudaStreamPerThread).has_value());
  release(std::move(batch));
}

}  // namespace
}  // namespace tmap::testing
