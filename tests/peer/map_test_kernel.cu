// SPDX-License-Identifier: Apache-2.0
#include "peer/map_test_kernel.hpp"

#include "kernels/load_kernel.hpp"
#include "kernels/peer/map_self_test.cuh"

namespace tmap::testing {
namespace {

__global__ void __launch_bounds__(device::warp_lanes)
    map_test_kernel(const __grid_constant__ peer_memory_ref window, const __grid_constant__ peer_memory_ref mapped,
                    const __grid_constant__ map_template base, std::uint64_t patience) {
  __shared__ kernels::peer::map_test_memory memory;
  device::peer_link link(window);
  if (threadIdx.x == 0) {
    memory.loads.init(1);
    device::fence_barrier_init();
  }
  const peer_verdict found = kernels::peer::self_test_maps(link, mapped, base, memory, link.now() + patience);
  if (threadIdx.x == 0) static_cast<void>(tmap::detail::peer::report(link, found));
}

}  // namespace

cudaError_t load_map_test() {
  return kernels::load(map_test_kernel);
}

void launch_map_test(const peer_memory_ref& window, const peer_memory_ref& mapped, const map_template& base,
                     std::uint64_t patience, cudaStream_t stream) {
  map_test_kernel<<<1, device::warp_lanes, 0, stream>>>(window, mapped, base, patience);
}

}  // namespace tmap::testing
