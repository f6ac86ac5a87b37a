// SPDX-License-Identifier: Apache-2.0
#pragma once

// The instructions tmap uses that cuda::ptx of CUDA 13.0 lacks. The project's other inline PTX is
// in the headers of this folder whose names begin with ptx_.

#include <tmap/detail/standard.hpp>
#include <tmap/tensor_map.hpp>

namespace tmap::device::ptx {

// prefetch.tensormap [a];                                         PTX ISA 9.7.9.15, sm_90
// a is a generic address of .param, .const or .global memory.
__device__ inline void prefetch_tensormap(const tensor_map* map) {
  asm volatile("prefetch.tensormap [%0];" : : "l"(map) : "memory");
}

// elect.sync _|p, 0xffffffff;                                     PTX ISA 9.7.13.15, sm_90
//
// Elects one lane of a whole warp, always the same. After it, ptxas knows that one thread runs.
// After `threadIdx.x % 32 == 0`, it puts a loop over the lanes' operands around each copy.
__device__ inline bool elect_one() {
  unsigned is_elected;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "elect.sync _|p, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}"
      : "=r"(is_elected));
  return is_elected != 0;
}

// Emits no instruction. The compiler knows nothing of the pointer that it returns, and keeps it in
// a register. Otherwise it computes the address of a shared variable from a special register again
// at every tensormap.replace.
template <class T>
__device__ inline T* keep_in_register(T* pointer) {
  asm volatile("" : "+l"(pointer) : : "memory");
  return pointer;
}

// cp.async.{ca,cg}.shared.global [dst], [src], bytes;             PTX ISA 9.7.9.25.3.1, sm_80
template <unsigned Bytes, bool BypassesL1>
__device__ void cp_async(void* shared, const void* global) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  if constexpr (BypassesL1) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], %2;" : : "r"(to), "l"(global), "n"(Bytes) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" : : "r"(to), "l"(global), "n"(Bytes) : "memory");
  }
}

// cp.async.{ca,cg}.shared.global [dst], [src], bytes, src_bytes;  PTX ISA 9.7.9.25.3.1, sm_80
// Writes `bytes` bytes. Those after the first src_bytes are zero and not read.
template <unsigned Bytes, bool BypassesL1>
__device__ void cp_async_zero_filled(void* shared, const void* global, unsigned source_bytes) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  if constexpr (BypassesL1) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], %2, %3;"
                 :
                 : "r"(to), "l"(global), "n"(Bytes), "r"(source_bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :
                 : "r"(to), "l"(global), "n"(Bytes), "r"(source_bytes)
                 : "memory");
  }
}

// cp.async.commit_group;                                          PTX ISA 9.7.9.25.3.2, sm_80
__device__ inline void cp_async_commit_group() {
  asm volatile("cp.async.commit_group;" : : : "memory");
}

// cp.async.wait_group n;                                          PTX ISA 9.7.9.25.3.3, sm_80
template <int Pending>
__device__ void cp_async_wait_group() {
  asm volatile("cp.async.wait_group %0;" : : "n"(Pending) : "memory");
}

// cp.async.mbarrier.arrive.noinc.shared.b64 [barrier];            PTX ISA 9.7.13.15.15, sm_80
__device__ inline void cp_async_mbarrier_arrive_noinc(void* barrier) {
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" : : "r"(at) : "memory");
}

// createpolicy.fractional.L2::{eviction}.L2::{rest}.b64 policy, fraction;  PTX ISA 9.7.9.18, sm_80
template <class Eviction, class Rest>
__device__ std::uint64_t createpolicy_fractional(float fraction) {
  std::uint64_t policy;
  asm("createpolicy.fractional.L2::%1.L2::%2.b64 %0, %3;"
      : "=l"(policy)
      : "C"(Eviction::value), "C"(Rest::value), "f"(fraction));
  return policy;
}

// shfl.sync.idx.b32 d, a, b, c, 0xffffffff;                       PTX ISA 9.7.9.6, sm_30
// Returns the value of lane 4 * row + lane % 4. The mask in c keeps the lane's two lowest bits.
// (That of cuda::ptx returns the bits of a float as a number.)
__device__ inline float shuffle_in_column(float value, unsigned row) {
  constexpr unsigned mask_and_last = 0b00011 << 8 | 0b11111;
  float of_row;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, %3, 0xffffffff;"
               : "=f"(of_row)
               : "f"(value), "r"(row * 4), "n"(mask_and_last));
  return of_row;
}

// max.NaN.f32 d, a, b;                                            PTX ISA 9.7.3.10, sm_80
// NaN if either is; +0 is larger than -0.
__device__ inline float max_nan(float a, float b) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
}

}  // namespace tmap::device::ptx
