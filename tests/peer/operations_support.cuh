// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/device/peer.cuh>

#include "peer/operations_kernels.hpp"

// Holds what the kernels of operations_*.cu share.

namespace tmap::testing::operations {
namespace {

using namespace tmap::device;

constexpr std::uint32_t threads = 128;

__device__ std::uint32_t* words_at(const peer_memory_ref& window, std::uint32_t rank, std::uint64_t offset) {
  return reinterpret_cast<std::uint32_t*>(window.address(rank, offset));
}

/// Counts words in a thread, and adds them to the counts of its block at the end.
struct tally {
  unsigned long long right{}, wrong{};

  __device__ void compare(std::uint32_t found, std::uint32_t wanted) { found == wanted ? ++right : ++wrong; }
  __device__ void add_to(operation_counts* counts) const {
    atomicAdd(&counts->right_words, right);
    atomicAdd(&counts->wrong_words, wrong);
  }
};

/// Lets one thread load bytes of a window into shared memory, and the block wait for them.
struct loading {
  tile_barrier* barrier;
  std::uint32_t parity{};

  /// All threads of the block call it before anything else.
  explicit __device__ loading(tile_barrier& given) : barrier(&given) {
    if (threadIdx.x == 0) {
      barrier->init(1);
      fence_barrier_init();
    }
    __syncthreads();
  }
  __device__ void get(void* shared, const peer_memory_ref& window, std::uint32_t rank, std::uint64_t offset,
                      std::uint32_t bytes) {
    if (threadIdx.x == 0) {
      barrier->arrive_expect(bytes);
      get_bytes(shared, window, rank, offset, bytes, *barrier);
    }
    barrier->wait(parity);
    parity ^= 1;
  }
};

/// Returns to all threads of the block what thread 0 found.
__device__ bool agree(bool found) {
  return __syncthreads_or(threadIdx.x == 0 && found) != 0;
}

/// Loads a kernel on the current GPU.
template <class Kernel>
cudaError_t load_kernel(Kernel* kernel) {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, kernel);
}

}  // namespace
}  // namespace tmap::testing::operations
