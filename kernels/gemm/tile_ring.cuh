// SPDX-License-Identifier: Apache-2.0
#pragma once

// The rings through which the warps of a block pass each other notes on tiles and stages of
// operands.

#include <tmap/device/stage_ring.cuh>

#include <cuda/ptx>

#include <cstdint>

#include "kernels/gemm/gemm_group.hpp"

namespace tmap::kernels {

/// One tile. The finding warp passes it to the loading warp and the consumers, so that neither the
/// search nor reading the group's record delays a load or a product.
struct tile_note {
  gemm_group record;
  std::uint32_t group;
  std::uint32_t row;      ///< of C, in the group
  std::uint32_t column;   ///< of C
  std::uint32_t columns;  ///< that C has; 0: there is no tile left
  std::uint32_t k_blocks;
  bool is_beside;  ///< the other tile of a pair has the same rows; else it has the same columns
};
/// One tile is being stored, one multiplied, one loaded, and one has been found.
inline constexpr std::uint32_t noted_tiles = 4;

struct tile_notes {
  tile_note notes[noted_tiles];
  device::ring_barriers<noted_tiles> barriers;
  /// The loading warp will soon need the next note. Gathering warps have read the tile's rows.
  device::tile_barrier wanted;
};

/// Waits for a phase, also for data that the other block of a pair sends. A wait at cluster scope
/// would also invalidate L1, which neither the copy engine nor the tensor cores read. A debug build
/// ends the kernel if the phase never completes, as a hang explains nothing.
__device__ inline void wait_for(device::tile_barrier& barrier, std::uint32_t parity) {
#ifdef NDEBUG
  barrier.wait(parity);
#else
  constexpr std::uint32_t most_tries = 10'000'000;
  for (std::uint32_t tries = 0; !cuda::ptx::mbarrier_try_wait_parity(barrier.word(), parity); ++tries) {
    if (tries == most_tries) __trap();
  }
#endif
}

/// Passes a note to its readers. One thread calls it.
__device__ inline void pass_on(tile_notes& notes, device::ring_position& at, const tile_note& note) {
  wait_for(notes.barriers.empty[at.stage()], at.parity() ^ 1);
  notes.notes[at.stage()] = note;
  notes.barriers.full[at.stage()].arrive();
  at.advance();
}

}  // namespace tmap::kernels
