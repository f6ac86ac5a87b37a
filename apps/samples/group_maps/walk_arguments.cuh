// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the walking kernel is given, and the shared memory of a block.

#include <tmap/device/encode_warp.cuh>
#include <tmap/device/stage_ring.cuh>
#include <tmap/map_template.hpp>
#include <tmap/tensor_map.hpp>

#include <cstdint>

#include "apps/samples/group_maps/group.hpp"
#include "apps/samples/group_maps/group_walk.cuh"

namespace group_maps {

inline constexpr std::uint32_t stages = 4;
inline constexpr std::uint32_t own_maps = stages + 1;  // of each block that changes its maps
/// What differs from group to group, as far as a map can tell: address, both dims and the stride.
inline constexpr tmap::patch_fields group_fields = tmap::patch_extents(2);

struct walk_arguments {
  tmap::tensor_map whole;        ///< of the tensor that all groups are rows of
  tmap::map_template base;       ///< of the maps of single groups
  const tmap::tensor_map* maps;  ///< one a group
  tmap::tensor_map* own_maps;    ///< `group_maps::own_maps` a block
  group_list groups;
  std::uint32_t columns;
  part_sum* sums;  ///< of each tile, one a consuming warp
};

struct alignas(128) block_memory {
  unsigned char ring[stages][box_bytes];
  tmap::device::ring_barriers<stages> barriers;
  tmap::device::warp_stage stage;
};

}  // namespace group_maps
