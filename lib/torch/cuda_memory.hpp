// SPDX-License-Identifier: Apache-2.0
#pragma once

// The streams and the memory of PyTorch on CUDA.

#include <tmap/c/status.h>

#include <cstdint>

namespace tmap::pytorch {

tmap_stream current_stream(std::int32_t device);

/// Memory of PyTorch's allocator on the current stream of the current device. It goes to others in
/// the stream's order.
class lent_memory {
 public:
  explicit lent_memory(std::uint64_t bytes);
  ~lent_memory();
  lent_memory(const lent_memory&) = delete;
  lent_memory& operator=(const lent_memory&) = delete;
  void* address() const { return address_; }

 private:
  void* address_ = nullptr;
};

}  // namespace tmap::pytorch
