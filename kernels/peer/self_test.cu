// SPDX-License-Identifier: Apache-2.0
#include <tmap/device/peer_link.cuh>
#include <tmap/device/warp.cuh>

#include "kernels/load_kernel.hpp"
#include "kernels/peer/map_self_test.cuh"
#include "kernels/peer/plain_launch.hpp"
#include "kernels/peer/protocol_self_test.hpp"
#include "kernels/peer_launch.hpp"

namespace tmap::kernels {
namespace {

/// Runs in one warp. One thread tests bytes, then all lanes make maps, and the thread tests these.
/// `base` has the shape of `map_test_spec`.
__global__ void __launch_bounds__(device::warp_lanes)
    self_test_kernel(const __grid_constant__ peer_memory_ref window, const __grid_constant__ map_template base,
                     std::uint64_t patience) {
  __shared__ alignas(128) unsigned char bytes[peer::self_test_bytes];
  __shared__ peer::map_test_memory memory;
  __shared__ device::tile_barrier gets;
  device::peer_link link(window, bytes, &gets);
  const std::uint64_t deadline = link.now() + patience;
  peer_verdict of_bytes{};
  if (device::lane_index() == 0) {
    gets.init(1);
    memory.loads.init(1);
    device::fence_barrier_init();
    of_bytes = peer::self_test(link, peer::self_test_bytes, deadline);
  }
  __syncwarp();
  // Wrong bytes end nothing: the other ranks still wait for this one. A broken group ends the next
  // barrier at once.
  const peer_verdict of_maps = peer::self_test_maps(link, window, base, memory, deadline);
  if (device::lane_index() != 0 || of_bytes.status != peer_status::ok) return;
  static_cast<void>(peer::report(link, of_maps));
}

}  // namespace

cudaError_t load_self_test_kernel() {
  return load(self_test_kernel);
}

cudaError_t launch_peer_self_test(const peer_memory_ref& window, const map_template& base, std::uint64_t patience,
                                  cudaStream_t stream) {
  return plain_launch(self_test_kernel, {1, device::warp_lanes}, stream, window, base, patience);
}

}  // namespace tmap::kernels
