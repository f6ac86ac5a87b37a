// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the scales of chunks that several lanes hold.

#include "kernels/values/value_chunk.cuh"

#include <tmap/detail/quantization.hpp>

#include <cstdint>

namespace tmap::kernels {

/// The lanes that hold a block of 1 x 128, in a chunk each.
inline constexpr std::uint32_t half_warp = tmap::detail::scale_block_width / chunk_values;
static_assert(half_warp == 16);

/// Returns the largest top that any of `Width` neighbouring lanes has.
template <std::uint32_t Width>
__device__ std::uint32_t join_tops(std::uint32_t mine) {
#pragma unroll
  for (std::uint32_t distance = Width / 2; distance != 0; distance /= 2) {
    mine = max(mine, __shfl_xor_sync(~0u, mine, distance));
  }
  return mine;
}

/// Returns the largest top of one of the `Count` blocks that each of `Width` neighbouring lanes has
/// a part of. A lane gets that of block `block_of_lane`. Each exchange halves the blocks that a
/// lane is still concerned with.
template <std::uint32_t Width = half_warp, std::uint32_t Count>
__device__ std::uint32_t join_tops_of_blocks(std::uint32_t (&tops)[Count]) {
  std::uint32_t distance = Width / 2;
#pragma unroll
  for (std::uint32_t left = Count / 2; left != 0; left /= 2, distance /= 2) {
    const bool is_upper = (threadIdx.x & distance) != 0;
#pragma unroll
    for (std::uint32_t i = 0; i < left; ++i) {
      const std::uint32_t given = is_upper ? tops[i] : tops[i + left];
      const std::uint32_t kept = is_upper ? tops[i + left] : tops[i];
      tops[i] = max(kept, __shfl_xor_sync(~0u, given, distance));
    }
  }
#pragma unroll
  for (; distance != 0; distance /= 2) tops[0] = max(tops[0], __shfl_xor_sync(~0u, tops[0], distance));
  return tops[0];
}
template <std::uint32_t Count, std::uint32_t Width = half_warp>
__device__ std::uint32_t block_of_lane() {
  return threadIdx.x % Width / (Width / Count);
}

/// Returns the scale of a block whose largest magnitude has the bits `top`.
template <value_type From, value_type To>
__device__ tmap::detail::block_scale scale_of_top(std::uint32_t top, bool powers_of_two) {
  float value;
  if constexpr (From == value_type::f32) {
    value = __uint_as_float(top);
  } else {
    value = to_float<From>(static_cast<std::uint16_t>(top));
  }
  return tmap::detail::scale_of(value, tmap::detail::largest_f8(To), powers_of_two);
}

}  // namespace tmap::kernels
