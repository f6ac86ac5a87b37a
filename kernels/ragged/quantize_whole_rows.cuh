// SPDX-License-Identifier: Apache-2.0
#pragma once

// Quantizes rows that have one scale.

#include "kernels/ragged/quantize_walk.cuh"

#include <cstdint>

namespace tmap::kernels {

/// The elements of a row from `first` on that `Threads` threads hold at once, in `Slots` chunks
/// each, as one of them sees them.
template <value_type From, std::uint32_t Threads, std::uint32_t Slots, bool IsWide>
struct row_stretch {
  static constexpr std::uint32_t step = Threads * chunk_values;
  static constexpr std::uint32_t elements = step * Slots;
  using chunks = chunk<From>[Slots];

  std::uint64_t column;  ///< of the thread's first chunk
  std::uint32_t left;    ///< elements from there on

  __device__ row_stretch(std::uint64_t first, std::uint64_t length)
      : column(first + threadIdx.x % Threads * chunk_values) {
    const std::uint64_t after = column < length ? length - column : 0;
    left = after < elements ? static_cast<std::uint32_t>(after) : elements;
  }

  __device__ void load(chunks& held, std::uint64_t source) const {
    constexpr std::uint32_t bytes = sizeof(value_word<From>);
#pragma unroll
    for (std::uint32_t k = 0; k < Slots; ++k) {
      const std::uint32_t count = chunk_count(k * step, left);
      held[k].template load<IsWide>(source + column * bytes + k * step * bytes, count);
    }
  }
  /// Returns the thread's own top.
  __device__ std::uint32_t top(const chunks& held) const {
    std::uint32_t top = 0;
#pragma unroll
    for (std::uint32_t k = 0; k < Slots; ++k) top = max(top, held[k].top());
    return top;
  }
  template <value_type To>
  __device__ void store(const chunks& held, std::uint64_t destination, float factor) const {
#pragma unroll
    for (std::uint32_t k = 0; k < Slots; ++k) {
      const std::uint32_t count = chunk_count(k * step, left);
      held[k].template rounded<To>(factor).template store<IsWide>(destination + column + k * step, count);
    }
  }
};

/// The largest magnitudes that the warps of a block found in a few rows. Two sets take turns.
using row_tops = std::uint32_t[2][2][row_warps];

/// Replaces the largest magnitudes that a warp found by those of the block.
template <std::uint32_t Rows>
__device__ void join_warps(std::uint32_t (&found)[Rows], std::uint32_t (&shared)[2][row_warps]) {
  if (threadIdx.x % 32 == 0) {
#pragma unroll
    for (std::uint32_t r = 0; r < Rows; ++r) shared[r][threadIdx.x / 32] = found[r];
  }
  __syncthreads();
#pragma unroll
  for (std::uint32_t r = 0; r < Rows; ++r) {
#pragma unroll
    for (std::uint32_t w = 0; w < row_warps; ++w) found[r] = max(found[r], shared[r][w]);
  }
}

/// Quantizes groups of `Rows` rows by a warp, or by the block, that can hold them.
template <value_type From, value_type To, std::uint32_t Threads, std::uint32_t Rows, bool IsWide>
__device__ void quantize_held_rows(const scaled_rows& given, const lane_ring<From, row_threads>& ring,
                                   piece_share share, bool powers_of_two, row_tops& tops, std::uint32_t& turn) {
  constexpr std::uint32_t slots = chunk<From>::most / Rows;
  constexpr std::uint32_t step = Threads * chunk_values;
  const scaled_rows part = given;
  const std::uint32_t column = threadIdx.x % Threads * chunk_values;
  const auto length = static_cast<std::uint32_t>(part.columns);
  const std::uint32_t left = column < length ? length - column : 0;
  const std::uint32_t groups = (part.rows + Rows - 1) / Rows;
  const auto count = [&](std::uint32_t row, std::uint32_t k) {
    return row < part.rows ? static_cast<std::uint32_t>(chunk_count(k * step, left)) : 0;
  };
  /// Calls `use(chunk, its address, its values)` for the lane's chunks of a group.
  const auto visit = [&](std::uint32_t group, std::uint64_t address, std::uint64_t pitch, std::uint32_t bytes,
                         const auto& use) {
#pragma unroll
    for (std::uint32_t r = 0; r < Rows; ++r) {
      const std::uint32_t row = group * Rows + r;
      const std::uint64_t at = address + row * pitch + column * bytes;
#pragma unroll
      for (std::uint32_t k = 0; k < slots; ++k) use(r * slots + k, at + k * step * bytes, count(row, k));
    }
  };
  constexpr std::uint32_t bytes = sizeof(value_word<From>);
  const auto finish = [&](const lane_chunks<From>& held, std::uint32_t group) {
    std::uint32_t found[Rows];
#pragma unroll
    for (std::uint32_t r = 0; r < Rows; ++r) {
      std::uint32_t top = 0;
#pragma unroll
      for (std::uint32_t k = 0; k < slots; ++k) top = max(top, held[r * slots + k].top());
      found[r] = join_tops<32>(top);
    }
    if constexpr (Threads > 32) join_warps(found, tops[turn++ % 2]);
    float factors[Rows];
#pragma unroll
    for (std::uint32_t r = 0; r < Rows; ++r) {
      const std::uint32_t row = group * Rows + r;
      const auto made = scale_of_top<From, To>(found[r], powers_of_two);
      factors[r] = made.inverse;
      if (threadIdx.x % Threads == 0 && row < part.rows) {
        *reinterpret_cast<float*>(part.scales + row * part.scale_pitch) = made.scale;
      }
    }
    visit(group, part.destination, part.destination_pitch, 1,
          [&](std::uint32_t i, std::uint64_t address, std::uint32_t values) {
            held[i].template rounded<To>(factors[i / slots]).template store<IsWide>(address, values);
          });
  };
  if constexpr (IsWide) {
    const auto load = [&](std::uint32_t set, std::uint32_t group) {
      visit(group, part.source, part.source_pitch, bytes,
            [&](std::uint32_t i, std::uint64_t address, std::uint32_t values) {
              ring.load(set, i, address, values != 0);
            });
    };
    load_ahead(ring, share, groups, load, finish);
  } else {
    for (std::uint32_t group = share.number; group < groups; group += share.count) {
      lane_chunks<From> held;
      visit(group, part.source, part.source_pitch, bytes,
            [&](std::uint32_t i, std::uint64_t address, std::uint32_t values) {
              held[i].template load<false>(address, values);
            });
      finish(held, group);
    }
  }
}

/// Quantizes a longer row by the block, which reads it twice.
template <value_type From, value_type To, bool IsWide>
__device__ __noinline__ void quantize_long_row(const scaled_rows& part, std::uint32_t row, bool powers_of_two,
                                               std::uint32_t* shared) {
  using stretch = row_stretch<From, row_threads, chunk<From>::most, IsWide>;
  const std::uint64_t source = part.source + row * part.source_pitch;
  std::uint32_t top = 0;
  for (std::uint64_t first = 0; first < part.columns; first += stretch::elements) {
    const stretch here(first, part.columns);
    chunk<From> held[chunk<From>::most];
    here.load(held, source);
    top = max(top, here.top(held));
  }
  const auto made = scale_of_top<From, To>(join_tops_of_block<row_warps>(top, shared), powers_of_two);
  if (threadIdx.x == 0) *reinterpret_cast<float*>(part.scales + row * part.scale_pitch) = made.scale;
  for (std::uint64_t first = 0; first < part.columns; first += stretch::elements) {
    const stretch here(first, part.columns);
    chunk<From> held[chunk<From>::most];
    here.load(held, source);
    here.template store<To>(held, part.destination + row * part.destination_pitch, made.inverse);
  }
}

/// Quantizes rows that `Threads` threads can hold. It takes two short rows at once, because a chunk
/// without elements costs as much as any other.
template <value_type From, value_type To, std::uint32_t Threads, bool IsWide>
__device__ __noinline__ void quantize_short_rows(const scaled_rows& part, const lane_ring<From, row_threads> ring,
                                                 piece_share share, bool powers_of_two, row_tops& tops,
                                                 std::uint32_t& turn) {
  if (IsWide && part.columns <= Threads * chunk_values * chunk<From>::most / 2) {
    quantize_held_rows<From, To, Threads, 2, IsWide>(part, ring, share, powers_of_two, tops, turn);
  } else {
    quantize_held_rows<From, To, Threads, 1, IsWide>(part, ring, share, powers_of_two, tops, turn);
  }
}

/// Quantizes rows by the block, or by a warp each if they are short. `turn` counts the uses of
/// `tops`.
template <value_type From, value_type To, bool IsWide>
__device__ void quantize_rows(const scaled_rows& part, const lane_ring<From, row_threads>& ring,
                              const piece_share& share, bool powers_of_two, row_tops& tops, std::uint32_t& turn) {
  constexpr std::uint32_t lane_elements = chunk_values * chunk<From>::most;
  if (part.columns <= 32 * lane_elements) {
    const piece_share of_warp{share.number * row_warps + threadIdx.x / 32, share.count * row_warps};
    quantize_short_rows<From, To, 32, IsWide>(part, ring, of_warp, powers_of_two, tops, turn);
  } else if (part.columns <= row_threads * lane_elements) {
    quantize_short_rows<From, To, row_threads, IsWide>(part, ring, share, powers_of_two, tops, turn);
  } else {
    for (std::uint32_t row = share.number; row < part.rows; row += share.count) {
      quantize_long_row<From, To, IsWide>(part, row, powers_of_two, tops[turn++ % 2][0]);
    }
  }
}

template <value_type From, value_type To>
__global__ void __launch_bounds__(row_threads, threads_per_multiprocessor / row_threads)
    quantize_rows_kernel(const __grid_constant__ planned_work work, bool powers_of_two) {
  extern __shared__ uint4 places[];
  const lane_ring<From, row_threads> ring(places);
  __shared__ walk_shared shared[row_warps];
  __shared__ row_tops tops;
  walk_shared& own = shared[threadIdx.x / 32];
  cudaGridDependencySynchronize();
  std::uint32_t turn = 0;
  const worker_share share = share_of(work, blockIdx.x, gridDim.x);
  visit_pieces(work, own, share.pieces, [&](const planned_tensor& tensor, std::uint64_t within) {
    visit_row_ranges(tensor, work.rule, within, [&](row_range range) {
      if (range.first != 0) return;  // the row's first piece does all of it
      range.columns = tensor.dim[0];
      set_part<From>(own.part, work, tensor, range, {width, 1});
      if (own.part.is_wide()) {
        quantize_rows<From, To, true>(own.part, ring, share.within, powers_of_two, tops, turn);
      } else {
        quantize_rows<From, To, false>(own.part, ring, share.within, powers_of_two, tops, turn);
      }
    });
  });
}

}  // namespace tmap::kernels
