// SPDX-License-Identifier: Apache-2.0
#pragma once

// Accesses that cuda::ptx of CUDA 13.0 lacks, most in the scope of all GPUs. cuda::atomic_ref has
// them, too, but its additions return the old value. That costs a trip to the peer and back.

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

// A 128-bit access is a single one: its bytes are read and written together.
// st.relaxed.sys.global.b128 [a], b;                              PTX ISA 9.7.9.12, sm_70
__device__ inline void st_relaxed_sys(uint4* global, const uint4& value) {
  asm volatile(
      "{\n\t.reg .b128 all;\n\t.reg .b64 low, high;\n\t"
      "mov.b64 low, {%1, %2};\n\tmov.b64 high, {%3, %4};\n\tmov.b128 all, {low, high};\n\t"
      "st.relaxed.sys.global.b128 [%0], all;\n\t}"
      :
      : "l"(__cvta_generic_to_global(global)), "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w)
      : "memory");
}

// ld.relaxed.sys.global.b128 d, [a];                              PTX ISA 9.7.9.8, sm_70
__device__ inline uint4 ld_relaxed_sys(const uint4* global) {
  uint4 value;
  asm volatile(
      "{\n\t.reg .b128 all;\n\t.reg .b64 low, high;\n\tld.relaxed.sys.global.b128 all, [%4];\n\t"
      "mov.b128 {low, high}, all;\n\tmov.b64 {%0, %1}, low;\n\tmov.b64 {%2, %3}, high;\n\t}"
      : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
      : "l"(__cvta_generic_to_global(global))
      : "memory");
  return value;
}

// st.relaxed.sys.global.b64 [a], b;                               PTX ISA 9.7.9.12, sm_70
__device__ inline void st_relaxed_sys(uint2* global, const uint2& value) {
  asm volatile("{\n\t.reg .b64 all;\n\tmov.b64 all, {%1, %2};\n\tst.relaxed.sys.global.b64 [%0], all;\n\t}"
               :
               : "l"(__cvta_generic_to_global(global)), "r"(value.x), "r"(value.y)
               : "memory");
}

// ld.relaxed.sys.global.b64 d, [a];                               PTX ISA 9.7.9.8, sm_70
__device__ inline uint2 ld_relaxed_sys(const uint2* global) {
  uint2 value;
  asm volatile("{\n\t.reg .b64 all;\n\tld.relaxed.sys.global.b64 all, [%2];\n\tmov.b64 {%0, %1}, all;\n\t}"
               : "=r"(value.x), "=r"(value.y)
               : "l"(__cvta_generic_to_global(global))
               : "memory");
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

// red.release.gpu.global.add.u32 [a], b;                          PTX ISA 9.7.13.7, sm_70
__device__ inline void red_add_release_gpu(std::uint32_t* global, std::uint32_t by) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;"
               :
               : "l"(__cvta_generic_to_global(global)), "r"(by)
               : "memory");
}

}  // namespace tmap::device::ptx
