// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace tmap::testing {

/// Records what `enqueue(stream)` enqueues in a graph. It returns a `result<void>`.
class recorded_call {
 public:
  template <class Enqueue>
  explicit recorded_call(const Enqueue& enqueue) {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    const result<void> enqueued = enqueue(stream_);
    EXPECT_TRUE(enqueued.has_value()) << to_string(enqueued.error());
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph_), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiate(&executable_, graph_, 0), cudaSuccess);
  }
  ~recorded_call() {
    cudaGraphExecDestroy(executable_);
    cudaGraphDestroy(graph_);
    cudaStreamDestroy(stream_);
  }
  recorded_call(const recorded_call&) = delete;
  recorded_call& operator=(const recorded_call&) = delete;

  /// Replays the graph, and waits. What other streams have is done first.
  void replay(std::uint64_t times = 1) const {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (std::uint64_t i = 0; i < times; ++i) ASSERT_EQ(cudaGraphLaunch(executable_, stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  }

 private:
  cudaStream_t stream_{};
  cudaGraph_t graph_{};
  cudaGraphExec_t executable_{};
};

}  // namespace tmap::testing
