// SPDX-License-Identifier: Apache-2.0
#include <tmap/device/peer_link.cuh>

#include "kernels/load_kernel.hpp"
#include "kernels/peer/plain_launch.hpp"
#include "kernels/peer/protocol_parcels.hpp"
#include "kernels/peer/row_crew.cuh"
#include "kernels/peer_launch.hpp"

namespace tmap::kernels {
namespace {

using device::tile_barrier;

constexpr std::uint32_t delivering_threads = 256;

/// Runs in each of the blocks that share the rows. None of them waits for another.
__global__ void __launch_bounds__(peer::threads_with_crew)
    pack_parcels_kernel(const __grid_constant__ peer_memory_ref window,
                        const __grid_constant__ peer::exchange_request given,
                        const __grid_constant__ peer::parcel_layout at) {
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
  if (threadIdx.x >= peer::leading_threads) {
    const device::peer_link link(window);
    return peer::crew_member(crew, window.ranks, given.row_bytes).store_pieces(link, staging);
  }
  if (threadIdx.x != 0) return;
  peer::exchange_request request = given;
  request.block = blockIdx.x;
  request.blocks = gridDim.x;
  peer::crew_leader leader(crew);
  peer::crew_link link(window, staging, gets, leader, taken);
  peer::pack_parcels(link, request, at);
  leader.dismiss();
}

/// Runs in a single block.
__global__ void __launch_bounds__(delivering_threads)
    deliver_parcels_kernel(const __grid_constant__ peer_memory_ref window,
                           const __grid_constant__ peer::exchange_request request,
                           const __grid_constant__ peer::parcel_layout at) {
  device::peer_link link(window);
  peer::deliver_parcels(link, request, at, threadIdx.x, delivering_threads);
}

}  // namespace

cudaError_t load_parcel_kernels() {
  const cudaError_t code = load(pack_parcels_kernel);
  return code == cudaSuccess ? load(deliver_parcels_kernel) : code;
}

cudaError_t launch_pack_parcels(const peer_memory_ref& window, const peer::exchange_request& request,
                                const peer::parcel_layout& at, cudaStream_t stream) {
  const launch_size size{request.blocks, peer::threads_with_crew, request.stages * request.staging_bytes};
  return plain_launch(pack_parcels_kernel, size, stream, window, request, at);
}

cudaError_t launch_deliver_parcels(const peer_memory_ref& window, const peer::exchange_request& request,
                                   const peer::parcel_layout& at, cudaStream_t stream) {
  return plain_launch(deliver_parcels_kernel, {1, delivering_threads}, stream, window, request, at);
}

}  // namespace tmap::kernels
