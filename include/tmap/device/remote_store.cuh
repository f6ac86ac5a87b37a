// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shared memory of other blocks of a cluster: addresses, barriers, and asynchronous stores from
// registers (STAS; PTX ISA 9.7.9.12, st.async). The receiving block initialises its barrier and
// shows it by `fence_barrier_init` and `sync_cluster`, tells it the bytes to expect, and waits with
// `wait_cluster`. No block may end while another may still write its shared memory: a last
// `sync_cluster`, or a wait for what is on its way, comes before the end.

#include <tmap/detail/standard.hpp>
#include <tmap/device/tile_copy.cuh>

#include <cuda/ptx>

namespace tmap::device {

/// The rank of this block in its cluster, and how many blocks the cluster has; 0 and 1 without
/// clusters.
__device__ inline std::uint32_t block_of_cluster() {
  return cuda::ptx::get_sreg_cluster_ctarank();
}
__device__ inline std::uint32_t blocks_of_cluster() {
  return cuda::ptx::get_sreg_cluster_nctarank();
}

/// Waits for all threads of all blocks of the cluster; what each did before is visible to each
/// after.
__device__ inline void sync_cluster() {
  namespace ptx = cuda::ptx;
  ptx::barrier_cluster_arrive(ptx::sem_release);
  ptx::barrier_cluster_wait(ptx::sem_acquire);
}

/// The address, in block `block` of the cluster, of what `shared` is in this one: good for loads,
/// stores and the functions below. (PTX ISA 9.7.9.23, mapa)
template <class T>
__device__ T* shared_of_block(std::uint32_t block, T* shared) {
  return static_cast<T*>(__cluster_map_shared_rank(shared, block));
}

/// A barrier of another block (or of this one): it can be arrived at, never waited for. A register
/// value.
class remote_barrier {
 public:
  /// The one that `barrier` is in block `block`.
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

/// Starts storing `value` (4, 8 or 16 bytes; `remote`, from `shared_of_block`, a multiple of them)
/// into a block's shared memory. Its bytes complete on `barrier`, of the same block. Any thread,
/// each for its own value.
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
