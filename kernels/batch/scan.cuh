// SPDX-License-Identifier: Apache-2.0
#pragma once

// What lanes and threads before one have, joined: by a warp and by a block. running_sum.cuh does
// whole arrays.
//
// A join is a callable `(value, value) -> value`, associative and commutative. A value is one that
// shuffles take.

#include <tmap/device/warp.cuh>

#include <cstdint>

namespace tmap::kernels {

/// Modulo 2^64, for signed values too.
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

/// What all lanes have, in each of them. All lanes of a warp.
template <class Value, class Join>
__device__ Value join_lanes(Value value, const Join& join) {
#pragma unroll
  for (std::uint32_t step = device::warp_lanes / 2; step > 0; step /= 2) {
    value = join(value, __shfl_xor_sync(~0u, value, step));
  }
  return value;
}

/// What the lanes up to and with this one have. All lanes of a warp.
template <class Value, class Join>
__device__ Value join_up_to_lane(Value value, const Join& join) {
#pragma unroll
  for (std::uint32_t step = 1; step < device::warp_lanes; step *= 2) {
    const Value before = __shfl_up_sync(~0u, value, step);
    if (threadIdx.x % device::warp_lanes >= step) value = join(before, value);
  }
  return value;
}

/// What the threads before this one have, with `carry` before all of them; `carry` becomes what
/// there is after all of them. All threads of a block of `Warps`.
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
