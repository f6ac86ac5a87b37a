# SPDX-License-Identifier: Apache-2.0
"""A kernel that is compiled at run time: it loads the first tile of each tensor through the maps of
a batch."""
import struct

import support

SIZES = (40, 0, 3, 57)
BOX = (4, 64)
POISON, NOT_GOOD = 77.0, -1.0
SOURCE = r"""
#include <tmap/device/tile_copy.cuh>

__device__ void load_first_tile(const tmap::map_batch_ref& batch, float* tiles) {
  using namespace tmap::device;
  __shared__ alignas(128) float tile[4][64];
  __shared__ tile_barrier loaded;
  const bool good = batch.status(blockIdx.x).is_good();
  if (threadIdx.x == 0 && good) {
    loaded.init(1);
    fence_barrier_init();
    loaded.arrive_expect(sizeof(tile));
    load_tile(tile, acquire(batch, blockIdx.x), {0, 0}, loaded);
  }
  __syncthreads();
  if (good) loaded.wait(0);
  for (unsigned i = threadIdx.x; i < 4 * 64; i += blockDim.x) tiles[4 * 64 * blockIdx.x + i] = good ? tile[i / 64][i % 64] : -1;
}

extern "C" __global__ void by_value(tmap::map_batch_ref batch, float* tiles) { load_first_tile(batch, tiles); }

extern "C" __global__ void by_members(const tmap::tensor_map* slots, const tmap::map_status* statuses,
                                      const unsigned* indices, unsigned count, unsigned generation,
                                      const tmap::slot_record* records, float* tiles) {
  load_first_tile({slots, statuses, indices, count, generation, records}, tiles);
}
"""


def value_of(row, column):
    return float(64 * row + column)


def expected():
    """The bytes of the tiles, and of one more that no block writes. Rows beyond a tensor are 0."""
    tiles = []
    for begin, size in zip((0, *support.ends_of(SIZES)), SIZES):
        tiles += [value_of(begin + row, column) if row < size else 0.0 for row in range(4) for column in range(64)] \
            if size else [NOT_GOOD] * 256
    tiles += [POISON] * 256
    return struct.pack(f"{len(tiles)}f", *tiles)
