// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Stores that combine their data with what is in global memory: m = m op t, each element
/// atomically. They belong to this thread's open group of stores (`commit_stores`) and need the
/// same fences as stores. tmap/reduction.hpp lists the operations of each type. Any other is an
/// illegal instruction, or does not compile where the type is a template argument. One thread calls
/// each function. (PTX ISA 9.7.9.25.4.2 and 9.7.9.27.1.3)

#include <tmap/detail/standard.hpp>
#include <tmap/device/tile_copy.cuh>
#include <tmap/element_of.hpp>
#include <tmap/element_type.hpp>
#include <tmap/reduction.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda/ptx>

namespace tmap::device {

namespace detail {

template <reduction Operation>
__device__ constexpr auto operation_tag() {
  namespace ptx = cuda::ptx;
  if constexpr (Operation == reduction::add) return ptx::op_add;
  if constexpr (Operation == reduction::min) return ptx::op_min;
  if constexpr (Operation == reduction::max) return ptx::op_max;
  if constexpr (Operation == reduction::inc) return ptx::op_inc;
  if constexpr (Operation == reduction::dec) return ptx::op_dec;
  if constexpr (Operation == reduction::bit_and) return ptx::op_and_op;
  if constexpr (Operation == reduction::bit_or) return ptx::op_or_op;
  if constexpr (Operation == reduction::bit_xor) return ptx::op_xor_op;
}

TMAP_HOST_DEVICE constexpr bool has_reduction(element_type type, reduction operation) {
  return reductions_of(type).contains(operation);
}

template <reduction Operation, std::uint32_t Rank>
__device__ void reduce_tile_by(acquired_map map, const std::int32_t (&coordinates)[Rank], const void* shared) {
  namespace ptx = cuda::ptx;
  ptx::cp_reduce_async_bulk_tensor(ptx::space_global, ptx::space_shared, operation_tag<Operation>(), map.get(),
                                   coordinates, shared);
}

}  // namespace detail

/// Starts reducing the tile in `shared` into the one at `coordinates` of a map whose elements are
/// of type `Type`. Elements outside the tensor are dropped as by `store_tile`.
template <reduction Operation, element_type Type, std::uint32_t Rank,
          std::enable_if_t<detail::has_reduction(Type, Operation), int> = 0>
__device__ void reduce_tile(acquired_map map, const std::int32_t (&coordinates)[Rank], const void* shared) {
  detail::reduce_tile_by<Operation>(map, coordinates, shared);
}

/// Does the same for an operation and type that are known only when the kernel runs. The map's type
/// must have the operation.
template <std::uint32_t Rank>
__device__ void reduce_tile(reduction operation, acquired_map map, const std::int32_t (&coordinates)[Rank],
                            const void* shared) {
  switch (operation) {
    case reduction::add: return detail::reduce_tile_by<reduction::add>(map, coordinates, shared);
    case reduction::min: return detail::reduce_tile_by<reduction::min>(map, coordinates, shared);
    case reduction::max: return detail::reduce_tile_by<reduction::max>(map, coordinates, shared);
    case reduction::inc: return detail::reduce_tile_by<reduction::inc>(map, coordinates, shared);
    case reduction::dec: return detail::reduce_tile_by<reduction::dec>(map, coordinates, shared);
    case reduction::bit_and: return detail::reduce_tile_by<reduction::bit_and>(map, coordinates, shared);
    case reduction::bit_or: return detail::reduce_tile_by<reduction::bit_or>(map, coordinates, shared);
    case reduction::bit_xor: return detail::reduce_tile_by<reduction::bit_xor>(map, coordinates, shared);
  }
}

/// Starts reducing `bytes` of `shared` into `global`, without a map. Addresses and bytes are
/// multiples of 16. `T` is one of uint32_t, int32_t, uint64_t, int64_t, __half, __nv_bfloat16,
/// float, double.
template <reduction Operation, class T, std::enable_if_t<detail::has_reduction(element_of<T>, Operation), int> = 0>
__device__ void reduce_bytes(T* global, const T* shared, std::uint32_t bytes) {
  namespace ptx = cuda::ptx;
  ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, detail::operation_tag<Operation>(), global, shared,
                            bytes);
}

}  // namespace tmap::device
