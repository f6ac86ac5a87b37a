// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>
#include <tmap/peer_memory.hpp>
#include <tmap/peer_memory_ref.hpp>

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace tmap {

namespace kernels::peer {
struct exchange_request;
struct parcel_layout;
}  // namespace kernels::peer

namespace peer {

/// The calls of groups to the system, to CUDA and to the dynamic linker, as pointers, so that tests
/// can simulate every machine and every failure. NCCL is found through `open_library`.
struct peer_calls {
  bool (*is_exiting)();
  int (*process_id)();
  const char* (*environment)(const char* name);  ///< null: the variable is not set
  std::uint64_t (*milliseconds)();               ///< of a clock that never goes back
  void (*nap)();                                 ///< waits for a moment, between two questions

  void* (*open_library)(const char* name, int mode);  ///< as dlopen
  void* (*find_function)(void* library, const char* name);

  cudaError_t (*device_count)(int* count);
  cudaError_t (*current_device)(int* device);
  cudaError_t (*set_device)(int device);
  cudaError_t (*can_access_peer)(int* can, int device, int peer);
  cudaError_t (*enable_peer_access)(int peer);  ///< of the current device to the memory of `peer`
  cudaError_t (*allocate)(void** data, std::size_t bytes);
  cudaError_t (*free)(void* data);
  cudaError_t (*open_stream)(cudaStream_t* stream);  ///< one that does not wait for the legacy stream
  cudaError_t (*close_stream)(cudaStream_t stream);
  cudaError_t (*clear)(void* data, std::size_t bytes, cudaStream_t stream);
  cudaError_t (*copy)(void* to, const void* from, std::size_t bytes, cudaStream_t stream);
  cudaError_t (*query)(cudaStream_t stream);
  cudaError_t (*wait)(cudaStream_t stream);
  cudaError_t (*is_device_memory)(bool* is, const void* data);

  /// Returns the version of the NCCL headers that `ask_window` was compiled with, or 0 without it.
  int (*ask_window_version)();
  /// Launches a kernel that writes the addresses of a window of NCCL, one for each rank, to device
  /// memory.
  cudaError_t (*ask_window)(const void* window, std::uint32_t ranks, std::uint64_t* addresses, cudaStream_t stream);

  // Launches of an exchange by parcels.
  cudaError_t (*pack_parcels)(const peer_memory_ref& window, const kernels::peer::exchange_request& request,
                              const kernels::peer::parcel_layout& at, cudaStream_t stream);
  cudaError_t (*deliver_parcels)(const peer_memory_ref& window, const kernels::peer::exchange_request& request,
                                 const kernels::peer::parcel_layout& at, cudaStream_t stream);
  cudaError_t (*exchange)(const peer_memory_ref& window, const kernels::peer::exchange_request& request,
                          std::uint64_t patience, cudaStream_t stream);

  /// Tests the way to all ranks and back, and waits until they all have.
  result<void> (*test_window)(const peer_memory& window, std::chrono::milliseconds patience);
};

const peer_calls& real_peer_calls();

}  // namespace peer
}  // namespace tmap
