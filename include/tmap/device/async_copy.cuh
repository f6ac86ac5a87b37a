// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Asynchronous copies of 4, 8 or 16 bytes a thread from global to shared memory (LDGSTS; PTX ISA
/// 9.7.9.25.3, cp.async). Every thread calls them for its own bytes. The copies are writes of the
/// ordinary (generic) proxy: call `fence_shared_writes` before the copy engine reads or writes the
/// same shared memory.

#include <tmap/detail/standard.hpp>
#include <tmap/device/ptx.cuh>
#include <tmap/device/tile_copy.cuh>

namespace tmap::device {

/// Names the caches that a copy goes through. Only copies of 16 bytes may bypass L1.
enum class l1_use : std::uint32_t { keep, bypass };

/// Starts copying `Bytes` bytes: 4, 8 or 16. Both addresses are multiples of that.
template <std::uint32_t Bytes, l1_use L1 = Bytes == 16 ? l1_use::bypass : l1_use::keep>
__device__ void copy_async(void* shared, const void* global) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16);
  static_assert(L1 == l1_use::keep || Bytes == 16, "only copies of 16 bytes may bypass L1");
  ptx::cp_async<Bytes, L1 == l1_use::bypass>(shared, global);
}

/// Does the same, but copies only the first `source_bytes` (at most `Bytes`) and writes zeros for
/// the rest, for the end of a tensor. It does not read the rest. With 0 it reads nothing.
template <std::uint32_t Bytes, l1_use L1 = Bytes == 16 ? l1_use::bypass : l1_use::keep>
__device__ void copy_async_zero_filled(void* shared, const void* global, std::uint32_t source_bytes) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16);
  static_assert(L1 == l1_use::keep || Bytes == 16, "only copies of 16 bytes may bypass L1");
  ptx::cp_async_zero_filled<Bytes, L1 == l1_use::bypass>(shared, global, source_bytes);
}

/// Closes this thread's group of copies.
__device__ inline void commit_copies() {
  ptx::cp_async_commit_group();
}

/// Waits until all but this thread's newest `Pending` groups have landed, for this thread only.
template <int Pending>
__device__ void wait_copies() {
  ptx::cp_async_wait_group<Pending>();
}

/// Arrives on `barrier`, once, when all this thread's copies so far have landed. The arrival counts
/// as one of those the barrier was initialised with.
__device__ inline void arrive_after_copies(tile_barrier& barrier) {
  ptx::cp_async_mbarrier_arrive_noinc(barrier.word());
}

}  // namespace tmap::device
