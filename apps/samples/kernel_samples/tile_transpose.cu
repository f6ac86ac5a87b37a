// SPDX-License-Identifier: Apache-2.0
// Transposes a matrix, tile by tile. Warps read columns of a tile. Without a swizzle a column is in
// one bank of shared memory, and the lanes take turns. With one it is spread over eight banks. The
// tile finds its elements in both cases.

#include "apps/samples/kernel_samples/samples.hpp"

#include <tmap/device/tile.cuh>
#include <tmap/make_typed_maps.hpp>

namespace tile_transpose_sample {

constexpr std::uint32_t width = 96, height = 64;

// [kernel]
constexpr std::uint32_t side = 32;
using square = tmap::tile<float, tmap::swizzle::bytes_128, side, side>;

__global__ void transpose(const __grid_constant__ tmap::typed_map<square> source, float* target) {
  using namespace tmap::device;
  __shared__ square tile;
  __shared__ tile_barrier barrier;
  const std::uint32_t left = blockIdx.x * side, top = blockIdx.y * side;
  if (threadIdx.x == 0) {
    barrier.init(1);
    fence_barrier_init();
    expect_and_load(tile, parameter_map(source), {static_cast<int>(left), static_cast<int>(top)}, barrier);
  }
  __syncthreads();
  barrier.wait(0);
  const std::uint32_t row = threadIdx.x % side;
  for (std::uint32_t column = threadIdx.x / side; column < side; column += blockDim.x / side) {
    target[(left + column) * height + top + row] = tile(column, row);  // innermost first
  }
}
// [kernel]

}  // namespace tile_transpose_sample

bool samples::tile_transpose() {
  using namespace tile_transpose_sample;
  const auto numbers = counting<float>(width * height);
  const device_array<float> source(numbers);
  const device_array<float> target(std::vector<float>(width * height, -1));
  const std::uint64_t dims[] = {width, height};
  const auto map = tmap::typed_map_of<square>(tmap::packed_spec<square>(source.address(), dims));
  if (!map) return false;
  transpose<<<dim3(width / side, height / side), 128>>>(*map, target.get());
  const auto found = target.read();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] != numbers[i % height * width + i / height]) return false;
  }
  return !found.empty();
}
