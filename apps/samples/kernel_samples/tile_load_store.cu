// SPDX-License-Identifier: Apache-2.0
// Multiplies a matrix by two, tile by tile: loads a tile through one map, changes it with ordinary
// instructions, and stores it through another.

#include "apps/samples/kernel_samples/samples.hpp"

#include <tmap/device/tile.cuh>
#include <tmap/make_typed_maps.hpp>

namespace tile_load_store_sample {

constexpr std::uint32_t width = 64, height = 24;

// [kernel]
constexpr std::uint32_t box_width = 32, box_height = 8;
using box = tmap::tile<float, tmap::swizzle::none, box_width, box_height>;

__global__ void twice(const __grid_constant__ tmap::typed_map<box> source,
                      const __grid_constant__ tmap::typed_map<box> target) {
  using namespace tmap::device;
  __shared__ box tile;
  __shared__ tile_barrier barrier;
  const std::int32_t at[] = {static_cast<std::int32_t>(blockIdx.x * box_width),
                             static_cast<std::int32_t>(blockIdx.y * box_height)};
  if (threadIdx.x == 0) {
    barrier.init(1);
    fence_barrier_init();
    expect_and_load(tile, parameter_map(source), at, barrier);
  }
  __syncthreads();
  barrier.wait(0);
  for (std::uint32_t i = threadIdx.x; i < box::elements; i += blockDim.x) tile[i] *= 2;
  fence_shared_writes();  // each thread that wrote, before the barrier that precedes the store
  __syncthreads();
  if (threadIdx.x != 0) return;
  store_tile(parameter_map(target), at, tile);
  commit_stores();
  wait_stores_read<0>();  // shared memory must stay until the store has read it
}
// [kernel]

}  // namespace tile_load_store_sample

bool samples::tile_load_store() {
  using namespace tile_load_store_sample;
  const std::uint64_t dims[] = {width, height};
  const auto numbers = counting<float>(width * height);
  const device_array<float> source(numbers);
  const device_array<float> target(std::vector<float>(width * height, -1));
  // [launch]
  const auto source_map = tmap::typed_map_of<box>(tmap::packed_spec<box>(source.address(), dims));
  const auto target_map = tmap::typed_map_of<box>(tmap::packed_spec<box>(target.address(), dims));
  if (!source_map || !target_map) return false;
  twice<<<dim3(width / box_width, height / box_height), 128>>>(*source_map, *target_map);
  // [launch]
  const auto found = target.read();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] != 2 * numbers[i]) return false;
  }
  return !found.empty();
}
