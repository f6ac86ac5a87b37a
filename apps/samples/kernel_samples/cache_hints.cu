// SPDX-License-Identifier: Apache-2.0
// Computes y = x * factors. Each number of x and y is used once, the factors by every block: L2
// evicts the stream first and the factors last.

#include "apps/samples/kernel_samples/samples.hpp"

#include <tmap/device/bulk_copy.cuh>
#include <tmap/device/tile_copy.cuh>
#include <tmap/encode.hpp>

namespace cache_hints_sample {

constexpr std::uint32_t width = 256, blocks = 16;

__global__ void scale(const __grid_constant__ tmap::tensor_map numbers, const float* factors) {
  using namespace tmap::device;
  alignas(128) __shared__ float tile[width];
  alignas(128) __shared__ float factor[width];
  __shared__ tile_barrier barrier;
  const std::int32_t at[] = {0, static_cast<std::int32_t>(blockIdx.x)};
  const cache_hint once = make_cache_hint<l2_eviction::first>();
  if (threadIdx.x == 0) {
    barrier.init(1);
    fence_barrier_init();
    barrier.arrive_expect(sizeof(tile) + sizeof(factor));
    load_tile(tile, parameter_map(numbers), at, barrier, once);
    load_bytes(factor, factors, sizeof(factor), barrier, make_cache_hint<l2_eviction::last>());
  }
  __syncthreads();
  barrier.wait(0);
  tile[threadIdx.x] *= factor[threadIdx.x];
  fence_shared_writes();
  __syncthreads();
  if (threadIdx.x != 0) return;
  store_tile(parameter_map(numbers), at, tile, once);
  commit_stores();
  wait_stores_read<0>();
}

}  // namespace cache_hints_sample

bool samples::cache_hints() {
  using namespace cache_hints_sample;
  const device_array<float> numbers(std::vector<float>(blocks * width, 2));
  const device_array<float> factors(counting<float>(width));
  const std::uint64_t dims[] = {width, blocks};
  const std::uint32_t box[] = {width, 1};
  const auto map = tmap::encode(tmap::packed_spec(tmap::element_type::f32, numbers.address(), dims, box));
  if (!map) return false;
  scale<<<blocks, width>>>(*map, factors.get());
  const auto found = numbers.read();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] != 2 * static_cast<float>(i % width)) return false;
  }
  return !found.empty();
}
