// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/device_address.hpp>
#include <tmap/error.hpp>
#include <tmap/peer_memory_ref.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "lib/peer/peer_calls.hpp"

namespace tmap::peer {

using addresses = std::array<device_address, max_group_ranks>;

class local_window;

/// The windows of all ranks as one rank sees them. `owner` frees what belongs to this rank.
struct window {
  addresses at{};  ///< 0 for a rank whose window this one does not reach
  std::shared_ptr<void> owner;
  const local_window* local{};  ///< null if all ranks reach the window
};

/// Returns the bytes of a window with its header, for `bytes` of the user. The granule of NCCL's
/// windows is a page.
constexpr std::uint64_t window_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t page = 4096;
  return (peer_header_bytes + bytes + page - 1) / page * page;
}

/// Finds the addresses of a group's windows. Each way to make a group is one of these, and nothing
/// else knows which. All functions may throw `std::bad_alloc`.
class provider {
 public:
  virtual ~provider() = default;
  /// Opens the next window of `bytes` bytes of the user.
  [[nodiscard]] virtual result<window> open(std::uint64_t bytes) = 0;
  /// Opens the next window that peers do not reach. Fails if the group has no communicator.
  [[nodiscard]] virtual result<window> open_local(std::uint64_t bytes, std::uint64_t pair_bytes);
  /// Returns the failure after which the group cannot be used, if there was one.
  [[nodiscard]] virtual result<void> check() = 0;
};

/// Remembers the process that an object of CUDA or NCCL was made in.
class birthplace {
 public:
  explicit birthplace(const peer_calls& calls) : calls_{calls}, process_id_{calls.process_id()} {
    static_cast<void>(calls.is_exiting());  // watches from now on
  }

  bool is_forked() const { return calls_.process_id() != process_id_; }
  /// Returns whether a destructor may call CUDA and NCCL.
  bool may_end() const { return !is_forked() && !calls_.is_exiting(); }
  /// Fails with `forked` in a child.
  [[nodiscard]] result<void> check() const;

 private:
  const peer_calls& calls_;
  const int process_id_;
};

/// Makes a device current, and the earlier one again when it ends.
class device_guard {
 public:
  device_guard(const peer_calls& calls, int device);
  ~device_guard();
  device_guard(const device_guard&) = delete;
  device_guard& operator=(const device_guard&) = delete;

  cudaError_t code() const { return code_; }

 private:
  const peer_calls& calls_;
  int before_{-1};
  cudaError_t code_;
};

/// Sets device memory of the current device to zero, and waits until it is.
[[nodiscard]] result<void> clear(const peer_calls& calls, void* data, std::size_t bytes);

}  // namespace tmap::peer
