// SPDX-License-Identifier: Apache-2.0
#pragma once

// One warp's staging tiles, and the stores of the copy engine that read them. A store is under way
// while the next tile is staged.

#include <tmap/device/ptx.cuh>
#include <tmap/device/reduce_copy.cuh>
#include <tmap/device/tile_copy.cuh>

#include <cstdint>

#include "kernels/gemm/results/shared_rows.cuh"
#include "kernels/gemm/tile_math.hpp"

namespace tmap::kernels {

class staging_tiles {
 public:
  __device__ explicit staging_tiles(unsigned char* tiles) : tiles_(tiles) {}

  __device__ unsigned char* first() const { return tiles_; }
  __device__ unsigned char* second() const { return tiles_ + strip_bytes; }

  /// Returns the tile that no store reads.
  __device__ unsigned char* take() {
    unsigned char* const tile = tiles_ + next_ * strip_bytes;
    next_ = (next_ + 1) % staged_results;
    wait<staged_results - 1>();
    return tile;
  }

  /// Returns the tile that two warps fill, the first one of one of them. All stores have read their
  /// tiles. The next tile that `take` returns is the second one.
  __device__ unsigned char* take_common(const row_partner& partner) {
    next_ = 1;
    return partner.common_tile();
  }

  /// Waits until all but the newest `Pending` stores have read their tiles.
  template <int Pending>
  static __device__ void wait() {
    if (device::ptx::elect_one()) device::wait_stores_read<Pending>();
    __syncwarp();
  }

  /// Commits an empty group of stores for a tile that the warp stored itself. `take` counts one
  /// group for each tile. Without this one, it would return a tile that an older store through a
  /// map still reads.
  static __device__ void commit_empty() {
    if (device::ptx::elect_one()) device::commit_stores();
  }

  /// Stores a tile at a place of the map's tensor.
  static __device__ void store(const device::acquired_map& map, const unsigned char* tile, std::uint32_t column,
                               std::uint32_t row) {
    device::fence_shared_writes();
    __syncwarp();
    if (!device::ptx::elect_one()) return;
    device::store_tile(map, {static_cast<std::int32_t>(column), static_cast<std::int32_t>(row)}, tile);
    device::commit_stores();
  }

  /// Adds a tile of f32 to the map's tensor.
  static __device__ void add(const device::acquired_map& map, const unsigned char* tile, std::uint32_t column,
                             std::uint32_t row) {
    device::fence_shared_writes();
    __syncwarp();
    if (!device::ptx::elect_one()) return;
    device::reduce_tile<reduction::add, element_type::f32>(
        map, {static_cast<std::int32_t>(column), static_cast<std::int32_t>(row)}, tile);
    device::commit_stores();
  }

 private:
  unsigned char* tiles_;
  std::uint32_t next_{};
};

}  // namespace tmap::kernels
