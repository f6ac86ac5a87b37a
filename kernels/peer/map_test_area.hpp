// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lays out what the test of maps (map_self_test.cuh) keeps in the header of each window. It comes
// after the slots of the self-test, where exchanges announce.

#include <tmap/tensor_map.hpp>
#include <tmap/tensor_spec.hpp>

#include "kernels/peer/protocol_self_test.hpp"

namespace tmap::kernels::peer {

inline constexpr std::uint32_t test_tile_columns = 8, test_tile_rows = 4;
inline constexpr std::uint32_t test_tile_values = test_tile_columns * test_tile_rows;
/// The tensor has the first half of each row. The rest lies outside, so a store that ignores the
/// bounds of its map is seen.
inline constexpr std::uint32_t test_tensor_columns = 4;

/// Holds the maps of this rank, and what all ranks store here. The tensor has a tile for each rank
/// and one more, to which all ranks add.
struct map_test_area {
  tensor_map maps[max_group_ranks];  ///< for each rank, that of the tensor there; only this rank uses them
  float tensor[max_group_ranks + 1][test_tile_values];
  float sums[test_tile_values];  ///< to which all ranks add bytes
};

inline constexpr std::uint64_t map_test_at =
    (self_test_end + alignof(tensor_map) - 1) / alignof(tensor_map) * alignof(tensor_map);
static_assert(map_test_at + sizeof(map_test_area) <= offsetof(tmap::detail::peer::window_header, eager));

/// Returns the spec of the tensor on each rank, without its address. The last row of the last tile
/// is outside.
TMAP_HOST_DEVICE constexpr tensor_spec map_test_spec(std::uint32_t ranks) {
  tensor_spec spec;
  spec.type = element_type::f32;
  spec.rank = 2;
  spec.global_dim[0] = test_tensor_columns;
  spec.global_dim[1] = (ranks + 1) * test_tile_rows - 1;
  spec.global_stride_bytes[0] = test_tile_columns * sizeof(float);
  spec.box_dim[0] = test_tile_columns;
  spec.box_dim[1] = test_tile_rows;
  return spec;
}

}  // namespace tmap::kernels::peer
