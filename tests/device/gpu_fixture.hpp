// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "support/scaled.hpp"

// Provides what every device test needs: a GPU or a skip, device memory that frees itself, poison
// and canaries.

namespace tmap::testing {

#define TMAP_ASSERT_CUDA(call)                                                   \
  do {                                                                           \
    const cudaError_t code_ = (call);                                            \
    ASSERT_EQ(code_, cudaSuccess) << #call << ": " << cudaGetErrorString(code_); \
  } while (false)

#define TMAP_ASSERT_OK(call)                                        \
  do {                                                              \
    const auto& result_ = (call);                                   \
    ASSERT_TRUE(result_.has_value()) << to_string(result_.error()); \
  } while (false)

/// Skips a test without a GPU, and fails a test that leaves the CUDA context broken.
class gpu_test : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";
    // Makes the context. Without it, the first encode would fail once and retry, which sanitizers
    // report.
    TMAP_ASSERT_CUDA(cudaSetDevice(0));
  }
  void TearDown() override {
    if (IsSkipped()) return;
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
};

/// Owns `count` elements of device memory. Every byte is `poison` at first.
template <class T>
class device_array {
 public:
  static constexpr int poison = 0xa5;

  explicit device_array(std::uint64_t count) : count_(count) {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&data_), std::max<std::uint64_t>(1, bytes())), cudaSuccess);
    fill_poison();
  }
  explicit device_array(const std::vector<T>& values) : device_array(values.size()) { upload(values); }
  device_array(const device_array&) = delete;
  device_array& operator=(const device_array&) = delete;
  ~device_array() { cudaFree(data_); }

  void fill_poison() const { EXPECT_EQ(cudaMemset(data_, poison, bytes()), cudaSuccess); }
  void upload(const std::vector<T>& values) const {
    EXPECT_LE(values.size(), count_);
    EXPECT_EQ(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
  }
  /// Waits for all work on the device first.
  std::vector<T> download() const {
    std::vector<T> values(count_);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }

  T* data() const { return data_; }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data_); }
  std::uint64_t size() const { return count_; }
  std::uint64_t bytes() const { return count_ * sizeof(T); }

 private:
  T* data_{};
  std::uint64_t count_;
};

template <class T>
bool is_poison(const T& value) {
  unsigned char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  return std::all_of(bytes, bytes + sizeof(T), [](unsigned char byte) { return byte == device_array<T>::poison; });
}

/// Calls `work(begin, end)` on every host thread with its share of 0 .. count - 1.
template <class Work>
void on_all_threads(std::uint64_t count, const Work& work) {
  const std::uint64_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> pool;
  for (std::uint64_t t = 0; t < threads; ++t) {
    pool.emplace_back([&, t] { work(count * t / threads, count * (t + 1) / threads); });
  }
  for (std::thread& thread : pool) thread.join();
}

}  // namespace tmap::testing
