// SPDX-License-Identifier: Apache-2.0
#pragma once

// Three ways to have a group's map. Each is used by the loading warp of a block, which at every
// change of group calls
// - `make`, all lanes together: whatever has to be done so that there is a map of the group;
// - `acquire`, one thread: the map, ready for loads by this thread;
// - `first_row`: the row of that map with which the group begins.

#include <tmap/device/acquire.cuh>
#include <tmap/device/encode_warp.cuh>
#include <tmap/tensor_map.hpp>

#include <cstdint>

#include "apps/samples/group_maps/group.hpp"
#include "apps/samples/group_maps/walk_arguments.cuh"

namespace group_maps {

/// One map of the tensor that all groups are rows of. Nothing is made and nothing acquired. But the
/// map ends where the tensor ends: a group's last tile also brings rows of the next group, a store
/// of it would overwrite them, and groups at addresses of their own have no such map.
class static_map {
 public:
  __device__ static_map(const walk_arguments& in, block_memory&) : whole_(in.whole) {}

  __device__ void make(const group&) {}
  __device__ tmap::device::acquired_map acquire(std::uint32_t) const { return tmap::device::parameter_map(whole_); }
  __device__ static std::uint32_t first_row(const group& of) { return of.first_row; }

 private:
  const tmap::tensor_map& whole_;
};

/// A map a group, made by `encode_batch` before this kernel: one launch, however many groups and
/// blocks.
class map_made_ahead {
 public:
  __device__ map_made_ahead(const walk_arguments& in, block_memory&) : maps_(in.maps) {}

  __device__ void make(const group&) {}
  __device__ tmap::device::acquired_map acquire(std::uint32_t index) const {
    return tmap::device::acquire(maps_ + index);
  }
  __device__ static std::uint32_t first_row(const group&) { return 0; }

 private:
  const tmap::tensor_map* maps_;
};

/// Maps of the block's own, which it writes anew: composed in shared memory, stored to a slot,
/// published, and then acquired like any other. A slot may be written again when no load reads it
/// any more. The block has one more of them than the ring has stages, and each group has at least
/// one load: when a slot's turn comes again, so many loads have followed its last one that the
/// loading warp has waited for the stage which that one filled.
class map_changed_here {
 public:
  __device__ map_changed_here(const walk_arguments& in, block_memory& memory)
      : encoder_(in.base, memory.stage, shape{}), slots_(in.own_maps + blockIdx.x * own_maps) {}

  __device__ void make(const group& of) {
    // Not judged: groups are validated once, not by each block that meets them.
    const tmap::device::map_guard trusted{.page = nullptr, .trusted = true};
    turn_ = turn_ + 1 == own_maps ? 0 : turn_ + 1;
    encoder_.compose([&](std::uint64_t) { return patch_of(of); }, 0, 1, trusted);
    encoder_.store(slots_ + turn_, 1);
    encoder_.release();
  }
  __device__ tmap::device::acquired_map acquire(std::uint32_t) const { return tmap::device::acquire(slots_ + turn_); }
  __device__ static std::uint32_t first_row(const group&) { return 0; }

 private:
  using shape = tmap::device::fixed_shape<2, group_fields>;

  tmap::device::warp_encoder<shape> encoder_;
  tmap::tensor_map* slots_;
  std::uint32_t turn_{own_maps - 1};
};

}  // namespace group_maps
