// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/map_status.hpp>
#include <tmap/tensor_map.hpp>

namespace tmap {

struct slot_record;

/// What a kernel needs of a batch, passed by value. Trivially copyable; owns nothing: good as long
/// as the `map_batch` it came from, on the streams that batch knows. `device::acquire(ref, i)`
/// (device/acquire.cuh) is the way to map i. 40 bytes, those of `tmap_batch_ref` (c/service.h):
/// whoever launches a kernel may pass them without this header.
struct map_batch_ref {
  const tensor_map* slots{};
  /// Beside `slots`; null for a trusted batch. Those of a reserved batch are its kernel's to write.
  const map_status* statuses{};
  const std::uint32_t* indices{};  ///< map i is in slot `indices[i]`; null: in slot i
  std::uint32_t count{};
  std::uint32_t generation{};    ///< of the lease, for `records`
  const slot_record* records{};  ///< beside `slots`; null unless the service checks hazards

  TMAP_HOST_DEVICE std::uint32_t slot_index(std::uint32_t i) const { return indices == nullptr ? i : indices[i]; }
  TMAP_HOST_DEVICE const tensor_map* slot(std::uint32_t i) const { return slots + slot_index(i); }
  TMAP_HOST_DEVICE map_status status(std::uint32_t i) const {
    return statuses == nullptr ? map_status{} : statuses[slot_index(i)];
  }
};
static_assert(sizeof(map_batch_ref) == 40);

/// What a kernel that encodes for itself needs of a reserved batch (`map_service::reserve`), passed
/// by value: each map is to be written and published once (device/encode_warp.cuh). Trivially
/// copyable; good as long as the `map_batch`.
struct map_batch_writer {
  tensor_map* slots{};
  map_status* statuses{};
  std::uint32_t count{};
  std::uint32_t generation{};
  slot_record* records{};
};

}  // namespace tmap
