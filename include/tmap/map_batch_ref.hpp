// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/map_status.hpp>
#include <tmap/tensor_map.hpp>

namespace tmap {

struct slot_record;

/// The maps of a batch as a kernel takes them, by value. Trivially copyable. Owns nothing: it is
/// valid as long as its `map_batch`, on the streams of that batch. `device::acquire(ref, i)`
/// (device/acquire.cuh) returns map i. It has the 40 bytes of `tmap_batch_ref` (c/service.h), which
/// a launch without this header may pass.
struct map_batch_ref {
  const tensor_map* slots{};
  /// One for each slot; null for a trusted batch. The kernel of a reserved batch writes them.
  const map_status* statuses{};
  const std::uint32_t* indices{};  ///< map i is in slot `indices[i]`; null: in slot i
  std::uint32_t count{};
  std::uint32_t generation{};    ///< of the lease, for `records`
  const slot_record* records{};  ///< one for each slot; null unless the service checks hazards

  TMAP_HOST_DEVICE std::uint32_t slot_index(std::uint32_t i) const { return indices == nullptr ? i : indices[i]; }
  TMAP_HOST_DEVICE const tensor_map* slot(std::uint32_t i) const { return slots + slot_index(i); }
  TMAP_HOST_DEVICE map_status status(std::uint32_t i) const {
    return statuses == nullptr ? map_status{} : statuses[slot_index(i)];
  }
};
static_assert(sizeof(map_batch_ref) == 40);

/// A reserved batch (`map_service::reserve`) as the kernel that encodes it takes it, by value. The
/// kernel writes and publishes each map once (device/encode_warp.cuh). Trivially copyable. Valid as
/// long as the `map_batch`.
struct map_batch_writer {
  tensor_map* slots{};
  map_status* statuses{};
  std::uint32_t count{};
  std::uint32_t generation{};
  slot_record* records{};
};

}  // namespace tmap
