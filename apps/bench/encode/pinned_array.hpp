// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "apps/support/require.hpp"

namespace tmap::apps::bench {

/// An array in pinned host memory that kernels may write. It starts as zeros.
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

}  // namespace tmap::apps::bench
