// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <thread>
#include <utility>

#include "device/gpu_fixture.hpp"
#include "lib/pool/map_pool.hpp"
#include "pool/device_streams.hpp"

// Tests the pool on real streams.

namespace tmap::testing {
namespace {

using pool::real_pool_calls;

class pool_on_device : public gpu_test {
 protected:
  void make_pool(std::uint64_t capacity, std::uint64_t max_capacity = 0) {
    auto made = pool::map_pool::create({.capacity = capacity, .max_capacity = max_capacity}, real_pool_calls());
    ASSERT_TRUE(made.has_value()) << to_string(made.error());
    maps = std::move(*made);
  }

  void use_once(std::uint64_t count, cudaStream_t stream) {
    auto taken = maps->take(count, stream);
    ASSERT_TRUE(taken.has_value()) << to_string(taken.error());
    TMAP_ASSERT_OK(maps->release(std::move(*taken)));
  }

  std::shared_ptr<pool::map_pool> maps;
};

TEST_F(pool_on_device, another_stream_waits_on_the_device) {
  const stream_owner s1, s2;
  make_pool(4);
  gate closed{s1.get()};
  use_once(4, s1.get());
  use_once(4, s2.get());
  EXPECT_EQ(cudaStreamQuery(s2.get()), cudaErrorNotReady) << "s2 waits for s1";
  cudaGetLastError();
  EXPECT_EQ(maps->counts().pending, 4u);
  closed.open();
  TMAP_ASSERT_CUDA(cudaStreamSynchronize(s2.get()));
  EXPECT_EQ(maps->counts().free, 4u);
}

TEST_F(pool_on_device, captured_slots_come_back_with_the_graph) {
  const stream_owner stream;
  make_pool(4);
  TMAP_ASSERT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal));
  use_once(3, stream.get());
  EXPECT_FALSE(maps->take(2, stream.get()).has_value());
  cudaGraph_t graph{};
  TMAP_ASSERT_CUDA(cudaStreamEndCapture(stream.get(), &graph));
  cudaGraphExec_t exec{};
  TMAP_ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
  EXPECT_EQ(maps->counts().captured, 3u);
  TMAP_ASSERT_CUDA(cudaGraphExecDestroy(exec));
  EXPECT_TRUE(comes_true([&] { return maps->counts().free == 4; }));
}

TEST_F(pool_on_device, a_capture_is_neither_broken_nor_in_the_way) {
  const stream_owner captured, s1, s2;
  make_pool(4, 8);
  gate closed{s1.get()};
  use_once(4, s1.get());
  TMAP_ASSERT_CUDA(cudaStreamBeginCapture(captured.get(), cudaStreamCaptureModeGlobal));
  use_once(4, s2.get());  // queries an event, grows, makes an event, all on the capturing thread
  std::thread{[&] { use_once(4, s2.get()); }}.join();
  EXPECT_EQ(maps->counts().capacity, 8u);
  cudaGraph_t graph{};
  TMAP_ASSERT_CUDA(cudaStreamEndCapture(captured.get(), &graph));
  TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
}

TEST_F(pool_on_device, a_fork_inside_a_capture_is_one_graph) {
  const stream_owner s1, s2;
  make_pool(4);
  TMAP_ASSERT_CUDA(cudaStreamBeginCapture(s1.get(), cudaStreamCaptureModeGlobal));
  auto taken = maps->take(4, s1.get());
  ASSERT_TRUE(taken.has_value());
  TMAP_ASSERT_OK(maps->use_on(*taken, s2.get(), s1.get()));
  unsigned long long first{}, second{};
  TMAP_ASSERT_CUDA(real_pool_calls().capture_id(s1.get(), &first));
  TMAP_ASSERT_CUDA(real_pool_calls().capture_id(s2.get(), &second));
  EXPECT_EQ(first, second);
  TMAP_ASSERT_OK(maps->use_on(*taken, s1.get(), s2.get()));
  TMAP_ASSERT_OK(maps->release(std::move(*taken)));
  cudaEvent_t join{};
  TMAP_ASSERT_CUDA(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  TMAP_ASSERT_CUDA(cudaEventRecord(join, s2.get()));
  TMAP_ASSERT_CUDA(cudaStreamWaitEvent(s1.get(), join, 0));
  cudaGraph_t graph{};
  TMAP_ASSERT_CUDA(cudaStreamEndCapture(s1.get(), &graph));
  TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
  TMAP_ASSERT_CUDA(cudaEventDestroy(join));
  EXPECT_TRUE(comes_true([&] { return maps->counts().free == 4; }));
}

TEST_F(pool_on_device, a_release_inside_another_capture_is_made_up_for_later) {
  const stream_owner s1, s2;
  make_pool(4);
  auto taken = maps->take(4, s1.get());
  ASSERT_TRUE(taken.has_value());
  gate closed{s1.get()};
  TMAP_ASSERT_CUDA(cudaStreamBeginCapture(s1.get(), cudaStreamCaptureModeGlobal));
  TMAP_ASSERT_OK(maps->release(std::move(*taken)));
  EXPECT_FALSE(maps->take(4, s2.get()).has_value());
  cudaGraph_t graph{};
  TMAP_ASSERT_CUDA(cudaStreamEndCapture(s1.get(), &graph));
  TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
  use_once(4, s2.get());
  EXPECT_EQ(cudaStreamQuery(s2.get()), cudaErrorNotReady) << "s2 waits for the work of s1 before the capture";
  cudaGetLastError();
}

TEST_F(pool_on_device, the_last_graph_leaks_the_slab_and_calls_nothing) {
  const stream_owner stream;
  make_pool(4);
  TMAP_ASSERT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal));
  use_once(3, stream.get());
  cudaGraph_t graph{};
  TMAP_ASSERT_CUDA(cudaStreamEndCapture(stream.get(), &graph));
  const std::weak_ptr<pool::map_pool> seen = maps;
  maps.reset();
  EXPECT_FALSE(seen.expired());
  TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
  EXPECT_TRUE(comes_true([&] { return seen.expired(); }));
}

/// The stream that another thread begins to capture just before the next event is recorded; null if
/// there is none.
cudaStream_t captured_next{};

cudaError_t record_beside_a_capture(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaStream_t captured = std::exchange(captured_next, nullptr); captured != nullptr) {
    std::thread{[&] { EXPECT_EQ(cudaStreamBeginCapture(captured, cudaStreamCaptureModeRelaxed), cudaSuccess); }}.join();
  }
  return cudaEventRecord(event, stream);
}

TEST_F(pool_on_device, a_release_beside_the_beginning_of_a_capture_is_made_up_for_later) {
  const stream_owner s1, s2;
  pool::pool_calls calls = real_pool_calls();
  calls.record_event = record_beside_a_capture;
  maps = *pool::map_pool::create({.capacity = 8}, calls);
  auto taken = maps->take(8, s1.get());
  ASSERT_TRUE(taken.has_value());
  captured_next = s1.get();
  TMAP_ASSERT_OK(maps->release(std::move(*taken)));
  EXPECT_EQ(maps->take(8, s2.get()).error().code, status::pool_exhausted);
  cudaGraph_t graph{};
  TMAP_ASSERT_CUDA(cudaStreamEndCapture(s1.get(), &graph));
  EXPECT_NE(graph, nullptr) << "the capture is intact";
  TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
  use_once(8, s2.get());
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  EXPECT_EQ(maps->counts().free, 8u);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
}  // namespace tmap::testing
