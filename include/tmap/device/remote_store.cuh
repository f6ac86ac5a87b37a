// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Shared memory of other blocks of a cluster: addresses, barriers, and asynchronous stores from
/// registers (STAS; PTX ISA 9.7.9.12, st.async). The receiving block initialises its barrier, makes
/// it visible by `fence_barrier_init` and `sync_cluster`, announces the bytes to expect, and waits
/// with `wait_cluster`. No block may end while another may still write its shared memory: it first
/// calls a last `sync_cluster`, or waits for what is on its way.

#include <tmap/detail/standard.hpp>
#include <tmap/device/tile_copy.cuh>

#include <cuda/ptx>

namespace tmap::device {

/// Return the rank of this block in its cluster, and the number of blocks of the cluster. Without
/// clusters these are 0 and 1.
__device__ inline std::uint32_t block_of_cluster() {
  return cuda::ptx::get_sreg_cluster_ctarank();
}
__device__ inline std::uint32_t blocks_of_cluster() {
  return cuda::ptx::get_sreg_cluster_nctarank();
}

/// Waits for all threads of all blocks of the cluster. What each did before is visible to all
/// afterwards.
__device__ inline void sync_cluster() {
  namespace ptx = cuda::ptx;
  ptx::barrier_cluster_arrive(ptx::sem_release);
  ptx::barrier_cluster_wait(ptx::sem_acquire);
}

/// Returns the address in block `block` of the cluster that corresponds to `shared` in this one. It
/// may be used for loads, stores and the functions below. (PTX ISA 9.7.9.23, mapa)
template <class T>
__device__ T* shared_of_block(std::uint32_t block, T* shared) {
  return static_cast<T*>(__cluster_map_shared_rank(shared, block));
}

/// A barrier of another block (or of this one). Threads can arrive at it, but never wait for it. It
/// is a register value.
class remote_barrier {
 public:
  /// Names the barrier in block `block` that corresponds to `barrier` in this one.
  __device__ remote_barrier(std::uint32_t block, tile_barrier& barrier)
      : word_(shared_of_block(block, barrier.word())) {}

  __device__ void arrive() {
    namespace ptx = cuda::ptx;
    ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, word_);
  }

  /// Arrives and announces the bytes of copies that will complete on this phase.
  __device__ void arrive_expect(std::uint32_t bytes) {
    namespace ptx = cuda::ptx;
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, word_, bytes);
  }

  __device__ std::uint64_t* word() const { return word_; }

 private:
  std::uint64_t* word_;
};

/// Starts storing `value` (4, 8 or 16 bytes) into a block's shared memory. `remote`, from
/// `shared_of_block`, is a multiple of its size. The bytes complete on `barrier`, which is in the
/// same block. Any thread may call it, each for its own value.
template <class T>
__device__ void store_async(T* remote, const T& value, remote_barrier barrier) {
  static_assert(std::is_trivially_copyable_v<T>);
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16, "a store moves 4, 8 or 16 bytes");
  namespace ptx = cuda::ptx;
  if constexpr (sizeof(T) == 4) {
    std::uint32_t word;
    ::memcpy(&word, &value, sizeof(T));
    ptx::st_async(reinterpret_cast<std::uint32_t*>(remote), word, barrier.word());
  } else if constexpr (sizeof(T) == 8) {
    std::uint64_t word;
    ::memcpy(&word, &value, sizeof(T));
    ptx::st_async(reinterpret_cast<std::uint64_t*>(remote), word, barrier.word());
  } else {
    std::uint64_t words[2];
    ::memcpy(words, &value, sizeof(T));
    ptx::st_async(reinterpret_cast<std::uint64_t*>(remote), words, barrier.word());
  }
}

}  // namespace tmap::device
