// SPDX-License-Identifier: Apache-2.0
#pragma once

// tensormap.replace on a map in shared memory. cuda::ptx of CUDA 13.0 has it only for sm_90a and
// sm_100a, ptxas for every architecture-specific target from sm_90a on.

#include <tmap/detail/standard.hpp>
#include <tmap/tensor_map.hpp>
#include <tmap/tensor_spec.hpp>

namespace tmap::device::ptx {

__device__ inline unsigned shared_address(tensor_map* map) {
  return static_cast<unsigned>(__cvta_generic_to_shared(map));
}

// tensormap.replace.tile.field.shared::cta.b1024.{b32|b64} [map], {axis,} value;
//                                                                 PTX ISA 9.7.9.28, sm_90a
//
// These are weak accesses to the words that hold the field. Values are not checked: bits that do
// not fit are cut off.

__device__ inline void replace_global_address(tensor_map* map, std::uint64_t address) {
  asm("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;"
      :
      : "r"(shared_address(map)), "l"(address)
      : "memory");
}

// Takes the rank less 1.
__device__ inline void replace_rank(tensor_map* map, std::uint32_t axes_above_0) {
  asm("tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], %1;"
      :
      : "r"(shared_address(map)), "r"(axes_above_0)
      : "memory");
}

template <int Axis>
__device__ void replace_global_dim(tensor_map* map, std::uint32_t dim) {
  asm("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], %1, %2;"
      :
      : "r"(shared_address(map)), "n"(Axis), "r"(dim)
      : "memory");
}

// Takes bytes. There are four strides. The instruction would accept a fifth, and overwrite the high
// bits of the others.
template <int Axis>
__device__ void replace_global_stride(tensor_map* map, std::uint64_t stride) {
  static_assert(Axis + 1 < static_cast<int>(max_rank));
  asm("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], %1, %2;"
      :
      : "r"(shared_address(map)), "n"(Axis), "l"(stride)
      : "memory");
}

template <int Axis>
__device__ void replace_box_dim(tensor_map* map, std::uint32_t extent) {
  asm("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], %1, %2;"
      :
      : "r"(shared_address(map)), "n"(Axis), "r"(extent)
      : "memory");
}

template <int Axis>
__device__ void replace_element_stride(tensor_map* map, std::uint32_t step) {
  asm("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], %1, %2;"
      :
      : "r"(shared_address(map)), "n"(Axis), "r"(step)
      : "memory");
}

// These take their values as immediates, in the numbers of PTX.

template <int Value>
__device__ void replace_elemtype(tensor_map* map) {
  asm("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], %1;"
      :
      : "r"(shared_address(map)), "n"(Value)
      : "memory");
}

template <int Value>
__device__ void replace_interleave_layout(tensor_map* map) {
  asm("tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], %1;"
      :
      : "r"(shared_address(map)), "n"(Value)
      : "memory");
}

template <int Value>
__device__ void replace_swizzle_mode(tensor_map* map) {
  asm("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], %1;"
      :
      : "r"(shared_address(map)), "n"(Value)
      : "memory");
}

template <int Value>
__device__ void replace_fill_mode(tensor_map* map) {
  asm("tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], %1;"
      :
      : "r"(shared_address(map)), "n"(Value)
      : "memory");
}

}  // namespace tmap::device::ptx
