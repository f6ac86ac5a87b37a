// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// The order of accesses of several GPUs (docs/peers.md, "Order, and how it is tested"). Bulk
/// copies have no order, not even those of one thread. A rank that put data calls `quiet`, and then
/// `raise_released` in the same thread. A rank that needs the data calls `wait_until` in one
/// thread. Then that thread may load the data, and other threads of its block after a block
/// barrier. Bulk copies may read it after `fence_global_accesses` in the thread that issues them. A
/// signal is a word of global memory of this or another GPU that is only ever raised.

#include <tmap/detail/peer_window.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/device/ptx_peer.cuh>
#include <tmap/device/tile_copy.cuh>

#include <cuda/ptx>

namespace tmap::device {

/// Returns this GPU's clock in nanoseconds. Deadlines are times of this clock. It advances in steps
/// of up to a microsecond.
__device__ inline std::uint64_t clock_now() {
  return cuda::ptx::get_sreg_globaltimer();
}

/// Waits until the sources of all this thread's stores may be overwritten. It proves nothing about
/// their arrival. Closes the open group of stores.
__device__ inline void flush() {
  commit_stores();
  wait_stores_read<0>();
}

/// Waits until what this thread stored may be announced, by `raise_released` or `raise` in this
/// thread: everything, or all but its last `Pending` groups of stores. Closes the open group, which
/// is one of them even if it is empty.
template <int Pending = 0>
__device__ void quiet() {
  commit_stores();
  wait_stores_written<Pending>();
  cuda::ptx::fence(cuda::ptx::sem_acq_rel, cuda::ptx::scope_sys);
}

/// Adds to a signal. A thread that waits for it sees what this thread wrote and saw before, and
/// what it stored by bulk copies before its last `quiet`.
__device__ inline void raise(std::uint32_t* signal, std::uint32_t by = 1) {
  ptx::red_add_release_sys(signal, by);
}

/// Adds to a signal after `quiet`. A thread that waits for it sees what this thread wrote, saw and
/// stored before that. It costs no fence of its own, so one `quiet` serves many signals.
__device__ inline void raise_released(std::uint32_t* signal, std::uint32_t by = 1) {
  ptx::red_add_relaxed_sys(signal, by);
}

using tmap::detail::peer::has_come;

namespace detail {

/// Looks until `look` returns true, and returns true. Returns false at the deadline, or once the
/// word `ended` is not zero, if there is one.
template <class Look>
[[nodiscard]] __device__ bool poll_relaxed(const Look& look, std::uint64_t deadline, const std::uint32_t* ended) {
  TMAP_KEEP_ROLLED
  for (;;) {
    const bool is_over = ended != nullptr && ptx::ld_relaxed_sys(ended) != 0;
    if (look()) return true;
    if (is_over || clock_now() >= deadline) return false;
  }
}

/// Does the same, and then acquires what was announced to the relaxed loads of `look`: one fence
/// serves all of them, and none of them holds up the next one.
template <class Look>
[[nodiscard]] __device__ bool poll_and_acquire(const Look& look, std::uint64_t deadline, const std::uint32_t* ended) {
  const bool has_come = poll_relaxed(look, deadline, ended);
  cuda::ptx::fence(cuda::ptx::sem_acquire, cuda::ptx::scope_sys);
  return has_come;
}

/// Looks until `look` returns true, and returns true. Returns false at the deadline, or once the
/// word `ended` is not zero, if there is one. `look(true)` looks by an acquire, and one such look
/// has returned true in the end. The first looks acquire, so what comes soon is not read again.
/// With `poll_and_acquire` combines, in which many warps wait, are slower
/// (docs/measurements/peers.md). Each acquire empties this multiprocessor's L1 cache, so a longer
/// wait polls by relaxed loads.
template <class Look>
[[nodiscard]] __device__ bool poll(const Look& look, std::uint64_t deadline, const std::uint32_t* ended) {
  constexpr std::uint32_t acquiring_looks = 16;
  TMAP_KEEP_ROLLED
  for (std::uint32_t looks = 0;; ++looks) {
    // An acquire holds up later loads, so `ended` comes first.
    const bool is_over = ended != nullptr && ptx::ld_relaxed_sys(ended) != 0;
    const bool acquires = looks < acquiring_looks;
    if (look(acquires)) return acquires || look(true);
    if (is_over || clock_now() >= deadline) return false;
  }
}

}  // namespace detail

/// Waits until a signal has come to `value`, and returns true. Returns false at the deadline
/// (`clock_now`), or once the word `ended` is not zero, if there is one. With deadline 0 it looks
/// once. It never traps.
[[nodiscard]] __device__ inline bool wait_until(const std::uint32_t* signal, std::uint32_t value,
                                                std::uint64_t deadline, const std::uint32_t* ended = nullptr) {
  const auto look = [&](bool acquires) {
    // The value of the acquire is used, although it can only be larger: ptxas 13.0 leaves out an
    // acquiring load whose value nobody uses, and keeps only the emptying of L1.
    return has_come(acquires ? ptx::ld_acquire_sys(signal) : ptx::ld_relaxed_sys(signal), value);
  };
  return detail::poll(look, deadline, ended);
}

/// Orders what this thread knows of global memory by ordinary accesses before its later bulk
/// copies. Call it between `wait_until` and copies that read what was announced.
__device__ inline void fence_global_accesses() {
  cuda::ptx::fence_proxy_async(cuda::ptx::space_global);
}

}  // namespace tmap::device
