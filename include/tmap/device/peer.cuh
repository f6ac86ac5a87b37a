// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Data and signals between the ranks of a group. `offset` is a byte of the user in the window of
/// `rank`. Addresses, offsets and bytes of copies are multiples of 16, those of signals multiples
/// of
/// 4. One thread calls each function. Copies need the same fences as other bulk copies, and
/// peer_order.cuh orders them for other ranks.
///
/// Tiles need no functions of their own: a map of a tensor on another rank
/// (`encode_choices::owners`) goes to `store_tile`, `load_tile` and `reduce_tile`.

#include <tmap/detail/peer_barrier.hpp>
#include <tmap/detail/peer_put.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/device/bulk_copy.cuh>
#include <tmap/device/peer_link.cuh>
#include <tmap/device/peer_order.cuh>
#include <tmap/device/reduce_copy.cuh>
#include <tmap/peer_memory_ref.hpp>
#include <tmap/peer_verdict.hpp>

namespace tmap::device {

namespace detail {

template <class T>
__device__ T* at_peer(const peer_memory_ref& window, std::uint32_t rank, std::uint64_t offset) {
  return reinterpret_cast<T*>(window.address(rank, offset));
}

}  // namespace detail

/// Starts storing `bytes` of shared memory to a rank, in this thread's open group of stores.
__device__ inline void put_bytes(const peer_memory_ref& window, std::uint32_t rank, std::uint64_t offset,
                                 const void* shared, std::uint32_t bytes) {
  store_bytes(detail::at_peer<void>(window, rank, offset), shared, bytes);
}

/// Starts adding `bytes` of shared memory to what a rank has, each element atomically. `T` is one
/// of the types of `reduce_bytes`. The order of additions of several ranks is not fixed.
template <class T>
__device__ void add_bytes(const peer_memory_ref& window, std::uint32_t rank, std::uint64_t offset, const T* shared,
                          std::uint32_t bytes) {
  reduce_bytes<reduction::add>(detail::at_peer<T>(window, rank, offset), shared, bytes);
}

/// Starts loading `bytes` from a rank. They complete on `barrier`, which must already expect them.
__device__ inline void get_bytes(void* shared, const peer_memory_ref& window, std::uint32_t rank, std::uint64_t offset,
                                 std::uint32_t bytes, tile_barrier& barrier) {
  load_bytes(shared, detail::at_peer<const void>(window, rank, offset), bytes, barrier);
}

/// Raises a signal of a rank (peer_order.cuh).
__device__ inline void raise(const peer_memory_ref& window, std::uint32_t rank, std::uint64_t offset,
                             std::uint32_t by = 1) {
  raise(detail::at_peer<std::uint32_t>(window, rank, offset), by);
}

/// Raises a signal of a rank after `quiet` (peer_order.cuh).
__device__ inline void raise_released(const peer_memory_ref& window, std::uint32_t rank, std::uint64_t offset,
                                      std::uint32_t by = 1) {
  raise_released(detail::at_peer<std::uint32_t>(window, rank, offset), by);
}

/// Waits for a signal of this rank (peer_order.cuh). Returns false at the deadline, or once the
/// group is broken.
[[nodiscard]] __device__ inline bool wait_until(const peer_memory_ref& window, std::uint64_t offset,
                                                std::uint32_t value, std::uint64_t deadline) {
  const std::uint64_t broken = window.windows[window.rank] + offsetof(tmap::detail::peer::window_header, broken);
  return wait_until(detail::at_peer<const std::uint32_t>(window, window.rank, offset), value, deadline,
                    reinterpret_cast<const std::uint32_t*>(broken));
}

/// Waits until all ranks have come here. What this thread wrote and stored before, all ranks may
/// read after it, by loads and by bulk copies. One thread of a rank calls it, and no other barrier
/// of this window may run at the same time. The epoch lies in the window, so graphs may replay it.
[[nodiscard]] __device__ inline peer_verdict barrier(const peer_memory_ref& window, std::uint64_t deadline) {
  peer_link link(window);
  return tmap::detail::peer::barrier(link, deadline);
}

/// Stores `bytes` of shared memory to a rank and raises its signal, once it has returned the piece
/// before (`return_put`). A thread that puts into a rank does so alone.
[[nodiscard]] __device__ inline peer_verdict put_and_raise(const peer_memory_ref& window, std::uint32_t rank,
                                                           std::uint64_t offset, const void* shared,
                                                           std::uint32_t bytes, std::uint64_t deadline) {
  peer_link link(window, shared);
  return tmap::detail::peer::put_and_raise(link, rank, peer_header_bytes + offset, 0, bytes, deadline);
}

/// Waits for the next piece that `rank` puts here. Then loads and bulk copies of this thread may
/// read it.
[[nodiscard]] __device__ inline peer_verdict take_put(const peer_memory_ref& window, std::uint32_t rank,
                                                      std::uint64_t deadline) {
  peer_link link(window);
  return tmap::detail::peer::take_put(link, rank, deadline);
}

/// Lets `rank` overwrite the piece that was taken from it. All reads of it must have ended.
__device__ inline void return_put(const peer_memory_ref& window, std::uint32_t rank) {
  peer_link link(window);
  tmap::detail::peer::return_put(link, rank);
}

/// Returns how the last exchange or awaiting call of this rank ended. A kernel that overwrites rows
/// after `await_pulls_async` must leave them alone unless the status is ok.
__device__ inline peer_verdict last_verdict(const peer_memory_ref& window) {
  const peer_link link(window);
  return tmap::detail::peer::verdict_of(link.load(link.rank(), offsetof(tmap::detail::peer::window_header, verdict)));
}

}  // namespace tmap::device
