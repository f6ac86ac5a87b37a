// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <thread>
#include <vector>

#include "device/gpu_fixture.hpp"
#include "lib/pool/pool_calls.hpp"
#include "lib/pool/slab_layout.hpp"
#include "pool/device_streams.hpp"

// What the fake streams assume of CUDA, asked of CUDA.

namespace tmap::testing {
namespace {

using pool::real_pool_calls;

class RealPoolCalls : public gpu_test {};

TEST_F(RealPoolCalls, AllocatedMemoryIsZeroed) {
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

TEST_F(RealPoolCalls, NotReadyIsNoLastError) {
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

TEST_F(RealPoolCalls, StreamIdsAreNeverUsedAgain) {
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

TEST_F(RealPoolCalls, CapturesHaveIdsAndForbidTheLegacyStream) {
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

TEST_F(RealPoolCalls, ABrokenCaptureSaysSo) {
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

TEST_F(RealPoolCalls, AGraphDropsOnceWhenAllOfItIsGone) {
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

}  // namespace
}  // namespace tmap::testing
