// SPDX-License-Identifier: Apache-2.0
#include "kernel.hpp"

#include <tmap/device/acquire.cuh>
#include <tmap/device/tile_copy.cuh>

namespace {

// [kernel]
__global__ void sum_first_tile(tmap::map_batch_ref groups, float* sums) {
  using namespace tmap::device;
  alignas(128) __shared__ float tile[box_rows * columns];
  __shared__ tile_barrier barrier;
  if (threadIdx.x != 0) return;

  barrier.init(1);
  fence_barrier_init();
  const acquired_map map = acquire(groups, blockIdx.x);
  barrier.arrive_expect(sizeof(tile));
  load_tile<2>(tile, map, {0, 0}, barrier);
  barrier.wait(0);

  float sum = 0;
  for (float value : tile) sum += value;
  sums[blockIdx.x] = sum;
}
// [kernel]

}  // namespace

cudaError_t sum_first_tiles(const tmap::map_batch_ref& groups, float* sums, cudaStream_t stream) {
  sum_first_tile<<<groups.count, 32, 0, stream>>>(groups, sums);
  return cudaGetLastError();
}
