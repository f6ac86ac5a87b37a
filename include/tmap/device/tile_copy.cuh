// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Copies of one tile between shared and global memory through a tensor map, and the barrier that a
/// load completes on (PTX ISA 9.7.9.27.1). Reductions are in reduce_copy.cuh. Coordinates count
/// elements, innermost first. The innermost one must be a multiple of 16 bytes, and those of a
/// store must not be negative: otherwise the instruction is illegal. Shared addresses obey
/// `shared_alignment` of the map's swizzle. One thread calls each function. `Rank` must be the
/// map's rank: the hardware traps on another. Where the compiler knows rank and bytes, tile.cuh
/// takes both from the type of the tile.

#include <tmap/detail/standard.hpp>
#include <tmap/device/acquire.cuh>
#include <tmap/device/cache_hint.cuh>
#include <tmap/device/ptx_copy.cuh>

#include <cuda/ptx>

namespace tmap::device {

/// A barrier in shared memory (mbarrier) that counts arrivals and bytes. The parity of its phases
/// alternates, beginning with 0.
class tile_barrier {
 public:
  /// One thread calls it once. Afterwards `fence_barrier_init` and a block barrier make the barrier
  /// usable by all threads.
  __device__ void init(std::uint32_t arrivals) { cuda::ptx::mbarrier_init(&word_, arrivals); }

  /// Arrives and announces the bytes of loads that will complete on this phase.
  __device__ void arrive_expect(std::uint32_t bytes) {
    namespace ptx = cuda::ptx;
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &word_, bytes);
  }

  __device__ void arrive() { cuda::ptx::mbarrier_arrive(&word_); }

  /// Waits until the phase of this parity has completed. Any number of threads may wait.
  __device__ void wait(std::uint32_t parity) {
    while (!cuda::ptx::mbarrier_try_wait_parity(&word_, parity)) {
    }
  }

  /// Waits in the same way for data that other blocks of the cluster send (remote_store.cuh,
  /// `send_bytes`, `load_tile_multicast`).
  __device__ void wait_cluster(std::uint32_t parity) {
    namespace ptx = cuda::ptx;
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &word_, parity)) {
    }
  }

  __device__ std::uint64_t* word() { return &word_; }

 private:
  std::uint64_t word_;
};

/// Makes initialised barriers visible to the copy engine. The thread that initialised them calls
/// it.
__device__ inline void fence_barrier_init() {
  cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
}

/// Orders this thread's ordinary accesses to shared memory before its later copies of it. Each
/// writing thread calls it before the block barrier that precedes a store.
__device__ inline void fence_shared_writes() {
  cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
}

/// Starts loading the tile at `coordinates` into `shared`. Its bytes, always those of a whole tile,
/// complete on `barrier`, which must already expect them (`arrive_expect`). Elements outside the
/// tensor become the map's fill.
template <std::uint32_t Rank>
__device__ void load_tile(void* shared, acquired_map map, const std::int32_t (&coordinates)[Rank],
                          tile_barrier& barrier) {
  static_assert(1 <= Rank && Rank <= 5);
  namespace ptx = cuda::ptx;
  ptx::cp_async_bulk_tensor(ptx::space_shared, ptx::space_global, shared, map.get(), coordinates, barrier.word());
}

template <std::uint32_t Rank>
__device__ void load_tile(void* shared, acquired_map map, const std::int32_t (&coordinates)[Rank],
                          tile_barrier& barrier, cache_hint hint) {
  static_assert(1 <= Rank && Rank <= 5);
  ptx::cp_async_bulk_tensor(shared, map.get(), coordinates, barrier.word(), hint.policy());
}

/// Reads a tile once and loads it into every block of the cluster whose bit is set in `blocks` (bit
/// i: block i). It goes to the address of `shared` in each, and completes on the barrier at the
/// address of `barrier` in each. The barrier of each of these blocks must already expect the bytes.
/// Each block waits with `wait_cluster`. Before the copy starts, each has signalled by
/// `sync_cluster` that its barrier is initialised and its memory free. It needs an
/// architecture-specific target such as sm_90a.
template <std::uint32_t Rank>
__device__ void load_tile_multicast(void* shared, acquired_map map, const std::int32_t (&coordinates)[Rank],
                                    tile_barrier& barrier, std::uint16_t blocks) {
  static_assert(1 <= Rank && Rank <= 5);
  namespace ptx = cuda::ptx;
  ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, shared, map.get(), coordinates, barrier.word(),
                            blocks);
}

/// Starts loading a column of pixels through an im2col map, `channels_per_pixel` of each.
/// `coordinates` (channel, W, H, D, image; as many as the map has) name the first pixel, in the
/// map's bounding box. `offsets` (W, H, D) move the whole box. The pixels go on along W, H and D in
/// the box, then in the next image. Those outside the tensor become the map's fill. The barrier
/// receives `channels_per_pixel` x `pixels_per_column` elements. (PTX ISA 5.5.4)
template <std::uint32_t Rank>
__device__ void load_im2col(void* shared, acquired_map map, const std::int32_t (&coordinates)[Rank],
                            const std::uint16_t (&offsets)[Rank - 2], tile_barrier& barrier) {
  static_assert(3 <= Rank && Rank <= 5);
  ptx::cp_async_bulk_tensor_im2col(shared, map.get(), coordinates, offsets, barrier.word());
}

/// Brings the tile at `coordinates` into L2. Nothing signals when it is there.
template <std::uint32_t Rank>
__device__ void prefetch_tile(acquired_map map, const std::int32_t (&coordinates)[Rank]) {
  static_assert(1 <= Rank && Rank <= 5);
  ptx::cp_async_bulk_prefetch_tensor(map.get(), coordinates);
}

/// Starts storing the tile in `shared` at `coordinates`. Elements outside the tensor are dropped;
/// along dimension 0, only from the next multiple of 16 bytes on
/// (docs/measurements/copy_engine_semantics.md). The store belongs to this thread's open group.
template <std::uint32_t Rank>
__device__ void store_tile(acquired_map map, const std::int32_t (&coordinates)[Rank], const void* shared) {
  static_assert(1 <= Rank && Rank <= 5);
  namespace ptx = cuda::ptx;
  ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, map.get(), coordinates, shared);
}

template <std::uint32_t Rank>
__device__ void store_tile(acquired_map map, const std::int32_t (&coordinates)[Rank], const void* shared,
                           cache_hint hint) {
  static_assert(1 <= Rank && Rank <= 5);
  ptx::cp_async_bulk_tensor(map.get(), coordinates, shared, hint.policy());
}

/// Closes this thread's group of stores and reductions.
__device__ inline void commit_stores() {
  cuda::ptx::cp_async_bulk_commit_group();
}

/// Waits until all but the newest `Pending` groups have read their shared memory. It may then be
/// overwritten.
template <int Pending>
__device__ void wait_stores_read() {
  cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<Pending>{});
}

/// Waits until all but the last `Pending` groups of this thread's stores have been written.
template <int Pending = 0>
__device__ void wait_stores_written() {
  cuda::ptx::cp_async_bulk_wait_group(cuda::ptx::n32_t<Pending>{});
}

}  // namespace tmap::device
