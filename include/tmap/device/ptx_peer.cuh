// SPDX-License-Identifier: Apache-2.0
#pragma once

// Accesses in the scope of all GPUs, which cuda::ptx of CUDA 13.0 lacks. cuda::atomic_ref has them,
// too, but its additions return the old value. That costs a trip to the peer and back.

#include <tmap/detail/standard.hpp>

namespace tmap::device::ptx {

// ld.relaxed.sys.global.u32 d, [a];                               PTX ISA 9.7.9.8, sm_70
__device__ inline std::uint32_t ld_relaxed_sys(const std::uint32_t* global) {
  std::uint32_t value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(__cvta_generic_to_global(global)) : "memory");
  return value;
}

// ld.acquire.sys.global.u32 d, [a];                               PTX ISA 9.7.9.8, sm_70
__device__ inline std::uint32_t ld_acquire_sys(const std::uint32_t* global) {
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(__cvta_generic_to_global(global)) : "memory");
  return value;
}

// red.relaxed.sys.global.add.u32 [a], b;                          PTX ISA 9.7.13.7, sm_60
__device__ inline void red_add_relaxed_sys(std::uint32_t* global, std::uint32_t by) {
  asm volatile("red.relaxed.sys.global.add.u32 [%0], %1;"
               :
               : "l"(__cvta_generic_to_global(global)), "r"(by)
               : "memory");
}

// red.release.sys.global.add.u32 [a], b;                          PTX ISA 9.7.13.7, sm_70
__device__ inline void red_add_release_sys(std::uint32_t* global, std::uint32_t by) {
  asm volatile("red.release.sys.global.add.u32 [%0], %1;"
               :
               : "l"(__cvta_generic_to_global(global)), "r"(by)
               : "memory");
}

}  // namespace tmap::device::ptx
