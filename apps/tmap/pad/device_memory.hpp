// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/tmap/pad/outcome.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>
#include <utility>

namespace tmap::tool {

/// What the CUDA runtime said, as an outcome; the remembered error is cleared.
inline outcome<void> check(cudaError_t code, const char* action) {
  if (code == cudaSuccess) return {};
  static_cast<void>(cudaGetLastError());
  return refuse("{} failed on the GPU: {}", action, cudaGetErrorString(code));
}

/// Owns one allocation of device memory, aligned to 256 bytes.
class device_memory {
 public:
  device_memory() = default;
  device_memory(device_memory&& other) noexcept : data_{std::exchange(other.data_, nullptr)} {}
  device_memory& operator=(device_memory&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~device_memory() { static_cast<void>(cudaFree(data_)); }

  static outcome<device_memory> allocate(std::uint64_t bytes) {
    device_memory memory;
    const cudaError_t code = cudaMalloc(&memory.data_, bytes);
    if (code == cudaSuccess) return memory;
    static_cast<void>(cudaGetLastError());
    return refuse("the GPU has no {} bytes of memory left ({})", bytes, cudaGetErrorString(code));
  }

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data_); }

 private:
  void* data_{};
};

/// Owns a stream and two events that time what is enqueued between them.
class timed_stream {
 public:
  static outcome<timed_stream> create() {
    timed_stream made;
    cudaError_t code = cudaStreamCreateWithFlags(&made.stream_, cudaStreamNonBlocking);
    if (code == cudaSuccess) code = cudaEventCreate(&made.begin_);
    if (code == cudaSuccess) code = cudaEventCreate(&made.end_);
    if (const auto checked = check(code, "making a stream"); !checked) return refusal{checked.error()};
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

  /// Runs `enqueue` (which answers with a result) to its end on the stream; the GPU's own seconds.
  template <class Enqueue>
  outcome<double> time(const char* action, Enqueue enqueue) const {
    cudaError_t code = cudaEventRecord(begin_, stream_);
    if (const auto enqueued = enqueue(); !enqueued) return refuse("{}: {}", action, to_string(enqueued.error()));
    if (code == cudaSuccess) code = cudaEventRecord(end_, stream_);
    if (code == cudaSuccess) code = cudaStreamSynchronize(stream_);
    float milliseconds = 0;
    if (code == cudaSuccess) code = cudaEventElapsedTime(&milliseconds, begin_, end_);
    if (const auto checked = check(code, action); !checked) return refusal{checked.error()};
    return double{milliseconds} / 1000;
  }

 private:
  timed_stream() = default;

  cudaStream_t stream_{};
  cudaEvent_t begin_{};
  cudaEvent_t end_{};
};

}  // namespace tmap::tool
