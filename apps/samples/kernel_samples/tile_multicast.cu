// SPDX-License-Identifier: Apache-2.0
// Reads once for four blocks: the first block of each cluster loads a tile into the shared memory
// of all four, and each multiplies its own numbers by it.

#include "apps/samples/kernel_samples/samples.hpp"

#include <tmap/device/remote_store.cuh>
#include <tmap/device/tile.cuh>
#include <tmap/make_typed_maps.hpp>

namespace tile_multicast_sample {

constexpr std::uint32_t factors = 128, blocks = 8;
constexpr std::uint16_t whole_cluster = 0xf;
using factor_tile = tmap::tile<float, tmap::swizzle::none, factors>;

__global__ void __cluster_dims__(4) multiply(const __grid_constant__ tmap::typed_map<factor_tile> map, float* numbers) {
  using namespace tmap::device;
  __shared__ factor_tile tile;
  __shared__ tile_barrier barrier;
  if (threadIdx.x == 0) {
    barrier.init(1);
    fence_barrier_init();
    barrier.arrive_expect(factor_tile::bytes);  // each block, for its own barrier
  }
  sync_cluster();  // the barriers of all blocks are ready before a copy completes on them
  if (threadIdx.x == 0 && block_of_cluster() == 0) {
    load_tile_multicast(tile, parameter_map(map), {0}, barrier, whole_cluster);
  }
  barrier.wait_cluster(0);
  numbers[blockIdx.x * factors + threadIdx.x] *= tile[threadIdx.x];
}

}  // namespace tile_multicast_sample

bool samples::tile_multicast() {
  using namespace tile_multicast_sample;
  const device_array<float> factor(counting<float>(factors));
  const device_array<float> numbers(std::vector<float>(blocks * factors, 3));
  const std::uint64_t dims[] = {factors};
  const auto map = tmap::typed_map_of<factor_tile>(tmap::packed_spec<factor_tile>(factor.address(), dims));
  if (!map) return false;
  multiply<<<blocks, factors>>>(*map, numbers.get());
  const auto found = numbers.read();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] != 3 * static_cast<float>(i % factors)) return false;
  }
  return !found.empty();
}
