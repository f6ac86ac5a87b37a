// SPDX-License-Identifier: Apache-2.0
#pragma once

// Moves many small tensors at once by one warp. One by one, each would cost a record through shared
// memory and a stage of its own. Here each lane reads the record of one tensor, and groups of lanes
// move them all.

#include "kernels/ragged/granule.cuh"

#include <tmap/device/tensor_search.cuh>

#include <cstdint>

namespace tmap::kernels {

/// Fewer tensors are not worth the loads of their records.
inline constexpr std::uint32_t least_small_run = 4;

/// A tensor that is one row. It has 0 bytes if it is not, or if lanes should not move it.
struct small_tensor {
  std::uint64_t source;
  std::uint64_t destination;
  std::uint32_t bytes;
};

namespace detail {

inline constexpr std::uint32_t most_small_bytes = 512;
inline constexpr std::uint32_t least_group = 4;

__device__ inline small_tensor read_small(const planned_tensor& tensor, std::uint32_t element_bytes) {
  const bool is_row = tensor.dim[1] == 1 && tensor.dim[2] == 1 && tensor.dim[3] == 1 && tensor.dim[4] == 1;
  const bool is_for_lanes = tensor.way == route::ldgsts || tensor.way == route::plain;
  const bool is_small = is_row && is_for_lanes && tensor.source != 0 && tensor.dim[0] <= most_small_bytes;
  const std::uint32_t bytes = is_small ? static_cast<std::uint32_t>(tensor.dim[0]) * element_bytes : 0;
  return {tensor.source, tensor.destination, bytes <= most_small_bytes ? bytes : 0};
}

/// Moves the tensors of the first `count` lanes, each at most 32 units, by groups of as many lanes
/// as the longest has units.
template <class Unit>
__device__ void move_groups(const small_tensor& mine, std::uint32_t count, std::uint32_t most_units) {
  constexpr std::uint32_t batch = 4;
  const std::uint32_t lane = threadIdx.x % 32;
  std::uint32_t group = least_group;
  while (group < most_units) group *= 2;
  const std::uint32_t offset = lane % group * static_cast<std::uint32_t>(sizeof(Unit));
  const std::uint32_t groups = 32 / group;
#pragma unroll 1
  for (std::uint32_t first = 0; first < count; first += batch * groups) {
    Unit values[batch];
    std::uint64_t target[batch];  // 0: none
#pragma unroll
    for (std::uint32_t k = 0; k < batch; ++k) {
      const std::uint32_t owner = first + k * groups + lane / group;
      const int from = static_cast<int>(owner % 32);
      const std::uint64_t source = __shfl_sync(~0u, mine.source, from) + offset;
      const std::uint64_t destination = __shfl_sync(~0u, mine.destination, from) + offset;
      const bool has_unit = offset < __shfl_sync(~0u, mine.bytes, from) && owner < count;
      target[k] = has_unit ? destination : 0;
      if (has_unit) values[k] = load_unit<Unit>(source);
    }
#pragma unroll
    for (std::uint32_t k = 0; k < batch; ++k) {
      if (target[k] != 0) store_unit(target[k], values[k]);
    }
  }
}

}  // namespace detail

/// Moves the small tensors at the front of the `run` tensors (at most 31) from `tensors` on, and
/// returns their number. It returns 0 if there are too few, or if their addresses give them more
/// than 32 units. `has_piece` is whether the lane's tensor has anything to move; others are
/// skipped. All lanes take part.
__device__ inline std::uint32_t move_small(const planned_tensor* tensors, std::uint32_t run, bool has_piece,
                                           std::uint32_t element_bytes) {
  const std::uint32_t lane = threadIdx.x % 32;
  small_tensor mine{};
  if (lane < run && has_piece) mine = detail::read_small(tensors[lane], element_bytes);
  const std::uint32_t others = __ballot_sync(~0u, lane >= run || (has_piece && mine.bytes == 0));
  const std::uint32_t count = __ffs(static_cast<int>(others)) - 1;
  if (__popc(__ballot_sync(~0u, lane < count && has_piece)) < least_small_run) return 0;
  const auto bits = static_cast<std::uint32_t>(mine.source | mine.destination) | mine.bytes;
  const std::uint32_t all = __reduce_or_sync(~0u, lane < count ? bits : 0) | granule_bytes;
  const std::uint32_t unit = all & (0u - all);
  const std::uint32_t most_units = __reduce_max_sync(~0u, lane < count ? mine.bytes : 0) / unit;
  if (most_units > 32) return 0;
  switch (unit) {
    case 16: detail::move_groups<uint4>(mine, count, most_units); break;
    case 8: detail::move_groups<uint2>(mine, count, most_units); break;
    case 4: detail::move_groups<std::uint32_t>(mine, count, most_units); break;
    case 2: detail::move_groups<std::uint16_t>(mine, count, most_units); break;
    default: detail::move_groups<std::uint8_t>(mine, count, most_units); break;
  }
  return count;
}

/// Moves small tensors from piece `g` on, up to piece `last` or the first one that is not small,
/// and returns where the rest begins. It is out of line, so that its registers are free again when
/// the pipe of pieces begins.
static __noinline__ __device__ std::uint64_t move_small_front(const planned_tensor* tensors, const std::uint64_t* ends,
                                                              std::uint64_t count, std::uint64_t g, std::uint64_t last,
                                                              std::uint32_t element_bytes) {
  const std::uint32_t lane = threadIdx.x % 32;
  std::uint64_t tensor = device::find_tensor_warp(ends, g, 0, count - 1);
  while (g < last) {
    const std::uint64_t at = tensor + lane < count ? tensor + lane : count;
    const std::uint64_t begin = at == 0 ? 0 : ends[at - 1];
    const std::uint64_t end = __shfl_down_sync(~0u, begin, 1);
    if (__shfl_sync(~0u, begin, 0) != g) break;
    const bool is_in_run = lane < 31 && tensor + lane < count && end - begin <= 1 && end <= last;
    const std::uint32_t run = __ffs(static_cast<int>(~__ballot_sync(~0u, is_in_run))) - 1;
    const std::uint32_t moved = move_small(tensors + tensor, run, end != begin, element_bytes);
    if (moved == 0) break;
    g = __shfl_sync(~0u, end, static_cast<int>(moved - 1));
    if (g < last) tensor = device::find_tensor_near_warp(ends, g, tensor + moved, count - 1);
  }
  return g;
}

}  // namespace tmap::kernels
