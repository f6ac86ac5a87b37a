// SPDX-License-Identifier: Apache-2.0
// Computes a histogram over blocks. Each block counts its values in a tile in shared memory and
// adds the tile to one in global memory. The copy engine does the additions, for all blocks at
// once.

#include "apps/samples/kernel_samples/samples.hpp"

#include <tmap/device/tile.cuh>
#include <tmap/make_typed_maps.hpp>

namespace tile_reduce_sample {

constexpr std::uint32_t bins = 64, blocks = 20, values_of_block = 1000;
using bin_counts = tmap::tile<std::uint32_t, tmap::swizzle::none, bins>;

__global__ void count(const std::uint32_t* values, const __grid_constant__ tmap::typed_map<bin_counts> histogram) {
  using namespace tmap::device;
  __shared__ bin_counts counts;
  for (std::uint32_t i = threadIdx.x; i < bins; i += blockDim.x) counts[i] = 0;
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < values_of_block; i += blockDim.x) {
    atomicAdd(&counts[values[blockIdx.x * values_of_block + i] % bins], 1);
  }
  fence_shared_writes();
  __syncthreads();
  if (threadIdx.x != 0) return;
  reduce_tile<tmap::reduction::add>(parameter_map(histogram), {0}, counts);
  commit_stores();
  wait_stores_read<0>();
}

}  // namespace tile_reduce_sample

bool samples::tile_reduce() {
  using namespace tile_reduce_sample;
  const auto numbers = counting<std::uint32_t>(blocks * values_of_block);
  std::vector<std::uint32_t> expected(bins, 0);
  for (const std::uint32_t number : numbers) ++expected[number % bins];
  const device_array<std::uint32_t> values(numbers);
  const device_array<std::uint32_t> histogram(std::vector<std::uint32_t>(bins, 0));
  const std::uint64_t dims[] = {bins};
  const auto map = tmap::typed_map_of<bin_counts>(tmap::packed_spec<bin_counts>(histogram.address(), dims));
  if (!map) return false;
  count<<<blocks, 128>>>(values.get(), *map);
  return histogram.read() == expected;
}
