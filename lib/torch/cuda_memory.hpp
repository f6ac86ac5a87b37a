// SPDX-License-Identifier: Apache-2.0
#pragma once

// The streams and the memory of PyTorch on CUDA. Its headers declare these functions where USE_CUDA
// is defined, which needs none of CUDA's headers.

#include <tmap/c/status.h>

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/headeronly/util/shim_utils.h>

#include <cstdint>

namespace tmap::pytorch {

inline tmap_stream current_stream(std::int32_t device) {
  void* stream = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(device, &stream));
  return static_cast<tmap_stream>(stream);
}

/// Memory of PyTorch's allocator on the current stream of the current device. It goes to others in
/// the stream's order.
class lent_memory {
 public:
  explicit lent_memory(std::uint64_t bytes) {
    TORCH_ERROR_CODE_CHECK(aoti_torch_cuda_caching_allocator_raw_alloc(bytes, &address_));
  }
  ~lent_memory() { aoti_torch_cuda_caching_allocator_raw_delete(address_); }
  lent_memory(const lent_memory&) = delete;
  lent_memory& operator=(const lent_memory&) = delete;
  void* address() const { return address_; }

 private:
  void* address_ = nullptr;
};

}  // namespace tmap::pytorch
