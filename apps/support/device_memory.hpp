// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <utility>

#include "apps/support/cuda_result.hpp"

namespace tmap::apps {

/// Owns one allocation of device memory, aligned to 256 bytes; of no bytes at first.
class device_memory {
 public:
  device_memory() = default;
  device_memory(device_memory&& other) noexcept
      : data_{std::exchange(other.data_, nullptr)}, bytes_{std::exchange(other.bytes_, 0)} {}
  device_memory& operator=(device_memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~device_memory() { static_cast<void>(cudaFree(data_)); }

  [[nodiscard]] static result<device_memory> allocate(std::uint64_t bytes) {
    device_memory memory;
    if (const auto done = as_result(cudaMalloc(&memory.data_, bytes)); !done) return failure(done.error());
    memory.bytes_ = bytes;
    return memory;
  }

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data_); }
  std::uint64_t bytes() const { return bytes_; }

  /// Sets every byte, in order of the default stream.
  [[nodiscard]] result<void> fill(int byte) const { return as_result(cudaMemset(data_, byte, bytes_)); }

 private:
  void* data_{};
  std::uint64_t bytes_{};
};

/// Copies between any two of host and device. Waits where `cudaMemcpy` does.
[[nodiscard]] inline result<void> copy_bytes(void* to, const void* from, std::uint64_t bytes) {
  return as_result(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
}

}  // namespace tmap::apps
