// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// One-dimensional copies by the copy engine, without a map: global to shared, shared to global,
/// shared to the shared memory of another block of the cluster, and prefetch to L2. Addresses and
/// bytes are multiples of 16. One thread calls each function. Reductions are in reduce_copy.cuh.
/// (PTX ISA 9.7.9.25.4, cp.async.bulk)

#include <tmap/detail/standard.hpp>
#include <tmap/device/cache_hint.cuh>
#include <tmap/device/ptx_copy.cuh>
#include <tmap/device/remote_store.cuh>
#include <tmap/device/tile_copy.cuh>

#include <cuda/ptx>

namespace tmap::device {

/// Starts loading `bytes` from global memory. They complete on `barrier`, which must already expect
/// them (`arrive_expect`).
__device__ inline void load_bytes(void* shared, const void* global, std::uint32_t bytes, tile_barrier& barrier) {
  namespace ptx = cuda::ptx;
  ptx::cp_async_bulk(ptx::space_shared, ptx::space_global, shared, global, bytes, barrier.word());
}

__device__ inline void load_bytes(void* shared, const void* global, std::uint32_t bytes, tile_barrier& barrier,
                                  cache_hint hint) {
  ptx::cp_async_bulk(shared, global, bytes, barrier.word(), hint.policy());
}

/// Starts storing `bytes` to global memory. The store belongs to this thread's open group of stores
/// (`commit_stores`).
__device__ inline void store_bytes(void* global, const void* shared, std::uint32_t bytes) {
  namespace ptx = cuda::ptx;
  ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, global, shared, bytes);
}

__device__ inline void store_bytes(void* global, const void* shared, std::uint32_t bytes, cache_hint hint) {
  ptx::cp_async_bulk(global, shared, bytes, hint.policy());
}

/// Starts copying `bytes` of this block's shared memory to `remote` (`shared_of_block`). They
/// complete on `barrier`, which is in the same block as `remote`. The sender gets no sign of it,
/// and must keep its bytes until the receiver has them.
__device__ inline void send_bytes(void* remote, const void* shared, std::uint32_t bytes, remote_barrier barrier) {
  namespace ptx = cuda::ptx;
  ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, remote, shared, bytes, barrier.word());
}

/// Brings `bytes` of global memory into L2. Nothing signals when they are there.
__device__ inline void prefetch_bytes(const void* global, std::uint32_t bytes) {
  ptx::cp_async_bulk_prefetch(global, bytes);
}

}  // namespace tmap::device
