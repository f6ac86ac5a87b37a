// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small kernels, one file for each thing the device headers offer (docs/toolkit.md). Each function runs its kernel on
// the current device and says whether the result is right. A new one is also named in main.cpp.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

namespace samples {

bool bulk_copy();
bool bulk_reduce();
bool cache_hints();
bool cluster_queue();
bool copy_async();
bool im2col();
bool send_to_block();
bool stage_ring();
bool store_to_block();
bool tile_load_store();
bool tile_multicast();
bool tile_prefetch();
bool tile_reduce();
bool tile_walk();
bool work_queue();

/// Device memory that holds `values` at first.
template <class T>
class device_values {
 public:
  explicit device_values(const std::vector<T>& values) : count_(values.size()) {
    cudaMalloc(reinterpret_cast<void**>(&data_), count_ * sizeof(T));
    cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyDefault);
  }
  device_values(const device_values&) = delete;
  device_values& operator=(const device_values&) = delete;
  ~device_values() { cudaFree(data_); }

  T* data() const { return data_; }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data_); }
  /// After the kernels so far; empty if one failed.
  std::vector<T> read() const {
    std::vector<T> values(count_);
    if (cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDefault) != cudaSuccess) values.clear();
    return values;
  }

 private:
  T* data_{};
  std::size_t count_;
};

/// first, first + 1, ...
template <class T>
std::vector<T> counting(std::size_t count, T first = 0) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(first + static_cast<T>(i));
  return values;
}

}  // namespace samples
