// SPDX-License-Identifier: Apache-2.0
#pragma once

// Quantizes blocks of 128 x 128.

#include "kernels/ragged/quantize_walk.cuh"

#include <cstdint>

namespace tmap::kernels {

/// One block, as a thread sees it. Half a warp holds a part of a row.
template <value_type From>
struct square_part {
  static constexpr std::uint32_t slots = chunk<From>::most;

  std::uint64_t source;
  std::uint64_t source_pitch;  ///< of two rows, as all pitches here
  std::uint64_t destination;
  std::uint64_t destination_pitch;
  std::uint64_t scale;
  std::uint32_t in_row;  ///< values of a chunk
  std::uint32_t rows;    ///< from the thread's first one on

  square_part() = default;
  __device__ explicit square_part(const scaled_rows& part)
      : source_pitch(2 * part.source_pitch), destination_pitch(2 * part.destination_pitch), scale(part.scales) {
    const std::uint32_t column = threadIdx.x % half_warp * chunk_values;
    const std::uint32_t first_row = threadIdx.x / 32 * 2 * slots + threadIdx.x % 32 / half_warp;
    source = part.source + first_row * part.source_pitch + column * sizeof(value_word<From>);
    destination = part.destination + first_row * part.destination_pitch + column;
    in_row = chunk_count(column, part.columns);
    rows = first_row < part.rows ? part.rows - first_row : 0;
  }
  __device__ std::uint32_t count(std::uint32_t slot) const { return 2 * slot < rows ? in_row : 0; }

  template <value_type To, bool IsWide>
  __device__ void finish(const lane_chunks<From>& held, bool powers_of_two, std::uint32_t* shared) const {
    std::uint32_t top = 0;
#pragma unroll
    for (std::uint32_t k = 0; k < slots; ++k) top = max(top, held[k].top());
    const auto made = scale_of_top<From, To>(join_tops_of_block<square_threads<From> / 32>(top, shared), powers_of_two);
    if (threadIdx.x == 0) *reinterpret_cast<float*>(scale) = made.scale;
#pragma unroll
    for (std::uint32_t k = 0; k < slots; ++k) {
      held[k].template rounded<To>(made.inverse).template store<IsWide>(destination + k * destination_pitch, count(k));
    }
  }
};

/// Quantizes a block whose rows are not aligned.
template <value_type From, value_type To>
__device__ __noinline__ void quantize_odd_square(const scaled_rows& part, bool powers_of_two, std::uint32_t* shared) {
  const square_part<From> square(part);
  lane_chunks<From> held;
#pragma unroll
  for (std::uint32_t k = 0; k < square.slots; ++k) {
    held[k].template load<false>(square.source + k * square.source_pitch, square.count(k));
  }
  square.template finish<To, false>(held, powers_of_two, shared);
}

template <value_type From, value_type To>
__global__ void __launch_bounds__(square_threads<From>, threads_per_multiprocessor / square_threads<From>)
    quantize_squares_kernel(const __grid_constant__ planned_work work, bool powers_of_two) {
  extern __shared__ uint4 places[];
  const lane_ring<From, square_threads<From>> ring(places);
  constexpr std::uint32_t warps = square_threads<From> / 32;
  static_assert(warps * 2 * chunk<From>::most == width);
  __shared__ walk_shared shared[warps];
  __shared__ std::uint32_t tops[2][warps];
  walk_shared& own = shared[threadIdx.x / 32];
  cudaGridDependencySynchronize();
  std::uint32_t turn = 0;
  std::uint32_t set = 0;
  bool is_loaded = false;
  square_part<From> loaded;
  const auto finish = [&](auto pending) {
    device::wait_copies<decltype(pending)::value>();
    lane_chunks<From> held;
    ring.read(set, held);
    loaded.template finish<To, true>(held, powers_of_two, tops[turn++ % 2]);
  };
  visit_pieces(work, own, pieces_of(work, blockIdx.x, gridDim.x),
               [&](const planned_tensor& tensor, std::uint64_t within) {
                 set_part<From>(own.part, work, tensor, box_range(tensor, within, {width, width}), {width, width});
                 const square_part<From> next(own.part);
                 const bool is_wide = own.part.is_wide();
#pragma unroll
                 for (std::uint32_t k = 0; k < next.slots; ++k) {
                   if (is_wide) ring.load(ring.after(set), k, next.source + k * next.source_pitch, next.count(k) != 0);
                 }
                 device::commit_copies();
                 if (is_loaded) finish(std::integral_constant<int, 1>{});
                 if (!is_wide) quantize_odd_square<From, To>(own.part, powers_of_two, tops[turn++ % 2]);
                 set = ring.after(set);
                 is_loaded = is_wide;
                 loaded = next;
               });
  if (is_loaded) finish(std::integral_constant<int, 0>{});
}

}  // namespace tmap::kernels
