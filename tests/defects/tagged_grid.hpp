// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/make_template.hpp>
#include <tmap/map_patch.hpp>

#include <cstdint>
#include <vector>

#include "device/gpu_fixture.hpp"

// Cuts the rows of two-dimensional tensors out of a common buffer. Every element of row r of the
// buffer holds the same tag.

namespace tmap::testing {

inline constexpr std::uint32_t grid_width = 32;
inline constexpr std::uint32_t grid_box_height = 8;
inline constexpr std::uint32_t grid_tile_elements = grid_width * grid_box_height;
inline constexpr std::uint64_t grid_pitch_bytes = grid_width * sizeof(std::uint32_t);

/// Returns the spec of `rows` rows that begin at `address`. The box is 32 by 8.
inline tensor_spec grid_spec(std::uint64_t address, std::uint64_t rows) {
  const std::uint64_t dims[] = {grid_width, rows};
  const std::uint32_t box[] = {grid_width, grid_box_height};
  return packed_spec(element_type::u32, address, dims, box);
}

/// Returns a template whose maps change their address and number of rows.
inline result<map_template> grid_template() {
  return make_template(grid_spec(1 << 20, 1), patch_address | patch_dim(1));
}

inline map_patch grid_patch(std::uint64_t address, std::uint64_t rows) {
  map_patch patch{};
  patch.global_address = address;
  patch.global_dim[0] = grid_width;
  patch.global_dim[1] = rows;
  patch.global_stride_bytes[0] = grid_pitch_bytes;
  return patch;
}

/// Holds a buffer of rows, each of one tag.
inline std::vector<std::uint32_t> grid_rows(const std::vector<std::uint32_t>& tag_of_row) {
  std::vector<std::uint32_t> elements;
  for (const std::uint32_t each : tag_of_row) elements.insert(elements.end(), grid_width, each);
  return elements;
}

}  // namespace tmap::testing
