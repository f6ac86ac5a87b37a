// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "device/gpu_fixture.hpp"

namespace tmap::testing {

/// Owns a stream. It waits for the default stream, which fills the arrays of a test.
class own_stream {
 public:
  own_stream() { EXPECT_EQ(cudaStreamCreate(&stream_), cudaSuccess); }
  own_stream(const own_stream&) = delete;
  own_stream& operator=(const own_stream&) = delete;
  ~own_stream() { cudaStreamDestroy(stream_); }

  cudaStream_t get() const { return stream_; }
  void wait() const { EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess); }

 private:
  cudaStream_t stream_{};
};

/// Owns an executable graph of what `enqueue(stream)` enqueues, captured in the strictest mode.
class captured_graph {
 public:
  template <class Enqueue>
  captured_graph(const own_stream& stream, const Enqueue& enqueue) {
    EXPECT_EQ(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal), cudaSuccess);
    enqueue(stream.get());
    EXPECT_EQ(cudaStreamEndCapture(stream.get(), &graph_), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiate(&executable_, graph_, 0), cudaSuccess);
  }
  captured_graph(captured_graph&& other) noexcept
      : graph_(std::exchange(other.graph_, nullptr)), executable_(std::exchange(other.executable_, nullptr)) {}
  captured_graph& operator=(captured_graph&&) = delete;
  ~captured_graph() {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
  }

  void launch(const own_stream& stream) const { EXPECT_EQ(cudaGraphLaunch(executable_, stream.get()), cudaSuccess); }

 private:
  cudaGraph_t graph_{};
  cudaGraphExec_t executable_{};
};

}  // namespace tmap::testing
