// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/peer_memory_ref.hpp>

#include <cstdint>
#include <memory>

namespace tmap {

namespace peer {
struct access;
class local_window;
}  // namespace peer

/// The window of one rank and the addresses of all others: `bytes` bytes on each rank of a group
/// that every rank can reach. It is move-only. Kernels take `ref()`.
///
/// The destructor frees this rank's part, and so waits for this rank's GPU. Destroy it when no
/// kernel of any rank uses the window any more. With one of `peer_group::allocate_local` all ranks
/// must have got what this one sent them. The windows of a group `of_process` are freed together
/// with the last rank's `peer_memory`. The destructor does nothing in a forked child, and nothing
/// once the process exits. It leaves the memory of a group that is broken, because a kernel of a
/// peer may still use it.
///
/// Different objects may be used by different threads. `ref`, `bytes` and `data` may be called by
/// any thread while none moves or destroys the object.
class TMAP_API peer_memory {
 public:
  peer_memory() = default;
  peer_memory(peer_memory&& other) noexcept;
  peer_memory& operator=(peer_memory&& other) noexcept;
  ~peer_memory();

  explicit operator bool() const { return owner_ != nullptr; }

  /// Returns whether all ranks reach the window. They do not reach one of
  /// `peer_group::allocate_local`: exchanges of rows take it, and calls that need an address on
  /// another rank refuse it with `no_peer_access`. It also keeps the group's own communicator.
  bool reaches_peers() const { return local_ == nullptr; }

  /// Returns the addresses for kernels of this rank. `ranks` is 0 if the object is empty. If ranks
  /// do not reach each other, the addresses of the others are 0.
  const peer_memory_ref& ref() const { return ref_; }
  std::uint64_t bytes() const { return ref_.bytes; }
  /// Returns the address of this rank's own user bytes; null if the object is empty.
  void* data() const { return owner_ == nullptr ? nullptr : reinterpret_cast<void*>(ref_.address(ref_.rank)); }

 private:
  friend struct peer::access;
  std::shared_ptr<void> owner_;
  const peer::local_window* local_{};
  peer_memory_ref ref_;
};

}  // namespace tmap
