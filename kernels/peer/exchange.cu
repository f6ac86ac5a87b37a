// SPDX-License-Identifier: Apache-2.0
#include <tmap/detail/peer_barrier.hpp>
#include <tmap/device/peer_link.cuh>

#include "kernels/load_kernel.hpp"
#include "kernels/peer/plain_launch.hpp"
#include "kernels/peer/protocol_exchange.hpp"
#include "kernels/peer/row_crew.cuh"
#include "kernels/peer_launch.hpp"

namespace tmap::kernels {
namespace {

using device::peer_link;
using device::tile_barrier;

// One thread of a block runs a protocol, because it alone issues copies. The model explores the
// same functions.

/// Runs in each of the blocks that share an exchange. They must all run at the same time.
__global__ void __launch_bounds__(peer::threads_with_crew)
    exchange_kernel(const __grid_constant__ peer_memory_ref window,
                    const __grid_constant__ peer::exchange_request given,
                    const __grid_constant__ peer::exchange_request next, std::uint64_t patience) {
  extern __shared__ __align__(128) unsigned char staging[];
  __shared__ tile_barrier gets[peer::pull_sets];
  __shared__ peer::row_crew crew;
  __shared__ peer::packet taken[peer::most_taken_packets];
  if (threadIdx.x == 0) {
    for (tile_barrier& each : gets) each.init(1);
    crew.init();
    device::fence_barrier_init();
  }
  __syncthreads();
  peer::exchange_request request = given;
  request.block = blockIdx.x;
  request.blocks = gridDim.x;
  peer::crew_member member(crew, window.ranks, given.row_bytes);
  cudaGridDependencySynchronize();
  if (threadIdx.x >= peer::leading_threads) {
    peer_link link(window, nullptr, nullptr, taken);
    return member.serve(link, request, staging, patience);
  }
  if (threadIdx.x != 0) return;
  peer::crew_leader leader(crew);
  peer::crew_link link(window, staging, gets, leader, taken);
  static_cast<void>(peer::exchange(link, request, leader, link.now() + patience, next));
  leader.dismiss();
}

__global__ void __launch_bounds__(1)
    await_credits_kernel(const __grid_constant__ peer_memory_ref window, std::uint64_t patience) {
  peer_link link(window);
  static_cast<void>(peer::report(link, peer::await_credits(link, link.now() + patience)));
}

__global__ void __launch_bounds__(1)
    barrier_kernel(const __grid_constant__ peer_memory_ref window, std::uint64_t patience) {
  peer_link link(window);
  static_cast<void>(tmap::detail::peer::barrier(link, link.now() + patience));
}

}  // namespace

cudaError_t load_peer_kernels() {
  cudaError_t code = load(exchange_kernel);
  if (code == cudaSuccess) code = load(await_credits_kernel);
  if (code == cudaSuccess) code = load(barrier_kernel);
  if (code == cudaSuccess) code = load_self_test_kernel();
  if (code == cudaSuccess) code = load_parcel_kernels();
  return code == cudaSuccess ? load_dispatch_kernels() : code;
}

cudaError_t launch_exchange(const peer_memory_ref& window, const peer::exchange_request& request,
                            std::uint64_t patience, cudaStream_t stream) {
  return launch_exchange_and_announce(window, request, {}, patience, stream);
}

cudaError_t launch_exchange_and_announce(const peer_memory_ref& window, const peer::exchange_request& request,
                                         const peer::exchange_request& next, std::uint64_t patience,
                                         cudaStream_t stream) {
  const launch_size size{request.blocks, peer::threads_with_crew, request.stages * request.staging_bytes};
  return launch_behind(exchange_kernel, size, stream, window, request, next, patience);
}

cudaError_t launch_await_credits(const peer_memory_ref& window, std::uint64_t patience, cudaStream_t stream) {
  return plain_launch(await_credits_kernel, {1, 1}, stream, window, patience);
}

cudaError_t launch_peer_barrier(const peer_memory_ref& window, std::uint64_t patience, cudaStream_t stream) {
  return plain_launch(barrier_kernel, {1, 1}, stream, window, patience);
}

}  // namespace tmap::kernels
