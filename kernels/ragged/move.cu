// SPDX-License-Identifier: Apache-2.0
#include "kernels/launch.hpp"
#include "kernels/launch_behind.hpp"
#include "kernels/load_kernel.hpp"
#include "kernels/ragged/granule.cuh"
#include "kernels/ragged/move_pipe.cuh"
#include "kernels/ragged/move_small.cuh"
#include "kernels/ragged/piece_walk.cuh"
#include "kernels/ragged_launch.hpp"

#include <tmap/device/tile_shares.cuh>

namespace tmap::kernels {
namespace {

struct block_memory {
  warp_stage_memory stages[block_warps];
  warp_state warps[block_warps];
  fill_granules fill;
  /// A piece of fill, for elements that divide a granule.
  alignas(granule_bytes) unsigned char filled[stage_bytes];

  __device__ void write_fill(const unsigned char* element, std::uint32_t element_bytes) {
    fill.write(element, element_bytes);
    if (granule_bytes % element_bytes != 0) return;
    for (std::uint32_t i = threadIdx.x; i < stage_bytes; i += block_threads) filled[i] = element[i % element_bytes];
    device::fence_shared_writes();
  }
};
static_assert(sizeof(block_memory) <= tmap::detail::ragged_shared_memory_bytes);

/// One warp's part in an operation.
struct move_worker {
  const planned_work& work;
  std::uint32_t element_bytes;
  const block_memory& memory;
  move_pipe& pipe;

  __device__ void move(const planned_tensor& tensor, std::uint64_t within) const {
    if (tensor.way == route::tensor_map && tensor.source != 0) {
      const tensor_map* const maps = work.maps + 2 * std::uint64_t{tensor.tensor};
      return pipe.move_box(tensor, maps, work.rule, element_bytes, within);
    }
    visit_piece(tensor, work.rule, within, element_bytes, [&](const row_block& block) {
      if (tensor.source == 0) {
        fill(block, tensor.way);
      } else {
        pipe.move(block, tensor.way);
      }
    });
  }

  __device__ void fill(row_block block, route way) const {
    if (way == route::bulk && granule_bytes % element_bytes == 0) {
      pipe.repeat(block, memory.filled);
      block = tails_of(block);
      if (block.bytes == 0) return;
    }
    fill_rows(block, memory.fill, element_bytes, threadIdx.x % 32);
  }
};

// With that many pieces a tensor, the tensors that a walk looks ahead make up at least a turn.
constexpr std::uint64_t least_turn_pieces = 64;

/// Returns whether the tensor in the middle takes maps. Its neighbours then do too, and each turn
/// would have to acquire another map.
__device__ bool goes_through_maps(const planned_work& work, std::uint64_t pieces) {
  if (work.maps == nullptr) return false;
  const std::uint64_t middle = device::find_tensor_warp(work.ends, pieces / 2, 0, work.count - 1);
  return work.tensors[middle].way == route::tensor_map;
}

__device__ piece_steps share_of_warp(const planned_work& work) {
  const std::uint64_t pieces = work.ends[work.count - 1];
  const std::uint64_t workers = std::uint64_t{gridDim.x} * block_warps;
  const std::uint64_t number = std::uint64_t{threadIdx.x / 32} * gridDim.x + blockIdx.x;
  if (takes_turns(work, pieces, least_turn_pieces) && !goes_through_maps(work, pieces)) {
    return {number, pieces, workers};
  }
  const device::tile_range share = device::tile_shares(pieces, workers).run(number);
  return {share.first, share.last, 1};
}

__global__ void __launch_bounds__(block_threads, 1)
    move_kernel(const __grid_constant__ planned_work work, std::uint32_t element_bytes,
                const __grid_constant__ ragged::fill_value fill) {
  extern __shared__ __align__(128) unsigned char dynamic[];
  auto& memory = *reinterpret_cast<block_memory*>(dynamic);
  memory.write_fill(fill.bytes, element_bytes);
  __syncthreads();
  const std::uint32_t warp = threadIdx.x / 32;
  move_pipe pipe(memory.warps[warp], memory.stages[warp], work.rule.map_rank);
  const move_worker worker{work, element_bytes, memory, pipe};

  cudaGridDependencySynchronize();
  piece_steps share = share_of_warp(work);
  if (share.first >= share.last) return;
  // Always called: for a call in a branch, the compiler does without uniform registers, which takes
  // 102 more instructions.
  share.first = move_small_front(work.tensors, work.ends, work.count, share.first,
                                 share.step == 1 ? share.last : share.first, element_bytes);
  if (share.first >= share.last) return;
  piece_walk walk(work, &memory.warps[warp].record, share.step);
  walk.seek(share.first);
  for (std::uint64_t g = share.first; g < share.last; g += share.step) {
    walk.seek_ahead(g);
    worker.move(walk.tensor(), walk.within(g));
  }
  pipe.drain();
}

}  // namespace

piece_rule move_pieces(std::uint32_t element_bytes, std::uint32_t rank) {
  piece_rule rule{};
  rule.piece_elements = piece_bytes / element_bytes / granule_bytes * granule_bytes;
  rule.map_rank = rank;
  // 16 rows of 256 bytes, for which a route by maps is meant.
  for (std::uint32_t axis = 0; axis < rank; ++axis) rule.box_dim[axis] = 1;
  rule.box_dim[0] = 256 / element_bytes;
  if (rank > 1) rule.box_dim[1] = 16;
  return rule;
}

cudaError_t load_move_kernel() {
  return load(move_kernel);
}

cudaError_t launch_move(const planned_work& work, std::uint32_t element_bytes, const ragged::fill_value& fill,
                        const device_shape& device, cudaStream_t stream) {
  const launch_size size{device.multiprocessors, block_threads, sizeof(block_memory)};
  return launch_behind(move_kernel, size, stream, work, element_bytes, fill);
}

}  // namespace tmap::kernels
