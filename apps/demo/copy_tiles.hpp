// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tensor_map.hpp>
#include <tmap/tensor_spec.hpp>

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tmap::demo {

/// Orders one tile from the kernel. Orders lie in device memory.
struct tile_order {
  std::int32_t at[max_rank];
  std::uint32_t rank;
  std::uint32_t map;            ///< index of the tensor's map
  std::uint32_t barrier_bytes;  ///< that the load brings
  std::uint32_t shared_bytes;   ///< that the tile takes, a multiple of 16
  std::uint64_t offset;         ///< in the array of tiles
};

/// Loads each tile through its map and copies its shared memory to `tiles`, a block a tile. No tile
/// takes more than `shared_bytes`.
cudaError_t copy_tiles(const tensor_map* maps, const tile_order* orders, std::uint32_t count,
                       std::uint32_t shared_bytes, unsigned char* tiles, cudaStream_t stream);

}  // namespace tmap::demo
