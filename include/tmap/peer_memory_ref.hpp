// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/device_address.hpp>

namespace tmap {

/// The most ranks of a group. It is the number of Hopper GPUs in the largest NVLink domain.
inline constexpr std::uint32_t max_group_ranks = 32;

/// The bytes in front of the user's bytes in each window. They hold signals, epochs, status words,
/// and rows so few that they come with an announcement.
inline constexpr std::uint64_t peer_header_bytes = 262144;

/// A window as a kernel takes it, by value: the address of each rank's window as this rank's GPU
/// sees it. Trivially copyable. Owns nothing: it is valid as long as the `peer_memory` of every
/// rank. A kernel may read it on any stream of the GPU of this rank.
struct peer_memory_ref {
  device_address windows[max_group_ranks]{};  ///< of each rank; the header comes first, then the user's bytes
  std::uint64_t bytes{};                      ///< of the user, the same on every rank
  std::uint32_t rank{};                       ///< this rank
  std::uint32_t ranks{};

  /// Returns where byte `offset` of the user's bytes lies on rank `owner`, which must be less than
  /// `ranks`.
  TMAP_HOST_DEVICE std::uint64_t address(std::uint32_t owner, std::uint64_t offset = 0) const {
    return windows[owner] + peer_header_bytes + offset;
  }

  /// Returns where on rank `owner` the byte lies that is at `own` in this rank's window. Returns 0
  /// for an address outside the user's bytes, and for a rank that is not in the group. Any bits are
  /// legal input.
  TMAP_HOST_DEVICE std::uint64_t at_owner(std::uint32_t owner, std::uint64_t own) const {
    const std::uint64_t offset = own - address(rank);
    return owner < ranks && offset < bytes ? address(owner, offset) : 0;
  }
};
static_assert(std::is_trivially_copyable_v<peer_memory_ref>);

/// The owner of each map of a batch whose tensors lie in a window: tensor i is on rank `ranks[i]`.
/// Its patch has the address that it would have in this rank's own window.
struct map_owners {
  const std::uint32_t* ranks{};  ///< device memory, one for each map; null: all addresses are what they are
  peer_memory_ref memory{};
};

}  // namespace tmap
