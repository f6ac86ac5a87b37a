// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/peer_memory_ref.hpp>

#include <cstdint>
#include <memory>

namespace tmap {

namespace peer {
struct access;
}  // namespace peer

/// The window of one rank and the addresses of all others: `bytes` bytes on each rank of a group
/// that every rank can reach. It is move-only. Kernels take `ref()`.
///
/// The destructor frees this rank's part, and so waits for this rank's GPU. Destroy it when no
/// kernel of any rank uses the window any more. The windows of a group `of_process` are freed
/// together with the last rank's `peer_memory`. The destructor does nothing in a forked child, and
/// nothing once the process exits. It leaves the memory of a group that is broken, because a kernel
/// of a peer may still use it.
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

  /// Returns the addresses for kernels of this rank. `ranks` is 0 if the object is empty.
  const peer_memory_ref& ref() const { return ref_; }
  std::uint64_t bytes() const { return ref_.bytes; }
  /// Returns the address of this rank's own user bytes; null if the object is empty.
  void* data() const { return owner_ == nullptr ? nullptr : reinterpret_cast<void*>(ref_.address(ref_.rank)); }

 private:
  friend struct peer::access;
  std::shared_ptr<void> owner_;
  peer_memory_ref ref_;
};

}  // namespace tmap
