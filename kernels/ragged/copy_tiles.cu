// SPDX-License-Identifier: Apache-2.0
#include "kernels/launch.hpp"
#include "kernels/load_kernel.hpp"

#include <tmap/device/acquire.cuh>
#include <tmap/device/stage_ring.cuh>
#include <tmap/device/tile_copy.cuh>
#include <tmap/device/tile_shares.cuh>
#include <tmap/device/tile_walk.cuh>

#include <new>

namespace tmap::kernels {
namespace {

constexpr std::uint32_t block_threads = 64;  // one warp loads, one stores; one thread of each

/// What the loading thread tells the storing one about a stage.
template <std::uint32_t Rank>
struct store_order {
  device::acquired_map destination;
  std::int32_t coordinates[Rank];
};

/// The block's ring as both threads see it.
template <std::uint32_t Rank>
struct copy_ring {
  device::ring_barriers<max_copy_stages>& barriers;
  store_order<Rank>* orders;
  unsigned char* tiles;
  tile_copy_plan plan;

  __device__ unsigned char* tile(std::uint32_t stage) const { return tiles + stage * plan.stage_bytes; }
};

/// Acquires both maps of a tensor here, as an acquire by the storing thread would wait for its stores.
template <std::uint32_t Rank>
__device__ void load_tiles(const copy_ring<Rank>& ring, device::tile_walk<Rank> walk, device::tile_range range,
                           std::uint32_t tile_bytes, const tile_copy_arguments& arguments) {
  walk.seek(range.first);
  std::uint64_t tensor = walk.tensor();
  device::acquired_map source = device::acquire(&arguments.sources[tensor]);
  device::acquired_map destination = device::acquire(&arguments.destinations[tensor]);
  device::prefetch(destination);
  device::ring_producer<max_copy_stages> producer(ring.barriers, ring.plan.stages);
  for (std::uint64_t g = range.first;;) {
    const std::uint32_t stage = producer.acquire_stage();
    auto* const order = ::new (&ring.orders[stage]) store_order<Rank>{destination, {}};
    for (std::uint32_t axis = 0; axis < Rank; ++axis) order->coordinates[axis] = walk.coordinates()[axis];
    device::tile_barrier& full = producer.announce(tile_bytes);
    device::load_tile<Rank>(ring.tile(stage), source, walk.coordinates(), full);
    if (++g == range.last) return;
    walk.advance();
    if (walk.tensor() == tensor) continue;
    tensor = walk.tensor();
    source = device::acquire(&arguments.sources[tensor]);
    destination = device::acquire(&arguments.destinations[tensor]);
    device::prefetch(destination);
  }
}

template <std::uint32_t Rank>
__device__ void store_tiles(const copy_ring<Rank>& ring, device::tile_range range) {
  device::ring_storer<max_copy_stages> storer(ring.barriers, ring.plan.stages);
  for (std::uint64_t g = range.first; g < range.last; ++g) {
    const std::uint32_t stage = storer.wait_full();
    const store_order<Rank>& order = ring.orders[stage];
    device::store_tile<Rank>(order.destination, order.coordinates, ring.tile(stage));
    storer.store_issued();
  }
  storer.drain();
}

template <std::uint32_t Rank>
__global__ void __launch_bounds__(block_threads)
    copy_tiles_kernel(const __grid_constant__ tile_copy_plan plan, const __grid_constant__ tile_shape shape,
                      const __grid_constant__ tile_copy_arguments arguments) {
  __shared__ device::ring_barriers<max_copy_stages> barriers;
  __shared__ alignas(store_order<Rank>) unsigned char orders[max_copy_stages * sizeof(store_order<Rank>)];
  static_assert(sizeof(barriers) + sizeof(orders) + copy_stage_alignment <= copy_fixed_shared_bytes);
  extern __shared__ unsigned char dynamic[];

  const device::tile_walk<Rank> walk(arguments.extents, arguments.tile_ends, arguments.count, shape.box_dim);
  // Consecutive tiles, so that a block changes tensors, and acquires maps, rarely.
  const device::tile_range range = device::tile_shares(walk.tiles(), gridDim.x).run(blockIdx.x);
  if (range.first == range.last) return;
  if (threadIdx.x == 0) barriers.init(plan.stages);
  __syncthreads();

  // The start of dynamic shared memory is not promised to be aligned as a swizzle needs it.
  const std::uint32_t start = static_cast<std::uint32_t>(__cvta_generic_to_shared(dynamic));
  const std::uint32_t slack = (copy_stage_alignment - start % copy_stage_alignment) % copy_stage_alignment;
  const copy_ring<Rank> ring{barriers, reinterpret_cast<store_order<Rank>*>(orders), dynamic + slack, plan};
  if (threadIdx.x == 0) load_tiles(ring, walk, range, shape.bytes, arguments);
  if (threadIdx.x == 32) store_tiles(ring, range);
}

template <std::uint32_t Rank>
cudaError_t launch(const tile_copy_plan& plan, const tile_shape& shape, const tile_copy_arguments& arguments,
                   cudaStream_t stream) {
  const std::uint32_t shared_bytes = plan.stages * plan.stage_bytes + copy_stage_alignment;
  const cudaError_t raised = cudaFuncSetAttribute(copy_tiles_kernel<Rank>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                  static_cast<int>(shared_bytes));
  if (raised != cudaSuccess) return raised;
  cudaLaunchConfig_t config{};
  config.gridDim = plan.blocks;
  config.blockDim = block_threads;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, copy_tiles_kernel<Rank>, plan, shape, arguments);
}

}  // namespace

cudaError_t copy_kernel_image() {
  return load(copy_tiles_kernel<2>);
}

cudaError_t launch_copy_tiles(const tile_copy_plan& plan, const tile_shape& shape, const tile_copy_arguments& arguments,
                              cudaStream_t stream) {
  switch (shape.rank) {
    case 1: return launch<1>(plan, shape, arguments, stream);
    case 2: return launch<2>(plan, shape, arguments, stream);
    case 3: return launch<3>(plan, shape, arguments, stream);
    case 4: return launch<4>(plan, shape, arguments, stream);
    default: return launch<5>(plan, shape, arguments, stream);
  }
}

}  // namespace tmap::kernels
