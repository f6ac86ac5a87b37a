// SPDX-License-Identifier: Apache-2.0
#pragma once

// Three ways to get a group's map. The loading warp of a block uses one of them. At every change of
// group it calls
// - `make` with all lanes, which does all that is needed for the group's map to exist;
// - `acquire` with one thread, which returns the map, ready for loads by this thread;
// - `first_row`, which returns the row of that map at which the group begins.

#include <tmap/device/acquire.cuh>
#include <tmap/device/encode_warp.cuh>
#include <tmap/tensor_map.hpp>

#include <cstdint>

#include "apps/samples/group_maps/group.hpp"
#include "apps/samples/group_maps/walk_arguments.cuh"

namespace group_maps {

/// Uses one map of the tensor that contains all groups' rows. There is nothing to make or to
/// acquire. But the map ends only where the tensor ends: a group's last tile also loads rows of the
/// next group, and a store of it would overwrite them. Groups at unrelated addresses have no such
/// map.
class static_map {
 public:
  __device__ static_map(const walk_arguments& in, block_memory&) : whole_(in.whole) {}

  __device__ void make(const group&) {}
  __device__ tmap::device::acquired_map acquire(std::uint32_t) const { return tmap::device::parameter_map(whole_); }
  __device__ static std::uint32_t first_row(const group& of) { return of.first_row; }

 private:
  const tmap::tensor_map& whole_;
};

/// Uses one map per group. `encode_batch` makes them in one launch before this kernel, for any
/// number of groups and blocks.
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

/// Uses the block's own maps, which it rewrites: it composes a map in shared memory, stores it to a
/// slot, publishes it, and then acquires it like any other. A slot may be written again when no
/// load reads it any more. The block has one slot more than the ring has stages, and each group has
/// at least one load. When a slot's turn comes again, so many loads have followed its last one that
/// the loading warp has waited for the stage which that load filled.
class map_changed_here {
 public:
  __device__ map_changed_here(const walk_arguments& in, block_memory& memory)
      : encoder_(in.base, memory.stage, shape{}), slots_(in.own_maps + blockIdx.x * own_maps) {}

  __device__ void make(const group& of) {
    // The blocks do not validate groups: once is enough, before they start.
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
