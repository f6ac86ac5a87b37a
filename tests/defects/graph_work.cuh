// SPDX-License-Identifier: Apache-2.0
#pragma once

// Implements the device side of the graph test. Each replay first writes new addresses, shapes and
// changed indices into the same arrays. All of them follow from the replay's number, which is in
// device memory, too, so that the host does nothing between replays.

#include <tmap/map_batch.hpp>
#include <tmap/map_patch.hpp>

#include "defects/consume_lines.cuh"

namespace tmap::testing {

inline constexpr std::uint32_t graph_maps = 64;
inline constexpr std::uint32_t graph_changes = 16;
inline constexpr std::uint32_t graph_sources = 3;  ///< arrays of patches: two batches, and an update of the first
inline constexpr std::uint32_t graph_lines = 256;

struct graph_arrays {
  const std::uint32_t* lines;  ///< `graph_lines` of them, line i of tag i + 1
  std::uint32_t* replay;
  map_patch* patches;      ///< [source][map]
  line_use* uses;          ///< the uses that the patches ask for
  line_use* updated_uses;  ///< the uses of the first batch after its update
  std::uint32_t* changed;  ///< `graph_changes` indices
  consumed_lines* found;

  __host__ __device__ map_patch* patches_of(std::uint32_t source) const { return patches + source * graph_maps; }
  __host__ __device__ line_use* uses_of(std::uint32_t source) const { return uses + source * graph_maps; }
};

__device__ inline std::uint32_t scramble(std::uint32_t value) {
  value = (value ^ value >> 16) * 0x7feb352du;
  value = (value ^ value >> 15) * 0x846ca68bu;
  return value ^ value >> 16;
}

/// Prepares the next replay, with one block of `graph_maps` threads.
static __global__ void begin_replay(graph_arrays arrays) {
  const std::uint32_t i = threadIdx.x;
  const std::uint32_t replay = *arrays.replay;
  __syncthreads();
  for (std::uint32_t source = 0; source < graph_sources; ++source) {
    const std::uint32_t choice = scramble(scramble(replay) + source * graph_maps + i);
    const std::uint32_t line = choice % graph_lines;
    const line_use use{line + 1, 1 + (choice >> 16) % line_elements};
    map_patch& patch = arrays.patches_of(source)[i];
    patch.global_address = reinterpret_cast<std::uint64_t>(arrays.lines + line * line_elements);
    patch.global_dim[0] = use.dim;
    arrays.uses_of(source)[i] = use;
  }
  arrays.updated_uses[i] = arrays.uses_of(0)[i];
  __syncthreads();
  if (i < graph_changes) {
    const std::uint32_t index = (replay + 5 * i) % graph_maps;  // 5 and 64 are coprime, so all indices differ
    arrays.changed[i] = index;
    arrays.updated_uses[index] = arrays.uses_of(2)[index];
  }
  if (i == 0) *arrays.replay = replay + 1;
}

}  // namespace tmap::testing
