// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parameters of the walking kernel and the shared memory of a block.

#include <tmap/device/encode_warp.cuh>
#include <tmap/device/stage_ring.cuh>
#include <tmap/map_template.hpp>
#include <tmap/tensor_map.hpp>

#include <cstdint>

#include "apps/samples/group_maps/group.hpp"
#include "apps/samples/group_maps/group_walk.cuh"

namespace group_maps {

inline constexpr std::uint32_t stages = 4;
inline constexpr std::uint32_t own_maps = stages + 1;  // per block that rewrites its maps
/// The fields that differ from group to group: address, both dims and the stride.
inline constexpr tmap::patch_fields group_fields = tmap::patch_extents(2);

struct walk_arguments {
  tmap::tensor_map whole;        ///< of the tensor that contains all groups' rows
  tmap::map_template base;       ///< for maps of single groups
  const tmap::tensor_map* maps;  ///< one per group
  tmap::tensor_map* own_maps;    ///< `group_maps::own_maps` per block
  group_list groups;
  std::uint32_t columns;
  part_sum* sums;  ///< for each tile, one per consuming warp
};

struct alignas(128) block_memory {
  unsigned char ring[stages][box_bytes];
  tmap::device::ring_barriers<stages> barriers;
  tmap::device::warp_stage stage;
};

}  // namespace group_maps
