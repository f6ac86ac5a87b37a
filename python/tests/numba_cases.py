# SPDX-License-Identifier: Apache-2.0
"""A kernel of Numba that loads the first tile of each tensor through the maps of a batch."""
from numba import config, cuda

import first_tiles
import tmap

SOURCE = r"""
#include <tmap/device/tile_copy.cuh>

extern "C" __device__ float element_of(unsigned long long slots, unsigned long long statuses, unsigned count,
                                       unsigned map) {
  using namespace tmap::device;
  __shared__ alignas(128) float tile[4][64];
  __shared__ tile_barrier loaded;
  const tmap::map_batch_ref batch{reinterpret_cast<const tmap::tensor_map*>(slots),
                                  reinterpret_cast<const tmap::map_status*>(statuses), nullptr, count, 0, nullptr};
  if (!batch.status(map).is_good()) return NOT_GOOD;
  if (threadIdx.x == 0) {
    loaded.init(1);
    fence_barrier_init();
    loaded.arrive_expect(sizeof(tile));
    load_tile(tile, acquire(batch, map), {0, 0}, loaded);
  }
  __syncthreads();
  loaded.wait(0);
  return tile[threadIdx.x / 64][threadIdx.x % 64];
}
""".replace("NOT_GOOD", f"{first_tiles.NOT_GOOD}f")


def kernel():
    config.CUDA_NVRTC_EXTRA_SEARCH_PATHS = tmap.include_dir()
    element_of = cuda.declare_device("element_of", "float32(uint64, uint64, uint32, uint32)",
                                     link=cuda.CUSource(SOURCE), abi="c")

    @cuda.jit
    def load_first_tiles(slots, statuses, count, shift, tiles):
        block = cuda.blockIdx.x
        tiles[block, cuda.threadIdx.x] = element_of(slots, statuses, count, (block + shift) % count)

    return load_first_tiles
