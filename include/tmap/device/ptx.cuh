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

}  // namespace tmap::device::ptx
