// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/spec.h>

/// @file
/// The copy engine on the CPU. simulator.hpp describes it and the failures of the functions.

#ifdef __cplusplus
extern "C" {
#endif

/// A piece of simulated global memory: `data` stands at device address `base`. Its layout never
/// changes.
typedef struct tmap_memory_window {
  uint64_t base;
  void* data;
  uint64_t bytes;
} tmap_memory_window;

/// `tmap::reduction`.
enum {
  TMAP_REDUCE_ADD = 0,
  TMAP_REDUCE_MIN = 1,
  TMAP_REDUCE_MAX = 2,
  TMAP_REDUCE_INC = 3,
  TMAP_REDUCE_DEC = 4,
  TMAP_REDUCE_AND = 5,
  TMAP_REDUCE_OR = 6,
  TMAP_REDUCE_XOR = 7
};

/// One tile: `rank` coordinates, innermost first, and the bytes that stand for shared memory at
/// `shared_address`. The functions below read the map of 128 bytes as the hardware does.
typedef struct tmap_tile {
  uint32_t struct_size;
  uint32_t rank;
  int32_t coordinates[TMAP_MAX_RANK];
  uint32_t shared_address;
  void* data;  ///< not written by a store or a reduction
  uint64_t bytes;
} tmap_tile;

/// Returns the bytes that a load of `spec` brings and the shared memory that its tile takes
/// (`tmap::tile_bytes`, `tmap::tile_footprint_bytes`). Pure.
/// @fails `TMAP_INVALID_ARGUMENT`.
TMAP_API tmap_status tmap_tile_sizes(const tmap_tensor_spec* spec, uint64_t* bytes, uint64_t* footprint);

/// A load that fails may have filled some of the tile. `received` gets the bytes that the barrier
/// receives; it may be null. `memory` has `memory_count` pieces.
TMAP_API tmap_status tmap_simulate_load(const tmap_tensor_map* map, const tmap_memory_window* memory,
                                        uint32_t memory_count, const tmap_tile* tile, uint64_t* received);
/// These may have written some bytes when they fail. `operation` is TMAP_REDUCE_*.
TMAP_API tmap_status tmap_simulate_store(const tmap_tensor_map* map, const tmap_memory_window* memory,
                                         uint32_t memory_count, const tmap_tile* tile);
TMAP_API tmap_status tmap_simulate_reduce(uint32_t operation, const tmap_tensor_map* map,
                                          const tmap_memory_window* memory, uint32_t memory_count,
                                          const tmap_tile* tile);

#ifdef __cplusplus
}
#endif
