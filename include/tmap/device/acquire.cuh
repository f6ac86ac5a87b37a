// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// How a kernel gets a tensor map it may use. The copy engine reads maps through a cache of its
/// own, which neither a kernel boundary nor a barrier refreshes. So every thread block that uses a
/// map in global memory must acquire it (PTX ISA 8.9.5 "Causality order", CUDA programming guide
/// "Encoding a tensor map on device").

#include <tmap/detail/standard.hpp>
#include <tmap/device/hazards.cuh>
#include <tmap/device/ptx.cuh>
#include <tmap/map_batch_ref.hpp>
#include <tmap/tensor_map.hpp>

#include <cuda/ptx>

namespace tmap::device {

/// Names who wrote the map: a kernel on this GPU, or anyone (the host by a copy, another GPU).
enum class map_scope : std::uint32_t { gpu, sys };

/// A tensor map that this thread block may use: the only type the tile functions accept. Trivially
/// copyable. Another thread of the same block may use a copy once a barrier orders it after the
/// acquire; another block must acquire.
class acquired_map : detail::slot_watch {
 public:
  /// Returns the map. Call it again for each use: with TMAP_CHECK_HAZARDS it checks that nothing
  /// wrote the slot since the acquire.
  __device__ const tensor_map* get() const {
    check();
    return map_;
  }

 private:
  explicit __device__ acquired_map(const tensor_map* map, const slot_watch& watch = {})
      : slot_watch(watch), map_(map) {}
  friend __device__ acquired_map acquire(const tensor_map* slot, map_scope scope);
  friend __device__ acquired_map acquire(const map_batch_ref& ref, std::uint32_t i, map_scope scope);
  friend __device__ acquired_map parameter_map(const tensor_map& map);
  friend __device__ acquired_map constant_map(const tensor_map& map);

  const tensor_map* map_;
};
static_assert(checks_hazards || sizeof(acquired_map) == sizeof(const tensor_map*), "checks cost nothing when off");

/// Acquires the map in `slot` (global memory, 128-byte aligned). The map must have been published
/// before, in an order that this thread observes (an earlier kernel, or a flag it waited for). Each
/// block acquires each map once, and again after the slot was rewritten. Call it from one thread:
/// lanes with different slots take turns. It also waits until this thread's earlier bulk stores
/// have read their shared memory, so a thread that stores should not acquire. An acquire takes some
/// 45 cycles. The next load through the map takes 250 more, in every block of this multiprocessor,
/// as after a first touch. An early `prefetch` hides them (docs/measurements/using_maps.md).
__device__ inline acquired_map acquire(const tensor_map* slot, map_scope scope = map_scope::gpu) {
  namespace ptx = cuda::ptx;
  if (scope == map_scope::gpu) {
    ptx::fence_proxy_tensormap_generic(ptx::sem_acquire, ptx::scope_gpu, slot, ptx::n32_t<tensor_map_bytes>{});
  } else {
    ptx::fence_proxy_tensormap_generic(ptx::sem_acquire, ptx::scope_sys, slot, ptx::n32_t<tensor_map_bytes>{});
  }
  // For the fence, ptxas 13.0 emits only the invalidation, and nothing that waits for it. A copy
  // that follows at once could still read the old map. Waiting for an empty bulk group makes ptxas
  // emit the missing flush.
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
  return acquired_map(slot);
}

/// Acquires map `i` of a batch, as above. An `i` past the end of the batch, and so any `i` of an
/// empty one, is a failed assertion in a debug build and a trap in any other. It never reaches a
/// slot.
__device__ inline acquired_map acquire(const map_batch_ref& ref, std::uint32_t i, map_scope scope = map_scope::gpu) {
  const detail::slot_watch watch(ref, i);
  assert(i < ref.count);
  if (i >= ref.count) __trap();
  const tensor_map* const slot = ref.slot(i);
  acquire(slot, scope);
  return acquired_map(slot, watch);
}

/// Returns a map that is a `const __grid_constant__` kernel parameter. It needs no fence.
__device__ inline acquired_map parameter_map(const tensor_map& map) {
  assert(__isGridConstant(&map));
  return acquired_map(&map);
}

/// Returns a map in `__constant__` memory. It needs no fence.
__device__ inline acquired_map constant_map(const tensor_map& map) {
  assert(__isConstant(&map));
  return acquired_map(&map);
}

/// Brings the map into the copy engine's cache ahead of its first use: right after the acquire, not
/// right before the copy. A multiprocessor holds eight maps.
__device__ inline void prefetch(acquired_map map) {
  ptx::prefetch_tensormap(map.get());
}

}  // namespace tmap::device
