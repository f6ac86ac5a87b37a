// SPDX-License-Identifier: Apache-2.0
#pragma once

// The instructions tmap uses that cuda::ptx of CUDA 13.0 lacks; the only inline PTX of the project.

#include <tmap/tensor_map.hpp>

namespace tmap::device::ptx {

// prefetch.tensormap [a];                                         PTX ISA 9.7.9.15, sm_90
// a is a generic address of .param, .const or .global memory.
__device__ inline void prefetch_tensormap(const tensor_map* map) {
  asm volatile("prefetch.tensormap [%0];" : : "l"(map) : "memory");
}

// No instruction: the pointer that comes out is one the compiler knows nothing of. It computes the address of a shared
// variable anew at every tensormap.replace, each time from a special register; this way it keeps it.
template <class T>
__device__ inline T* keep_in_register(T* pointer) {
  asm volatile("" : "+l"(pointer) : : "memory");
  return pointer;
}

}  // namespace tmap::device::ptx
