// SPDX-License-Identifier: Apache-2.0
#pragma once

// Joins the values of lanes by a warp, and those of threads by a block. running_sum.cuh does whole
// arrays.
//
// A join is a callable `(value, value) -> value`, associative and commutative. A value has a type
// that shuffles take.

#include <tmap/device/warp.cuh>

#include <cstdint>

namespace tmap::kernels {

/// Adds modulo 2^64, signed values too.
struct add {
  template <class Value>
  __device__ Value operator()(Value a, Value b) const {
    return static_cast<Value>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
};

struct larger {
  template <class Value>
  __device__ Value operator()(Value a, Value b) const {
    return a < b ? b : a;
  }
};

/// Returns the join of all lanes' values to each of them. All lanes of a warp call it.
template <class Value, class Join>
__device__ Value join_lanes(Value value, const Join& join) {
#pragma unroll
  for (std::uint32_t step = device::warp_lanes / 2; step > 0; step /= 2) {
    value = join(value, __shfl_xor_sync(~0u, value, step));
  }
  return value;
}

/// Returns the join of the values of the lanes up to and including this one. All lanes of a warp
/// call it.
template <class Value, class Join>
__device__ Value join_up_to_lane(Value value, const Join& join) {
#pragma unroll
  for (std::uint32_t step = 1; step < device::warp_lanes; step *= 2) {
    const Value before = __shfl_up_sync(~0u, value, step);
    if (threadIdx.x % device::warp_lanes >= step) value = join(before, value);
  }
  return value;
}

/// Returns the join of `carry` and the values of the threads before this one. `carry` becomes the
/// join of itself and the values of all threads. All threads of a block of `Warps` warps call it.
template <std::uint32_t Warps, class Value, class Join>
__device__ Value join_before_thread(Value value, Value& carry, const Join& join) {
  __shared__ Value warp_totals[Warps];
  const std::uint32_t lane = threadIdx.x % device::warp_lanes;
  const std::uint32_t warp = threadIdx.x / device::warp_lanes;
  const Value up_to = join_up_to_lane(value, join);
  if (lane == device::warp_lanes - 1) warp_totals[warp] = up_to;
  const Value left = __shfl_up_sync(~0u, up_to, 1);
  __syncthreads();
  Value before = carry;
  for (std::uint32_t i = 0; i < Warps; ++i) {
    if (i < warp) before = join(before, warp_totals[i]);
    carry = join(carry, warp_totals[i]);
  }
  __syncthreads();
  return lane == 0 ? before : join(before, left);
}

}  // namespace tmap::kernels
