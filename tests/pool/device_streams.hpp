// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

// Streams that close themselves, and waiting for the device.

namespace tmap::testing {

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

inline constexpr std::chrono::seconds patience{10};

/// Blocks a stream until the gate opens or the test's time limit ends.
class gate {
 public:
  explicit gate(cudaStream_t stream) {
    auto held = std::make_unique<flag>(open_);
    EXPECT_EQ(cudaLaunchHostFunc(stream, wait, held.get()), cudaSuccess);
    static_cast<void>(held.release());
  }
  ~gate() { open(); }
  gate(const gate&) = delete;
  gate& operator=(const gate&) = delete;
  void open() { *open_ = true; }

 private:
  using flag = std::shared_ptr<std::atomic<bool>>;

  /// May read the flag after the gate is destroyed.
  static void CUDART_CB wait(void* data) {
    const std::unique_ptr<flag> held{static_cast<flag*>(data)};
    const auto last = std::chrono::steady_clock::now() + patience;
    while (!**held && std::chrono::steady_clock::now() < last) std::this_thread::yield();
  }

  const flag open_ = std::make_shared<std::atomic<bool>>(false);
};

inline bool comes_true(const std::function<bool()>& condition) {
  const auto last = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > last) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace tmap::testing
