// SPDX-License-Identifier: Apache-2.0
#pragma once

// The ways to time, each a median, on a stream of the timer's own. `enqueue` is called with that
// stream.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "apps/support/require.hpp"
#include "apps/support/timed_stream.hpp"

namespace tmap::apps {

inline double median(std::vector<double> times) {
  require(!times.empty());
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

/// Holds what `enqueue` puts on a stream, `times` times, as a graph.
class captured_graph {
 public:
  template <class Enqueue>
  captured_graph(cudaStream_t stream, const Enqueue& enqueue, int times) {
    require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < times; ++i) enqueue(stream);
    require(cudaStreamEndCapture(stream, &graph_));
  }
  ~captured_graph() { cudaGraphDestroy(graph_); }
  captured_graph(const captured_graph&) = delete;
  captured_graph& operator=(const captured_graph&) = delete;

  cudaGraph_t get() const { return graph_; }

 private:
  cudaGraph_t graph_{};
};

/// Microseconds of one thing, timed in two ways.
struct ways {
  double stream;
  double graph;
};

/// Statistics over a `timed_stream`, for programs that end where CUDA fails.
class timer {
 public:
  // As an initializer of the member it aborts cudafe++ of CUDA 13.0.
  timer() : stream_{value_of(timed_stream::create())} {}

  cudaStream_t stream() const { return stream_.get(); }
  void drain() const { require(cudaStreamSynchronize(stream())); }

  /// By events around what one call enqueues on the idle stream. Where that takes the GPU less time
  /// than the host needs to enqueue it, the host's time is in it.
  template <class Enqueue>
  double stream_microseconds(const Enqueue& enqueue, int repeats = 201) const {
    return median_of(repeats, [&] { return between_events([&] { enqueue(stream()); }); });
  }

  /// One of a hundred in a row: events around a graph that holds them all.
  template <class Enqueue>
  double graph_microseconds(const Enqueue& enqueue, int chain = 100, int repeats = 25) const {
    return graph_microseconds(captured_graph(stream(), enqueue, chain), chain, repeats);
  }
  /// Measures the same of a graph that holds `chain` of them.
  double graph_microseconds(const captured_graph& graph, int chain, int repeats) const {
    cudaGraphExec_t executable = nullptr;
    require(cudaGraphInstantiate(&executable, graph.get(), 0));
    require(cudaGraphUpload(executable, stream()));
    const double time = median_of(
        repeats, [&] { return between_events([&] { require(cudaGraphLaunch(executable, stream())); }) / chain; });
    require(cudaGraphExecDestroy(executable));
    return time;
  }

  /// Times one of `times` in a row, after `skipped` that are not timed.
  template <class Enqueue>
  double stream_microseconds_behind(const Enqueue& enqueue, int skipped, int times) const {
    for (int i = 0; i < skipped; ++i) enqueue(stream());
    return between_events([&] {
             for (int i = 0; i < times; ++i) enqueue(stream());
           }) /
           times;
  }
  /// Measures the same of launches of a graph.
  double graph_microseconds_behind(const captured_graph& graph, int skipped, int times) const {
    cudaGraphExec_t executable = nullptr;
    require(cudaGraphInstantiate(&executable, graph.get(), 0));
    const double time = stream_microseconds_behind(
        [&](cudaStream_t stream) { require(cudaGraphLaunch(executable, stream)); }, skipped, times);
    require(cudaGraphExecDestroy(executable));
    return time;
  }

  template <class Enqueue>
  ways both(const Enqueue& enqueue) const {
    return {stream_microseconds(enqueue), graph_microseconds(enqueue)};
  }

  /// The call alone, by the host's clock: it only enqueues.
  template <class Enqueue>
  std::vector<double> host_times(const Enqueue& enqueue) const {
    constexpr int repeats = 1000;
    constexpr int drained_every = 25;
    std::vector<double> times;
    for (int i = -drained_every; i < repeats; ++i) {
      if (i % drained_every == 0) drain();
      const double time = host_microseconds([&] { enqueue(stream()); });
      if (i >= 0) times.push_back(time);
    }
    drain();
    return times;
  }

  /// From the call until all it enqueued has run, by the host's clock.
  template <class Enqueue>
  double end_to_end_microseconds(const Enqueue& enqueue) const {
    return median_of(51, [&] {
      return host_microseconds([&] {
        enqueue(stream());
        drain();
      });
    });
  }

 private:
  template <class Measure>
  static double median_of(int repeats, const Measure& measure) {
    constexpr int warm_up = 3;
    std::vector<double> times;
    for (int i = -warm_up; i < repeats; ++i) {
      const double time = measure();
      if (i >= 0) times.push_back(time);
    }
    return median(times);
  }

  template <class Work>
  double between_events(const Work& work) const {
    return value_of(stream_.milliseconds([&] {
             work();
             return result<void>{};
           })) *
           1000;
  }

  template <class Work>
  static double host_microseconds(const Work& work) {
    using clock = std::chrono::steady_clock;
    const auto start = clock::now();
    work();
    return std::chrono::duration<double, std::micro>(clock::now() - start).count();
  }

  timed_stream stream_;
};

}  // namespace tmap::apps
