// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <random>
#include <thread>

#include "pool/pool_fixture.hpp"
#include "support/scaled.hpp"

// Tests one pool with many threads.

namespace tmap::testing {
namespace {

constexpr int thread_count = 16;

class threads_test : public pool_fixture {
 protected:
  void use(cudaStream_t own, cudaStream_t neighbour, std::mt19937_64& random) {
    auto taken = maps->take(1 + random() % 8, own);
    if (!taken) {
      ++refused;
      wrong += taken.error().code != status::pool_exhausted;
      cuda.run_all();
      return;
    }
    fake_batch batch{std::move(*taken), next_batch_id()};
    cuda.write(own, batch.slots(), batch.count(), batch.id);
    if (random() % 8 == 0) {
      wrong += !maps->use_on(batch.lease, neighbour, own).has_value();
      consume(batch, neighbour);
    }
    consume(batch, own);
    wrong += !maps->release(std::move(batch.lease)).has_value();
  }

  std::atomic<std::uint64_t> wrong{};
  std::atomic<std::uint64_t> refused{};
};

TEST_F(threads_test, take_and_release_from_all_of_them) {
  make_pool(128);
  cudaStream_t streams[thread_count];
  for (cudaStream_t& stream : streams) stream = cuda.open_stream();
  const std::uint64_t rounds = scaled(100000);
  std::vector<std::thread> threads;
  for (int index = 0; index < thread_count; ++index) {
    threads.emplace_back([&, index] {
      std::mt19937_64 random{static_cast<std::uint64_t>(index)};
      const cudaStream_t own = streams[index];
      const fake_stream_id id = cuda.id_of(own);
      for (std::uint64_t round = 0; round < rounds; ++round) {
        use(own, streams[(index + 1) % thread_count], random);
        for (std::uint64_t operation = random() % 8; operation > 0; --operation) cuda.step(id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  cuda.run_all();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(cuda.foreign_ids(), 0u);
  EXPECT_LT(refused, rounds * thread_count / 2) << "most takes succeeded";
  expect_counts(128, 0, 0, 0);
}

TEST_F(threads_test, two_holds_released_at_once_end_the_lease_once) {
  make_pool(4);
  const cudaStream_t stream = cuda.open_stream();
  for (std::uint64_t round = 0; round < scaled(2000); ++round) {
    fake_batch batch = encode(4, stream);
    ASSERT_NE(batch.lease, nullptr);
    fake_batch copy = batch;
    std::thread other{[&] { release(std::move(copy)); }};
    release(std::move(batch));
    other.join();
    cuda.run_all();
    expect_counts(4, 0, 0, 0);
  }
}

}  // namespace
}  // namespace tmap::testing
