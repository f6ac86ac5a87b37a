// SPDX-License-Identifier: Apache-2.0
#pragma once

// Arrays in device memory and in pinned host memory, freed when they go. What fills a device array waits until it has
// arrived, for the benchmarks' streams do not wait for the default one.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "apps/bench/require.hpp"

namespace tmap::bench {

template <class T>
class device_array {
 public:
  explicit device_array(std::size_t count) : count_(count) {
    void* data = nullptr;
    require(cudaMalloc(&data, count * sizeof(T)));
    data_.reset(static_cast<T*>(data));
  }
  explicit device_array(const std::vector<T>& values) : device_array(values.size()) {
    require(cudaMemcpy(data_.get(), values.data(), bytes(), cudaMemcpyHostToDevice));
    require(cudaDeviceSynchronize());
  }

  T* get() const { return data_.get(); }
  std::size_t size() const { return count_; }
  std::size_t bytes() const { return count_ * sizeof(T); }
  void fill(int byte) const {
    require(cudaMemset(data_.get(), byte, bytes()));
    require(cudaDeviceSynchronize());
  }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    require(cudaDeviceSynchronize());
    require(cudaMemcpy(values.data(), data_.get(), bytes(), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  struct free_it {
    void operator()(T* data) const { cudaFree(data); }
  };
  std::size_t count_;
  std::unique_ptr<T, free_it> data_;
};

/// Zeroed at the beginning; kernels may write it.
template <class T>
class pinned_array {
 public:
  explicit pinned_array(std::size_t count) {
    void* data = nullptr;
    require(cudaMallocHost(&data, count * sizeof(T)));
    data_.reset(static_cast<T*>(data));
    for (std::size_t i = 0; i < count; ++i) data_.get()[i] = T{};
  }
  T* get() const { return data_.get(); }

 private:
  struct free_it {
    void operator()(T* data) const { cudaFreeHost(data); }
  };
  std::unique_ptr<T, free_it> data_;
};

}  // namespace tmap::bench
