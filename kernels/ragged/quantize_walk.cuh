// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the workers of the quantizing kernels walk over the pieces of all tensors.

#include "kernels/ragged/lane_ring.cuh"
#include "kernels/ragged/quantize_rows.cuh"
#include "kernels/values/chunk_scales.cuh"

#include <tmap/device/tile_shares.cuh>

#include <cstdint>

namespace tmap::kernels {

inline constexpr std::uint32_t width = tmap::detail::scale_block_width;

// More threads would have fewer registers each, and then wait for what they have loaded sooner.
inline constexpr std::uint32_t threads_per_multiprocessor = 512;
inline constexpr std::uint32_t row_threads = 128;
inline constexpr std::uint32_t row_warps = row_threads / 32;

template <value_type From>
inline constexpr std::uint32_t square_threads = half_warp* width / chunk<From>::most;

/// With fewer pieces a tensor, entering a tensor at each turn costs more than turns gain.
inline constexpr std::uint64_t least_turns = 64;

/// The work of one of a launch's equal workers.
struct worker_share {
  piece_steps pieces;
  piece_share within;  ///< the same in each piece
};

/// Returns the pieces of a worker that shares none.
__device__ inline piece_steps pieces_of(const planned_work& work, std::uint64_t worker, std::uint64_t workers) {
  const std::uint64_t pieces = work.ends[work.count - 1];
  if (takes_turns(work, pieces, least_turns)) return {worker, pieces, workers};
  const device::tile_range run = device::tile_shares(pieces, workers).run(worker);
  return {run.first, run.last, 1};
}

/// Returns the work of a worker. With few pieces, several workers share each.
__device__ inline worker_share share_of(const planned_work& work, std::uint32_t worker, std::uint32_t workers) {
  const std::uint64_t pieces = work.ends[work.count - 1];
  if (pieces == 0 || 2 * pieces > workers) return {pieces_of(work, worker, workers), {0, 1}};
  const std::uint32_t each = workers / static_cast<std::uint32_t>(pieces);
  const std::uint32_t number = worker / static_cast<std::uint32_t>(pieces);
  const std::uint32_t piece = worker % static_cast<std::uint32_t>(pieces);
  return {{piece, number < each ? piece + 1 : piece, 1}, {number, each}};
}

/// The shared memory of a warp that walks over pieces. Bodies read their part from it, so that
/// their registers are their own.
struct walk_shared {
  planned_tensor record;
  scaled_rows part;
};

/// Calls `use(tensor, number of the piece in it)` for each piece. All lanes of the warp call it.
template <class Use>
__device__ void visit_pieces(const planned_work& work, walk_shared& shared, const piece_steps& steps, const Use& use) {
  piece_walk walk(work, &shared.record, steps.step);
  for (std::uint64_t g = steps.first; g < steps.last; g += steps.step) {
    walk.go_to(g);
    use(walk.tensor(), walk.within(g));
  }
}

/// Writes the part of a tensor that the warp works on next.
template <value_type From, bool IsTurned = false>
__device__ void set_part(scaled_rows& shared, const planned_work& work, const planned_tensor& tensor,
                         const row_range& range, const box_extents& block) {
  const planned_scales& scales = work.scales[tensor.tensor];
  const scaled_rows part = place_range<ragged::value_bytes(From), IsTurned>(tensor, scales, range, block);
  __syncwarp();
  if (threadIdx.x % 32 == 0) shared = part;
  __syncwarp();
}

/// Returns the largest tops of all warps of the block. Calls take turns with two sets of `shared`.
template <std::uint32_t Warps>
__device__ std::uint32_t join_tops_of_block(std::uint32_t mine, std::uint32_t* shared) {
  const std::uint32_t of_warp = join_tops<32>(mine);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = of_warp;
  __syncthreads();
  std::uint32_t top = 0;
#pragma unroll
  for (std::uint32_t w = 0; w < Warps; ++w) top = max(top, shared[w]);
  return top;
}

}  // namespace tmap::kernels
