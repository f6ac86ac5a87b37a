// SPDX-License-Identifier: Apache-2.0
#include <tmap/device/acquire.cuh>
#include <tmap/device/tile_copy.cuh>

#include "apps/demo/copy_tiles.hpp"

namespace tmap::demo {
namespace {

constexpr std::uint32_t threads = 128;
constexpr std::uint32_t alignment = 1024;  // one repeat of the widest swizzle
constexpr std::uint32_t poisoned_word = 0xA5A5A5A5;

template <std::uint32_t Rank>
__device__ void load(void* shared, device::acquired_map map, const std::int32_t (&at)[max_rank],
                     device::tile_barrier& barrier) {
  std::int32_t coordinates[Rank];
  for (std::uint32_t axis = 0; axis < Rank; ++axis) coordinates[axis] = at[axis];
  device::load_tile(shared, map, coordinates, barrier);
}

__device__ void load_any(void* shared, device::acquired_map map, const tile_order& order,
                         device::tile_barrier& barrier) {
  switch (order.rank) {
    case 1: return load<1>(shared, map, order.at, barrier);
    case 2: return load<2>(shared, map, order.at, barrier);
    case 3: return load<3>(shared, map, order.at, barrier);
    case 4: return load<4>(shared, map, order.at, barrier);
    default: return load<5>(shared, map, order.at, barrier);
  }
}

__global__ void __launch_bounds__(threads)
    copy_tile(const tensor_map* maps, const tile_order* orders, unsigned char* tiles) {
  extern __shared__ __align__(alignment) unsigned char shared[];
  __shared__ device::tile_barrier barrier;
  const tile_order& order = orders[blockIdx.x];
  auto* words = reinterpret_cast<uint4*>(shared);
  const std::uint32_t count = order.shared_bytes / sizeof(uint4);
  for (std::uint32_t i = threadIdx.x; i < count; i += threads) {
    words[i] = {poisoned_word, poisoned_word, poisoned_word, poisoned_word};
  }
  if (threadIdx.x == 0) {
    barrier.init(1);
    device::fence_barrier_init();
  }
  device::fence_shared_writes();
  __syncthreads();
  if (threadIdx.x == 0) {
    const device::acquired_map map = device::acquire(maps + order.map);
    barrier.arrive_expect(order.barrier_bytes);
    load_any(shared, map, order, barrier);
  }
  barrier.wait(0);
  auto* to = reinterpret_cast<uint4*>(tiles + order.offset);
  for (std::uint32_t i = threadIdx.x; i < count; i += threads) to[i] = words[i];
}

}  // namespace

cudaError_t copy_tiles(const tensor_map* maps, const tile_order* orders, std::uint32_t count,
                       std::uint32_t shared_bytes, unsigned char* tiles, cudaStream_t stream) {
  const cudaError_t allowed =
      cudaFuncSetAttribute(copy_tile, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
  if (allowed != cudaSuccess) return allowed;
  copy_tile<<<count, threads, shared_bytes, stream>>>(maps, orders, tiles);
  return cudaGetLastError();
}

}  // namespace tmap::demo
