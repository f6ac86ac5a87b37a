// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>
#include <tmap/peer_memory_ref.hpp>

#include <cstdint>
#include <memory>

#include "kernels/peer_launch.hpp"
#include "lib/peer/communicator.hpp"

namespace tmap::peer {

/// A window that peers do not reach, and the room for parcels that follows it. NCCL carries them
/// (kernels/peer/protocol_parcels.hpp). Its calls are calls of the group.
class local_window {
 public:
  local_window(std::shared_ptr<communicator> over, std::uint64_t bytes, std::uint64_t pair_bytes);
  ~local_window();
  local_window(const local_window&) = delete;
  local_window& operator=(const local_window&) = delete;

  [[nodiscard]] result<void> allocate();
  /// Carries parcels once, so that NCCL connects the ranks before a graph is captured. Collective.
  [[nodiscard]] result<void> connect();

  device_address address() const { return image_.windows[image_.rank]; }
  /// Returns the window as kernels of the protocol take it, with an image for those of other ranks.
  const peer_memory_ref& image() const { return image_; }

  /// Enqueues this rank's part of an exchange. `patience` is that of the kernel.
  [[nodiscard]] result<void> exchange(kernels::peer::exchange_request request, std::uint64_t patience,
                                      cudaStream_t stream) const;
  /// Enqueues a wait for all ranks.
  [[nodiscard]] result<void> meet(cudaStream_t stream) const;

 private:
  [[nodiscard]] result<void> carry(std::uint64_t bytes, cudaStream_t stream) const;
  std::uint64_t* numbers_at(std::uint64_t offset) const;

  const std::shared_ptr<communicator> over_;
  const kernels::peer::parcel_layout at_;
  peer_memory_ref image_;
  void* data_{};
};

}  // namespace tmap::peer
