// SPDX-License-Identifier: Apache-2.0
#pragma once

// One-dimensional copies by the copy engine, without a map: global to shared, shared to global, shared to the shared
// memory of another block of the cluster, and prefetch to L2. Addresses and bytes are multiples of 16. Each function is
// called by one thread. (PTX ISA 9.7.9.25.4, cp.async.bulk)

#include <tmap/device/tile_copy.cuh>

#include <cuda/ptx>

#include <cstdint>

namespace tmap::device {

/// Starts loading `bytes` from global memory; they complete on `barrier`, which must have been told to expect them.
__device__ inline void load_bytes(void* shared, const void* global, std::uint32_t bytes, tile_barrier& barrier) {
  namespace ptx = cuda::ptx;
  ptx::cp_async_bulk(ptx::space_shared, ptx::space_global, shared, global, bytes, barrier.word());
}

/// Starts storing `bytes` to global memory. It belongs to this thread's open group of stores (`commit_stores`).
__device__ inline void store_bytes(void* global, const void* shared, std::uint32_t bytes) {
  namespace ptx = cuda::ptx;
  ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, global, shared, bytes);
}

}  // namespace tmap::device
