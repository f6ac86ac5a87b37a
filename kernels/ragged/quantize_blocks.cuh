// SPDX-License-Identifier: Apache-2.0
#pragma once

// Quantizes blocks of 1 x 128.

#include "kernels/ragged/quantize_walk.cuh"
#include "kernels/ragged/small_divisor.cuh"

#include <cstdint>

namespace tmap::kernels {

/// The blocks of some rows, as a lane sees them. With `IsDense`, nothing lies between them on
/// either side.
template <value_type From, bool IsDense>
struct lane_blocks {
  static constexpr std::uint32_t element_bytes = sizeof(value_word<From>);

  scaled_rows part;
  std::uint32_t columns;
  std::uint32_t per_row;
  std::uint32_t count;
  small_divisor row_of_block;
  std::uint32_t half;   ///< of the warp: every other block is its own
  std::uint32_t place;  ///< of the lane's values in a block

  __device__ explicit lane_blocks(const scaled_rows& rows)
      : part(rows),
        columns(static_cast<std::uint32_t>(rows.columns)),
        per_row((columns + width - 1) / width),
        count(rows.rows * per_row),
        row_of_block(per_row),
        half(threadIdx.x % 32 / half_warp),
        place(threadIdx.x % half_warp * chunk_values) {}

  /// Returns the values of the lane in block `block`.
  __device__ std::uint32_t values(std::uint32_t block) const {
    if (block >= count) return 0;
    return IsDense ? chunk_values : chunk_count(column(block), columns);
  }
  /// The blocks of a lane's batch are `first`, `first` + 2, ...
  __device__ std::uint64_t source(std::uint32_t first, std::uint32_t k) const {
    return address(part.source, part.source_pitch, element_bytes, first, k);
  }
  __device__ std::uint64_t destination(std::uint32_t first, std::uint32_t k) const {
    return address(part.destination, part.destination_pitch, 1, first, k);
  }
  __device__ float* scale(std::uint32_t block) const {
    const std::uint32_t row = row_of_block(block);
    return reinterpret_cast<float*>(part.scales + row * part.scale_pitch + (block - row * per_row) * part.scale_step);
  }

 private:
  __device__ std::uint32_t column(std::uint32_t block) const {
    return (block - row_of_block(block) * per_row) * width + place;
  }
  __device__ std::uint64_t address(std::uint64_t begin, std::uint64_t pitch, std::uint32_t bytes, std::uint32_t first,
                                   std::uint32_t k) const {
    if constexpr (IsDense) return begin + std::uint64_t{first * width + place} * bytes + k * 2 * width * bytes;
    const std::uint32_t block = first + 2 * k;
    return begin + row_of_block(block) * pitch + std::uint64_t{column(block)} * bytes;
  }
};

/// Quantizes the blocks of some rows by a warp.
template <value_type From, value_type To, bool IsWide, bool IsDense>
__device__ __noinline__ void quantize_parts(const scaled_rows& part, const lane_ring<From, row_threads> ring,
                                            piece_share share, bool powers_of_two) {
  constexpr std::uint32_t batch = chunk<From>::most;  // blocks that half a warp holds at once
  const lane_blocks<From, IsDense> blocks(part);
  const std::uint32_t turns = (blocks.count + 2 * batch - 1) / (2 * batch);
  const auto finish = [&](const lane_chunks<From>& held, std::uint32_t turn) {
    const std::uint32_t first = turn * 2 * batch + blocks.half;
    std::uint32_t tops[batch];
#pragma unroll
    for (std::uint32_t k = 0; k < batch; ++k) tops[k] = held[k].top();
    const auto made = scale_of_top<From, To>(join_tops_of_blocks(tops), powers_of_two);
    const std::uint32_t scaled = first + 2 * block_of_lane<batch>();
    if (threadIdx.x % (half_warp / batch) == 0 && scaled < blocks.count) *blocks.scale(scaled) = made.scale;
#pragma unroll
    for (std::uint32_t k = 0; k < batch; ++k) {
      const float factor = __shfl_sync(~0u, made.inverse, blocks.half * half_warp + k * (half_warp / batch));
      const std::uint32_t values = blocks.values(first + 2 * k);
      held[k].template rounded<To>(factor).template store<IsWide>(blocks.destination(first, k), values);
    }
  };
  if constexpr (IsWide) {
    const auto load = [&](std::uint32_t set, std::uint32_t turn) {
      const std::uint32_t first = turn * 2 * batch + blocks.half;
#pragma unroll
      for (std::uint32_t k = 0; k < batch; ++k) {
        ring.load(set, k, blocks.source(first, k), blocks.values(first + 2 * k) != 0);
      }
    };
    load_ahead(ring, share, turns, load, finish);
  } else {
    for (std::uint32_t turn = share.number; turn < turns; turn += share.count) {
      const std::uint32_t first = turn * 2 * batch + blocks.half;
      lane_chunks<From> held;
#pragma unroll
      for (std::uint32_t k = 0; k < batch; ++k) {
        held[k].template load<false>(blocks.source(first, k), blocks.values(first + 2 * k));
      }
      finish(held, turn);
    }
  }
}

template <value_type From, value_type To>
__global__ void __launch_bounds__(row_threads, threads_per_multiprocessor / row_threads)
    quantize_parts_kernel(const __grid_constant__ planned_work work, bool powers_of_two) {
  extern __shared__ uint4 places[];
  __shared__ walk_shared shared[row_warps];
  const lane_ring<From, row_threads> ring(places);
  const std::uint32_t warp = threadIdx.x / 32;
  walk_shared& own = shared[warp];
  cudaGridDependencySynchronize();
  const worker_share share = share_of(work, warp * gridDim.x + blockIdx.x, gridDim.x * row_warps);
  visit_pieces(work, own, share.pieces, [&](const planned_tensor& tensor, std::uint64_t within) {
    visit_row_ranges(tensor, work.rule, within, [&](const row_range& range) {
      set_part<From>(own.part, work, tensor, range, {width, 1});
      if (own.part.is_dense(width, sizeof(value_word<From>))) {
        quantize_parts<From, To, true, true>(own.part, ring, share.within, powers_of_two);
      } else if (own.part.is_wide()) {
        quantize_parts<From, To, true, false>(own.part, ring, share.within, powers_of_two);
      } else {
        quantize_parts<From, To, false, false>(own.part, ring, share.within, powers_of_two);
      }
    });
  });
}

}  // namespace tmap::kernels
