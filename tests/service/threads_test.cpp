// SPDX-License-Identifier: Apache-2.0
// One service, many threads.
#include <atomic>
#include <thread>

#include "service/service_fixture.hpp"
#include "support/scaled.hpp"

namespace tmap::testing {
namespace {

class service_threads : public service_fixture {
 protected:
  /// One thread's rounds on a stream of its own: encode, update, look, let go. Counts wrong maps.
  std::uint64_t work(map_service& service, std::uint64_t thread, std::uint64_t rounds) {
    const cudaStream_t stream = machine.streams.open_stream();
    std::uint64_t wrong = 0;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      tensor_list tensors{1 + (thread * 31 + round) % 50, (thread * rounds + round + 1) << 24};
      result<map_batch> batch = encode(service, tensors, stream);
      if (!batch) return wrong + (batch.error().code == status::pool_exhausted ? 0 : 1000000);
      const std::uint32_t which[] = {static_cast<std::uint32_t>(round % 50)};
      if (which[0] < tensors.patches.size()) tensors.patches[which[0]].global_address += 16;
      const result<map_batch> updated = service.update(*batch, {which, 1}, base, tensors.source(), stream_of(stream));
      wrong += updated ? wrong_maps(*updated, tensors) : 1000000;
      machine.streams.step(machine.streams.id_of(stream));
    }
    return wrong;
  }
};

TEST_F(service_threads, keep_their_batches_apart) {
  constexpr std::uint64_t threads = 8;
  const std::uint64_t rounds = scaled(2000);
  map_service service = make(1 << 14);
  std::atomic<std::uint64_t> wrong{};
  std::vector<std::thread> pool;
  for (std::uint64_t t = 0; t < threads; ++t) {
    pool.emplace_back([&, t] { wrong += work(service, t, rounds); });
  }
  for (std::uint64_t look = 0; look < 100; ++look) expect_sum(service.statistics().slots);
  for (std::thread& thread : pool) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(service.statistics().batches, 2 * threads * rounds);
  machine.streams.run_all();
  EXPECT_EQ(service.statistics().slots.free, std::uint64_t{1} << 14);
}

}  // namespace
}  // namespace tmap::testing
