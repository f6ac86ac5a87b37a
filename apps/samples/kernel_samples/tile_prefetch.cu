// SPDX-License-Identifier: Apache-2.0
// One thread walks through a batch of matrices. While the current tile is loading, it acquires and
// prefetches the next map and prefetches the next tile into L2.

#include "apps/samples/kernel_samples/samples.hpp"

#include <tmap/device/tile.cuh>
#include <tmap/map_service.hpp>

namespace tile_prefetch_sample {

constexpr std::uint32_t count = 5, size = 64;
using number_tile = tmap::tile<std::uint32_t, tmap::swizzle::none, size>;

__global__ void sum_first_elements(tmap::typed_maps<number_tile> maps, std::uint32_t* sum) {
  using namespace tmap::device;
  __shared__ number_tile tile;
  __shared__ tile_barrier barrier;
  barrier.init(1);
  fence_barrier_init();
  auto next = acquire(maps, 0);
  for (std::uint32_t i = 0; i < count; ++i) {
    expect_and_load(tile, next, {0}, barrier);
    if (i + 1 < count) {
      next = acquire(maps, i + 1);
      prefetch(next);            // the map, into the copy engine's cache
      prefetch_tile(next, {0});  // the tile, into L2
    }
    barrier.wait(i % 2);
    *sum += tile[0];
  }
}

}  // namespace tile_prefetch_sample

bool samples::tile_prefetch() {
  using namespace tile_prefetch_sample;
  const auto numbers = counting<std::uint32_t>(count * size);
  const device_array<std::uint32_t> matrices(numbers);
  const device_array<std::uint32_t> sum(std::vector<std::uint32_t>{0});
  std::vector<tmap::map_patch> patches(count);
  for (std::uint32_t i = 0; i < count; ++i) patches[i].global_address = matrices.address() + i * size * 4;
  const device_array<tmap::map_patch> patches_there(patches);
  const std::uint64_t dims[] = {size};
  const auto base = tmap::make_template(tmap::packed_spec<number_tile>(matrices.address(), dims), tmap::patch_address);
  auto service = tmap::map_service::create();
  if (!base || !service) return false;
  const cuda::stream_ref stream{cudaStream_t{}};
  const auto batch = service->encode(*base, tmap::patch_array{patches_there.get()}, count, {stream});
  if (!batch) return false;
  const auto maps = batch->as<number_tile>();
  if (!maps) return false;
  sum_first_elements<<<1, 1>>>(*maps, sum.get());
  return sum.read() == std::vector<std::uint32_t>{(0 + 1 + 2 + 3 + 4) * size};
}
