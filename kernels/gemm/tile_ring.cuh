// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the warps of a block pass each other: notes on tiles, and stages of operands.

#include <tmap/device/stage_ring.cuh>

#include <cuda/ptx>

#include <cstdint>

#include "kernels/gemm/gemm_group.hpp"

namespace tmap::kernels {

/// One tile, as the finding warp tells it to the loading warp and the consumers, so that neither
/// searching nor reading the group's record holds up a load or a product.
struct tile_note {
  gemm_group record;
  std::uint32_t group;
  std::uint32_t row;      ///< of C, in the group
  std::uint32_t column;   ///< of C
  std::uint32_t columns;  ///< that C has; 0: there is no tile left
  std::uint32_t k_blocks;
  bool is_beside;  ///< the other tile of a pair has the same rows; else it has the same columns
};
/// One that is stored, one that is multiplied, one that is loaded, one that has been found.
inline constexpr std::uint32_t noted_tiles = 4;

struct tile_notes {
  tile_note notes[noted_tiles];
  device::ring_barriers<noted_tiles> barriers;
  device::tile_barrier wanted;  ///< the loading warp soon needs the next note
};

/// Also for what the other block of a pair sends: a wait at the cluster's scope would only add that
/// L1 is emptied, which neither the copy engine nor the tensor cores read through. A debug build
/// ends the kernel where a phase does not come: a hang would say nothing.
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

/// By one thread.
__device__ inline void tell(tile_notes& notes, device::ring_position& at, const tile_note& note) {
  wait_for(notes.barriers.empty[at.stage()], at.parity() ^ 1);
  notes.notes[at.stage()] = note;
  notes.barriers.full[at.stage()].arrive();
  at.advance();
}

}  // namespace tmap::kernels
