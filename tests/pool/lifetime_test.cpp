// SPDX-License-Identifier: Apache-2.0
#include <tmap/log.hpp>

#include <string>
#include <thread>
#include <vector>

#include "pool/pool_fixture.hpp"

// Tests the lifetimes of pools, leases and graphs, and which of them frees the memory.

namespace tmap::testing {
namespace {

class lifetime : public pool_fixture {
 protected:
  lifetime() {
    set_log_callback(
        [](log_level level, const char* text, void* user) {
          static_cast<lifetime*>(user)->log_.push_back((level == log_level::warning ? "warning: " : "") +
                                                       std::string{text});
        },
        this);
  }
  ~lifetime() override { set_log_callback(nullptr, nullptr); }

  const cudaStream_t s1 = cuda.open_stream();
  const cudaStream_t s2 = cuda.open_stream();
  std::vector<std::string> log_;
};

TEST_F(lifetime, the_end_frees_slabs_and_events) {
  make_pool(4, 16);
  fake_batch held = encode(4, s1);
  use_once(4, s1);
  use_once(4, s2);
  release(std::move(held));
  EXPECT_GT(cuda.live_events(), 0u);
  maps.reset();
  EXPECT_EQ(cuda.live_allocations(), 0u);
  EXPECT_EQ(cuda.live_events(), 0u);
  EXPECT_EQ(cuda.foreign_ids(), 0u);
}

TEST_F(lifetime, memory_of_the_caller_is_not_freed) {
  std::vector<unsigned char> memory(pool::slab_bytes(4));
  auto made = pool::map_pool::create({.capacity = 4, .memory = memory.data()}, fake_streams::calls());
  ASSERT_TRUE(made.has_value());
  maps = std::move(*made);
  EXPECT_EQ(use_once(4, s1).slab, memory.data());
  EXPECT_EQ(maps->device_bytes(), memory.size());
  cuda.run_all();
  maps.reset();
  EXPECT_EQ(cuda.calls_made(pool_call::allocate) + cuda.calls_made(pool_call::free), 0u);
  EXPECT_EQ(cuda.live_events(), 0u);
}

TEST_F(lifetime, a_lease_holds_the_pool) {
  make_pool(4);
  fake_batch batch = encode(4, s1);
  pool::map_pool* const alone = maps.get();
  maps.reset();
  consume(batch, s1);
  EXPECT_EQ(cuda.live_allocations(), 1u);
  EXPECT_TRUE(alone->release(std::move(batch.lease)).has_value());
  EXPECT_EQ(cuda.live_allocations(), 0u);
  EXPECT_EQ(cuda.live_events(), 0u);
  EXPECT_EQ(cuda.foreign_ids(), 0u) << "the free waited for the read";
}

TEST_F(lifetime, the_last_hold_ends_the_lease) {
  make_pool(4);
  fake_batch first = encode(4, s1);
  fake_batch second = first;
  release(std::move(first));
  expect_counts(0, 4, 0, 0);
  release(std::move(second));
  expect_counts(0, 0, 4, 0);
  release({});
}

TEST_F(lifetime, a_last_graph_leaks_the_memory_with_a_warning_and_calls_nothing) {
  make_pool(4);
  fake_batch batch;
  const cudaGraphExec_t exec = capture_batch(3, s1, batch);
  release(std::move(batch));
  maps->disown();
  maps.reset();
  const std::uint64_t calls = cuda.calls_made();
  cuda.destroy_exec(exec);
  EXPECT_EQ(cuda.calls_made(), calls);
  EXPECT_EQ(cuda.live_allocations(), 1u);
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_NE(log_[0].find("warning: "), std::string::npos);
  EXPECT_NE(log_[0].find("3 of its 4 slots"), std::string::npos) << log_[0];
}

TEST_F(lifetime, a_batch_that_outlives_the_graph_frees_the_memory) {
  make_pool(4);
  fake_batch batch;
  const cudaGraphExec_t exec = capture_batch(3, s1, batch);
  maps->disown();
  pool::map_pool* const alone = maps.get();
  maps.reset();
  cuda.destroy_exec(exec);
  EXPECT_TRUE(alone->release(std::move(batch.lease)).has_value());
  EXPECT_EQ(cuda.live_allocations(), 0u);
  EXPECT_EQ(cuda.live_events(), 0u);
}

TEST_F(lifetime, without_graphs_nothing_is_warned_of) {
  make_pool(4);
  fake_batch batch;
  cuda.destroy_exec(capture_batch(3, s1, batch));
  maps->disown();
  EXPECT_TRUE(log_.empty());
  release(std::move(batch));
}

TEST_F(lifetime, abandoned_it_calls_nothing_any_more) {
  make_pool(8);
  use_once(2, s1);
  fake_batch held = encode(2, s1);
  fake_batch captured;
  const cudaGraphExec_t exec = capture_batch(2, s1, captured);
  const std::uint64_t calls = cuda.calls_made();
  maps->abandon();
  const auto refused = maps->take(1, s1);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, status::service_dead);
  const auto used = maps->use_on(held.lease, s2, s1);
  ASSERT_FALSE(used.has_value());
  EXPECT_EQ(used.error().code, status::service_dead);
  EXPECT_EQ(maps->counts().capacity, 0u);
  release(std::move(held));
  release(std::move(captured));
  cuda.destroy_exec(exec);
  maps->disown();
  maps.reset();
  EXPECT_EQ(cuda.calls_made(), calls);
  EXPECT_EQ(cuda.live_allocations(), 1u);
  EXPECT_TRUE(log_.empty());
}

TEST_F(lifetime, a_graph_may_end_on_any_thread_at_any_time) {
  make_pool(64);
  for (int round = 0; round < 200; ++round) {
    fake_batch batch;
    const cudaGraphExec_t exec = capture_batch(1, s1, batch);
    release(std::move(batch));
    std::thread ending{[&] { cuda.destroy_exec(exec); }};
    use_once(1, s2);
    ending.join();
    cuda.run_all();
  }
  expect_counts(64, 0, 0, 0);
}

}  // namespace
}  // namespace tmap::testing
