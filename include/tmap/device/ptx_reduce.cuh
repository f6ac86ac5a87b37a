// SPDX-License-Identifier: Apache-2.0
#pragma once

// Additions in global memory that return nothing. `atomicAdd` of a float4 compiles to an operation
// that returns the old value, even where nobody uses it.

#include <tmap/detail/standard.hpp>

namespace tmap::device::ptx {

// red.relaxed.gpu.global.add.v4.f32 [a], {b, c, d, e};            PTX ISA 9.7.13.7, sm_90
// The address is a multiple of 16. Each element is added by itself. Subnormal numbers are flushed
// to zero.
__device__ inline void red_add(float4* global, const float4& four) {
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(__cvta_generic_to_global(global)), "f"(four.x), "f"(four.y), "f"(four.z), "f"(four.w)
               : "memory");
}

}  // namespace tmap::device::ptx
