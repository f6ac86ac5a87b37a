// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "apps/support/device_memory.hpp"
#include "apps/support/require.hpp"

namespace tmap::apps {

/// An array in device memory, for programs that end where CUDA fails. What fills it waits until the
/// values have arrived, for the programs' streams do not wait for the default one.
template <class T>
class device_array {
 public:
  explicit device_array(std::size_t count)
      : memory_(value_of(device_memory::allocate(count * sizeof(T)))), count_(count) {}
  explicit device_array(const std::vector<T>& values) : device_array(values.size()) {
    require(copy_bytes(get(), values.data(), bytes()));
    require(cudaDeviceSynchronize());
  }

  T* get() const { return memory_.as<T>(); }
  std::uint64_t address() const { return memory_.address(); }
  std::size_t size() const { return count_; }
  std::size_t bytes() const { return count_ * sizeof(T); }
  void fill(int byte) const {
    require(memory_.fill(byte));
    require(cudaDeviceSynchronize());
  }
  /// Waits for all work.
  std::vector<T> read() const {
    std::vector<T> values(count_);
    require(cudaDeviceSynchronize());
    require(copy_bytes(values.data(), get(), bytes()));
    return values;
  }

 private:
  device_memory memory_;
  std::size_t count_;
};

}  // namespace tmap::apps
