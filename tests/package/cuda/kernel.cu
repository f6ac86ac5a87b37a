// SPDX-License-Identifier: Apache-2.0
#include "kernel.hpp"

#include <tmap/device/tile.cuh>

namespace {

// [kernel]
__global__ void sum_first_tile(tmap::typed_maps<group_tile> groups, float* sums) {
  using namespace tmap::device;
  __shared__ group_tile tile;
  __shared__ tile_barrier barrier;
  if (threadIdx.x != 0) return;

  barrier.init(1);
  fence_barrier_init();
  expect_and_load(tile, acquire(groups, blockIdx.x), {0, 0}, barrier);
  barrier.wait(0);

  float sum = 0;
  for (unsigned i = 0; i < group_tile::elements; ++i) sum += tile[i];
  sums[blockIdx.x] = sum;
}
// [kernel]

}  // namespace

cudaError_t sum_first_tiles(const tmap::typed_maps<group_tile>& groups, float* sums, cudaStream_t stream) {
  sum_first_tile<<<groups.count(), 32, 0, stream>>>(groups, sums);
  return cudaGetLastError();
}
