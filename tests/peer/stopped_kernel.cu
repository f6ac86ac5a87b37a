// SPDX-License-Identifier: Apache-2.0
#include "peer/stopped_kernel.hpp"

#include <tmap/device/peer_link.cuh>

#include <cuda/ptx>

#include "kernels/peer/row_crew.cuh"
#include "peer/lone_thread.hpp"

namespace tmap::testing {
namespace {

using namespace kernels::peer;
using device::peer_link;
using device::tile_barrier;

/// Ends its thread before one of the steps. Copies on their way arrive, as those of a rank that
/// stops do.
class stopping_link : public peer_link {
 public:
  __device__ stopping_link(const peer_memory_ref& window, const unsigned char* shared, tile_barrier* gets,
                           packet* taken, std::uint32_t stop, taken_steps& steps)
      : peer_link(window, shared, gets, taken), shared_(shared), stop_(stop), steps_(steps) {}

  __device__ void store(std::uint32_t rank, std::uint64_t offset, std::uint32_t value) {
    step();
    peer_link::store(rank, offset, value);
  }
  __device__ void put(std::uint32_t rank, std::uint64_t offset, std::uint32_t from_shared, std::uint32_t bytes) {
    step();
    peer_link::put(rank, offset, from_shared, bytes);
  }
  __device__ void get(std::uint32_t to_shared, std::uint32_t rank, std::uint64_t offset, std::uint32_t bytes,
                      std::uint32_t set = 0) {
    step();
    open_sets_ |= 1u << set;
    peer_link::get(to_shared, rank, offset, bytes, set);
  }
  __device__ void wait_gets(std::uint32_t set = 0) {
    open_sets_ &= ~(1u << set);
    peer_link::wait_gets(set);
  }
  __device__ void raise(std::uint32_t rank, std::uint64_t signal, std::uint32_t by) {
    step();
    peer_link::raise(rank, signal, by);
  }
  __device__ void raise_here(std::uint64_t signal, std::uint32_t by) {
    step();
    peer_link::raise_here(signal, by);
  }
  __device__ std::uint32_t deal(std::uint64_t word_offset) {
    step();
    return peer_link::deal(word_offset);
  }
  __device__ void raise_released(std::uint32_t rank, std::uint64_t signal, std::uint32_t by) {
    step();
    peer_link::raise_released(rank, signal, by);
  }
  __device__ void send(std::uint32_t rank, std::uint64_t offset, const packet& given) {
    step();
    peer_link::send(rank, offset, given);
  }
  __device__ void store_row_words(std::uint64_t offset, std::uint32_t words, const packet& given) {
    step();
    peer_link::store_row_words(offset, words, given);
  }
  __device__ void store_rows(const row_piece& rows, std::uint32_t from_shared) {
    step();
    auto* const window = reinterpret_cast<unsigned char*>(address(rank(), 0));
    store_share(window, rows, shared_ + from_shared, 0, 1);
  }

 private:
  __device__ void step() {
    if (steps_.count != stop_) {
      ++steps_.count;
      return;
    }
    for (std::uint32_t set = 0; set < pull_sets; ++set) {
      if (open_sets_ >> set & 1) peer_link::wait_gets(set);
    }
    settle();
    steps_.has_stopped = 1;
    cuda::ptx::exit();
  }

  const unsigned char* shared_;
  std::uint32_t stop_;
  taken_steps& steps_;
  std::uint32_t open_sets_{};
};

__global__ void __launch_bounds__(1)
    stopped_exchange_kernel(const __grid_constant__ peer_memory_ref window,
                            const __grid_constant__ exchange_request request, std::uint32_t stop,
                            std::uint64_t patience, taken_steps* steps) {
  extern __shared__ __align__(128) unsigned char staging[];
  __shared__ tile_barrier gets[pull_sets];
  __shared__ packet taken[most_taken_packets];
  for (tile_barrier& each : gets) each.init(1);
  device::fence_barrier_init();
  stopping_link link(window, staging, gets, taken, stop, *steps);
  lone_thread alone{request.row_bytes};
  static_cast<void>(exchange(link, request, alone, link.now() + patience));
}

}  // namespace

cudaError_t load_stopped_exchange() {
  cudaFuncAttributes unused;
  return cudaFuncGetAttributes(&unused, stopped_exchange_kernel);
}

cudaError_t launch_stopped_exchange(const peer_memory_ref& window, const exchange_request& request, std::uint32_t stop,
                                    std::uint64_t patience, taken_steps* steps, cudaStream_t stream) {
  const std::uint32_t bytes = request.stages * request.staging_bytes;
  const cudaError_t code = cudaFuncSetAttribute(stopped_exchange_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                static_cast<int>(bytes));
  if (code != cudaSuccess) return code;
  stopped_exchange_kernel<<<1, 1, bytes, stream>>>(window, request, stop, patience, steps);
  return cudaGetLastError();
}

}  // namespace tmap::testing
