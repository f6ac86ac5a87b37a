// SPDX-License-Identifier: Apache-2.0
#include "pool/pool_fixture.hpp"

// Tests that the pool adds a slab before it waits on the device.

namespace tmap::testing {
namespace {

class growth : public pool_fixture {
 protected:
  const cudaStream_t s1 = cuda.open_stream();
  const cudaStream_t s2 = cuda.open_stream();
  const cudaStream_t s3 = cuda.open_stream();
};

TEST_F(growth, grows_rather_than_waits) {
  make_pool(4, 12);
  fake_batch a = encode(4, s1);
  fake_batch b = encode(3, s2);
  expect_counts(1, 7, 0, 0);
  EXPECT_NE(pool::range_of(*a.lease).slab, pool::range_of(*b.lease).slab);
  release(std::move(a));
  EXPECT_EQ(use_once(4, s3).count, 4u);
  EXPECT_EQ(maps->counts().capacity, 12u) << "s1 still runs, so the pool adds its third and last slab";
  EXPECT_EQ(cuda.calls_made(pool_call::wait_event), 0u);
  EXPECT_EQ(maps->device_bytes(), 3 * pool::slab_bytes(4));
  EXPECT_EQ(use_once(4, s2).count, 4u);
  EXPECT_EQ(cuda.calls_made(pool_call::wait_event), 1u) << "no room to grow is left";
  release(std::move(b));
}

std::vector<std::size_t> allocated_bytes;

TEST_F(growth, only_the_first_slab_has_room_for_more) {
  allocated_bytes.clear();
  pool::pool_calls calls = fake_streams::calls();
  calls.allocate = [](void** data, std::size_t bytes) {
    allocated_bytes.push_back(bytes);
    return fake_streams::calls().allocate(data, bytes);
  };
  maps = *pool::map_pool::create({.capacity = 4, .max_capacity = 8, .extra_bytes = 256}, calls);
  fake_batch a = encode(4, s1);
  fake_batch b = encode(4, s2);
  EXPECT_EQ(allocated_bytes, (std::vector<std::size_t>{pool::slab_bytes(4) + 256, pool::slab_bytes(4)}));
  EXPECT_EQ(maps->device_bytes(), 2 * pool::slab_bytes(4) + 256);
  release(std::move(a));
  release(std::move(b));
}

TEST_F(growth, a_slab_that_would_be_too_small_is_not_added) {
  make_pool(4, 6);
  fake_batch held = encode(4, s1);
  const auto refused = maps->take(3, s1);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, status::pool_exhausted);
  EXPECT_EQ(maps->counts().capacity, 4u);
  EXPECT_EQ(use_once(2, s1).slab_capacity, 2u);
  release(std::move(held));
}

TEST_F(growth, a_slab_that_cannot_be_prepared_is_given_back) {
  const auto refuse = [](void*, std::uint64_t) -> result<void> { return failure{error{.code = status::cuda_failure}}; };
  EXPECT_FALSE(pool::map_pool::create({.capacity = 4, .prepare = refuse}, fake_streams::calls()).has_value());
  EXPECT_EQ(cuda.live_allocations(), 0u);
}

TEST_F(growth, without_memory_to_grow_it_waits) {
  make_pool(4, 64);
  use_once(4, s1);
  cuda.fail_call(pool_call::allocate, 1, cudaErrorMemoryAllocation);
  EXPECT_EQ(use_once(4, s2).count, 4u);
  EXPECT_EQ(cuda.calls_made(pool_call::wait_event), 1u);
  EXPECT_EQ(maps->counts().capacity, 4u);
}

TEST_F(growth, without_memory_to_grow_and_nothing_to_wait_for_it_says_so) {
  make_pool(4, 64);
  fake_batch held = encode(4, s1);
  cuda.fail_call(pool_call::allocate, 1, cudaErrorMemoryAllocation);
  const auto refused = maps->take(4, s2);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, status::out_of_memory);
  expect_counts(0, 4, 0, 0);
  release(std::move(held));
}

}  // namespace
}  // namespace tmap::testing
