// SPDX-License-Identifier: Apache-2.0
// Warps walk the tiles of matrices of different sizes, two of them empty, in equal shares: each
// tile adds the number of elements it has inside to its matrix's sum. How many tiles there are is
// known on the device only.

#include "apps/samples/kernel_samples/samples.hpp"

#include <tmap/device/tile_shares.cuh>
#include <tmap/device/tile_walk.cuh>

namespace tile_walk_sample {

struct box {
  std::uint32_t dim[2];
};

__global__ void count_tiles(const tmap::map_patch* shapes, std::uint64_t count, box tile, std::uint64_t* ends) {
  std::uint64_t end = 0;
  for (std::uint64_t i = 0; i < count; ++i) ends[i] = end += tmap::device::count_tiles<2>(shapes[i], tile.dim);
}

__global__ void sum_tiles(const tmap::map_patch* shapes, const std::uint64_t* ends, std::uint64_t count,
                          const __grid_constant__ box tile, unsigned long long* sums) {
  using namespace tmap::device;
  const std::uint32_t warps = blockDim.x / 32;
  tile_walk<2> walk(shapes, ends, count, tile.dim);
  const tile_range mine = tile_shares(walk.tiles(), gridDim.x * warps).run(blockIdx.x * warps + threadIdx.x / 32);
  if (mine.first == mine.last) return;
  walk.seek_warp(mine.first);
  for (std::uint64_t g = mine.first;;) {
    const std::uint64_t column = walk.coordinates()[0], row = walk.coordinates()[1];
    const std::uint64_t columns = min(shapes[walk.tensor()].global_dim[0] - column, std::uint64_t{tile.dim[0]});
    const std::uint64_t rows = min(shapes[walk.tensor()].global_dim[1] - row, std::uint64_t{tile.dim[1]});
    if (threadIdx.x % 32 == 0) atomicAdd(&sums[walk.tensor()], columns * rows);
    if (++g == mine.last) return;
    walk.advance_warp();
  }
}

}  // namespace tile_walk_sample

bool samples::tile_walk() {
  using namespace tile_walk_sample;
  const std::uint64_t sizes[][2] = {{100, 30}, {0, 5}, {7, 9}, {64, 0}, {1000, 333}};
  std::vector<tmap::map_patch> shapes(5);
  std::vector<unsigned long long> expected;
  for (std::size_t i = 0; i < 5; ++i) {
    for (int axis = 0; axis < 2; ++axis) shapes[i].global_dim[axis] = sizes[i][axis];
    expected.push_back(sizes[i][0] * sizes[i][1]);
  }
  const device_array<tmap::map_patch> patches(shapes);
  const device_array<std::uint64_t> ends(std::vector<std::uint64_t>(5));
  const device_array<unsigned long long> sums(std::vector<unsigned long long>(5));
  count_tiles<<<1, 1>>>(patches.get(), 5, box{{16, 8}}, ends.get());
  sum_tiles<<<7, 64>>>(patches.get(), ends.get(), 5, box{{16, 8}}, sums.get());
  return sums.read() == expected;
}
