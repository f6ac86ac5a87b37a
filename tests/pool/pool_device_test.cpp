// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "device/gpu_fixture.hpp"
#include "lib/pool/map_pool.hpp"
#include "lib/pool/slab_layout.hpp"

// What the fake streams assume of CUDA, asked of CUDA; and the pool on real streams.

namespace tmap::testing {
namespace {

using pool::real_pool_calls;

class stream_owner {
 public:
  explicit stream_owner(unsigned int flags = cudaStreamNonBlocking) {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, flags), cudaSuccess);
  }
  ~stream_owner() { cudaStreamDestroy(stream_); }
  stream_owner(const stream_owner&) = delete;
  stream_owner& operator=(const stream_owner&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_{};
};

using clock = std::chrono::steady_clock;
constexpr std::chrono::seconds patience{10};

/// Holds a stream back until it is opened, or the test's patience ends.
class gate {
 public:
  explicit gate(cudaStream_t stream) { EXPECT_EQ(cudaLaunchHostFunc(stream, wait, &open_), cudaSuccess); }
  ~gate() { open(); }
  void open() { open_ = true; }

 private:
  static void CUDART_CB wait(void* open) {
    const auto last = clock::now() + patience;
    while (!*static_cast<std::atomic<bool>*>(open) && clock::now() < last) std::this_thread::yield();
  }
  std::atomic<bool> open_{};
};

bool comes_true(const std::function<bool()>& condition) {
  const auto last = clock::now() + patience;
  while (!condition()) {
    if (clock::now() > last) return false;
    std::this_thread::yield();
  }
  return true;
}

class PoolOnDevice : public gpu_test {
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

TEST_F(PoolOnDevice, AllocatedMemoryIsZeroed) {
  constexpr std::size_t bytes = pool::slab_bytes(16384);
  for (int round = 0; round < 3; ++round) {
    void* data{};
    TMAP_ASSERT_CUDA(real_pool_calls().allocate(&data, bytes));
    std::vector<unsigned char> seen(bytes, 0xff);
    TMAP_ASSERT_CUDA(cudaMemcpy(seen.data(), data, bytes, cudaMemcpyDeviceToHost));
    EXPECT_EQ(seen, std::vector<unsigned char>(bytes));
    TMAP_ASSERT_CUDA(cudaMemset(data, 0xa5, bytes));
    TMAP_ASSERT_CUDA(real_pool_calls().free(data));
  }
}

TEST_F(PoolOnDevice, NotReadyIsNoLastError) {
  const stream_owner stream;
  cudaEvent_t event{};
  TMAP_ASSERT_CUDA(real_pool_calls().create_event(&event));
  gate closed{stream.get()};
  TMAP_ASSERT_CUDA(real_pool_calls().record_event(event, stream.get()));
  EXPECT_EQ(real_pool_calls().query_event(event), cudaErrorNotReady);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  closed.open();
  TMAP_ASSERT_CUDA(cudaStreamSynchronize(stream.get()));
  EXPECT_EQ(real_pool_calls().query_event(event), cudaSuccess);
  TMAP_ASSERT_CUDA(real_pool_calls().destroy_event(event));
}

TEST_F(PoolOnDevice, StreamIdsAreNeverUsedAgain) {
  unsigned long long last = 0;
  for (int round = 0; round < 100; ++round) {
    const stream_owner stream;
    unsigned long long id{};
    TMAP_ASSERT_CUDA(real_pool_calls().stream_id(stream.get(), &id));
    EXPECT_NE(id, last);
    last = id;
  }
  unsigned long long null_id{}, legacy_id{}, here{}, there{};
  TMAP_ASSERT_CUDA(real_pool_calls().stream_id(nullptr, &null_id));
  TMAP_ASSERT_CUDA(real_pool_calls().stream_id(cudaStreamLegacy, &legacy_id));
  EXPECT_EQ(null_id, legacy_id);
  TMAP_ASSERT_CUDA(real_pool_calls().stream_id(cudaStreamPerThread, &here));
  std::thread{[&] { EXPECT_EQ(real_pool_calls().stream_id(cudaStreamPerThread, &there), cudaSuccess); }}.join();
  EXPECT_NE(here, legacy_id);
  EXPECT_NE(here, there);
}

TEST_F(PoolOnDevice, CapturesHaveIdsAndForbidTheLegacyStream) {
  const stream_owner stream{cudaStreamDefault};
  unsigned long long id{1}, last{};
  TMAP_ASSERT_CUDA(real_pool_calls().capture_id(stream.get(), &id));
  EXPECT_EQ(id, 0u);
  for (int round = 0; round < 3; ++round) {
    TMAP_ASSERT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal));
    TMAP_ASSERT_CUDA(real_pool_calls().capture_id(stream.get(), &id));
    EXPECT_NE(id, 0u);
    EXPECT_NE(id, last);
    last = id;
    cudaGraph_t found{}, graph{};
    TMAP_ASSERT_CUDA(real_pool_calls().captured_graph(stream.get(), &found));
    EXPECT_EQ(real_pool_calls().capture_id(nullptr, &id), cudaErrorStreamCaptureImplicit);
    cudaGetLastError();
    TMAP_ASSERT_CUDA(cudaStreamEndCapture(stream.get(), &graph));
    EXPECT_EQ(graph, found);
    TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
  }
}

TEST_F(PoolOnDevice, ABrokenCaptureSaysSo) {
  const stream_owner stream;
  TMAP_ASSERT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal));
  EXPECT_NE(cudaStreamSynchronize(stream.get()), cudaSuccess) << "forbidden, and breaks the capture";
  cudaGetLastError();
  unsigned long long id{};
  EXPECT_EQ(real_pool_calls().capture_id(stream.get(), &id), cudaErrorStreamCaptureInvalidated);
  cudaGraph_t graph{};
  EXPECT_NE(cudaStreamEndCapture(stream.get(), &graph), cudaSuccess);
  cudaGetLastError();
  TMAP_ASSERT_CUDA(real_pool_calls().capture_id(stream.get(), &id));
  EXPECT_EQ(id, 0u);
}

TEST_F(PoolOnDevice, AGraphDropsOnceWhenAllOfItIsGone) {
  const stream_owner stream;
  const auto drops = std::make_unique<std::atomic<int>>(0);
  const auto drop = [](void* object) { ++*static_cast<std::atomic<int>*>(object); };
  EXPECT_NE(real_pool_calls().retain_in_graph(nullptr, drops.get(), drop), cudaSuccess);
  cudaGetLastError();

  TMAP_ASSERT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal));
  cudaGraph_t graph{};
  TMAP_ASSERT_CUDA(real_pool_calls().captured_graph(stream.get(), &graph));
  TMAP_ASSERT_CUDA(real_pool_calls().retain_in_graph(graph, drops.get(), drop));
  TMAP_ASSERT_CUDA(cudaStreamEndCapture(stream.get(), &graph));
  cudaGraphExec_t exec{};
  TMAP_ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
  TMAP_ASSERT_CUDA(cudaGraphLaunch(exec, stream.get()));
  TMAP_ASSERT_CUDA(cudaStreamSynchronize(stream.get()));
  std::this_thread::sleep_for(std::chrono::milliseconds{50});
  EXPECT_EQ(*drops, 0) << "the executable lives, and the failed call never drops";
  TMAP_ASSERT_CUDA(cudaGraphExecDestroy(exec));
  EXPECT_TRUE(comes_true([&] { return *drops == 1; }));
}

TEST_F(PoolOnDevice, AnotherStreamWaitsOnTheDevice) {
  const stream_owner s1, s2;
  make_pool(4);
  gate closed{s1.get()};
  use_once(4, s1.get());
  use_once(4, s2.get());
  EXPECT_EQ(cudaStreamQuery(s2.get()), cudaErrorNotReady) << "s2 stands behind s1";
  cudaGetLastError();
  EXPECT_EQ(maps->counts().pending, 4u);
  closed.open();
  TMAP_ASSERT_CUDA(cudaStreamSynchronize(s2.get()));
  EXPECT_EQ(maps->counts().free, 4u);
}

TEST_F(PoolOnDevice, CapturedSlotsComeBackWithTheGraph) {
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

TEST_F(PoolOnDevice, ACaptureIsNeitherBrokenNorInTheWay) {
  const stream_owner captured, s1, s2;
  make_pool(4, 8);
  gate closed{s1.get()};
  use_once(4, s1.get());
  TMAP_ASSERT_CUDA(cudaStreamBeginCapture(captured.get(), cudaStreamCaptureModeGlobal));
  use_once(4, s2.get());  // asks an event, grows, makes an event, on the capturing thread
  std::thread{[&] { use_once(4, s2.get()); }}.join();
  EXPECT_EQ(maps->counts().capacity, 8u);
  cudaGraph_t graph{};
  TMAP_ASSERT_CUDA(cudaStreamEndCapture(captured.get(), &graph));
  TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
}

TEST_F(PoolOnDevice, AForkInsideACaptureIsOneGraph) {
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

TEST_F(PoolOnDevice, AReleaseInsideAnotherCaptureIsMadeUpForLater) {
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
  EXPECT_EQ(cudaStreamQuery(s2.get()), cudaErrorNotReady) << "s2 stands behind what s1 did before the capture";
  cudaGetLastError();
}

TEST_F(PoolOnDevice, TheLastGraphLeaksTheSlabAndCallsNothing) {
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

}  // namespace
}  // namespace tmap::testing
