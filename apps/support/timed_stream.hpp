// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <utility>

#include "apps/support/cuda_result.hpp"

namespace tmap::apps {

/// Owns a stream, which does not wait for the default one, and two events that time what is
/// enqueued between them.
class timed_stream {
 public:
  [[nodiscard]] static result<timed_stream> create() {
    timed_stream made;
    cudaError_t code = cudaStreamCreateWithFlags(&made.stream_, cudaStreamNonBlocking);
    if (code == cudaSuccess) code = cudaEventCreate(&made.begin_);
    if (code == cudaSuccess) code = cudaEventCreate(&made.end_);
    if (const auto checked = as_result(code); !checked) return failure(checked.error());
    return made;
  }

  timed_stream(timed_stream&& other) noexcept
      : stream_{std::exchange(other.stream_, nullptr)},
        begin_{std::exchange(other.begin_, nullptr)},
        end_{std::exchange(other.end_, nullptr)} {}
  timed_stream& operator=(timed_stream&&) = delete;
  ~timed_stream() {
    if (end_ != nullptr) static_cast<void>(cudaEventDestroy(end_));
    if (begin_ != nullptr) static_cast<void>(cudaEventDestroy(begin_));
    if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(stream_));
  }

  cudaStream_t get() const { return stream_; }

  /// Runs what `enqueue` (which returns a result) enqueues on the stream to its end; the GPU's own
  /// milliseconds.
  template <class Enqueue>
  [[nodiscard]] result<double> milliseconds(const Enqueue& enqueue) const {
    cudaError_t code = cudaEventRecord(begin_, stream_);
    if (const result<void> enqueued = enqueue(); !enqueued) return failure(enqueued.error());
    if (code == cudaSuccess) code = cudaEventRecord(end_, stream_);
    if (code == cudaSuccess) code = cudaEventSynchronize(end_);
    float time = 0;
    if (code == cudaSuccess) code = cudaEventElapsedTime(&time, begin_, end_);
    if (const auto checked = as_result(code); !checked) return failure(checked.error());
    return double{time};
  }

 private:
  timed_stream() = default;

  cudaStream_t stream_{};
  cudaEvent_t begin_{};
  cudaEvent_t end_{};
};

}  // namespace tmap::apps
