// SPDX-License-Identifier: Apache-2.0
// Tests one service with many threads.
#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "service/service_fixture.hpp"
#include "support/scaled.hpp"

namespace tmap::testing {
namespace {

class service_threads : public service_fixture {
 protected:
  /// Runs one thread's rounds on its own stream: encode, update, check, release. Returns the number
  /// of wrong maps.
  std::uint64_t work(map_service& service, std::uint64_t thread, std::uint64_t rounds) {
    const cudaStream_t stream = machine.streams.open_stream();
    std::uint64_t wrong = 0;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      tensor_list tensors{1 + (thread * 31 + round) % 50, (thread * rounds + round + 1) << 24};
      result<map_batch> batch = encode(service, tensors, stream);
      if (!batch) return wrong + (batch.error().code == status::pool_exhausted ? 0 : 1000000);
      const std::uint32_t which[] = {static_cast<std::uint32_t>(round % 50)};
      if (which[0] < tensors.patches.size()) tensors.patches[which[0]].global_address += 16;
      const result<map_batch> updated = service.update(*batch, {which, 1}, base, tensors.source(), {stream_of(stream)});
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

/// Runs once, directly after the next event that a release records.
std::function<void()> after_record;

cudaError_t record_and_go_on(cudaEvent_t event, cudaStream_t stream) {
  const cudaError_t code = fake_streams::calls().record_event(event, stream);
  if (after_record) std::exchange(after_record, {})();
  return code;
}

pool::pool_calls interrupted_pool_calls() {
  pool::pool_calls calls = fake_streams::calls();
  calls.record_event = record_and_go_on;
  return calls;
}

service::service_calls interrupted_calls() {
  static const pool::pool_calls pool = interrupted_pool_calls();
  service::service_calls calls = fake_machine::calls();
  calls.pool = &pool;
  return calls;
}

/// If one release overtakes another between its event and its mark, the marks of their stream stay
/// in order.
TEST_F(service_threads, a_release_that_is_overtaken_records_its_event_again) {
  static const service::service_calls calls = interrupted_calls();
  const cudaStream_t shared = machine.streams.open_stream();
  const cudaStream_t next = machine.streams.open_stream();
  map_service service = service::create_service({.capacity = 8}, calls).value();
  map_batch slow = encode(service, tensor_list{4}, shared).value();
  map_batch quick = encode(service, tensor_list{4}, shared).value();
  auto* const slots = const_cast<tensor_map*>(quick.ref().slot(0));
  machine.streams.write(shared, slots, 4, 1);
  after_record = [&] {
    machine.streams.read(shared, slots, 4, 1);
    EXPECT_TRUE(quick.release().has_value());
  };
  ASSERT_TRUE(slow.release().has_value());
  ASSERT_FALSE(quick);
  const map_batch both = encode(service, tensor_list{8}, next).value();
  machine.streams.write(next, const_cast<tensor_map*>(both.ref().slot(0)), 8, 2);
  for (int turn = 0; turn < 10; ++turn) {
    machine.streams.step(machine.streams.id_of(next));
    machine.streams.step(machine.streams.id_of(next));
    machine.streams.step(machine.streams.id_of(shared));
  }
  machine.streams.run_all();
  EXPECT_EQ(machine.streams.foreign_ids(), 0u);
}

}  // namespace
}  // namespace tmap::testing
