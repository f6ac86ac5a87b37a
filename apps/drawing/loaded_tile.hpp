// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>
#include <tmap/tensor_spec.hpp>

#include <array>
#include <cstdint>
#include <vector>

namespace tmap::drawing {

/// A swizzle keeps so many bytes together.
inline constexpr std::uint32_t chunk_bytes = 16;

using coordinates = std::array<std::int32_t, max_rank>;

/// Names the chunk of the box that 16 bytes of shared memory hold after a load, and how many of
/// the bytes come from the tensor. The others are fill.
struct arrived_chunk {
  bool is_of_the_box{};  ///< false between narrow swizzled rows, which no copy writes
  std::uint32_t row{};   ///< of the box, all axes above the innermost counted as one
  std::uint32_t column{};
  std::uint32_t bytes_of_tensor{};
};

/// Holds what one load leaves in shared memory.
struct loaded_tile {
  std::uint32_t rows{};
  std::uint32_t row_chunks{};            ///< chunks of the box in a row
  std::uint64_t barrier_bytes{};         ///< that the barrier receives
  std::vector<arrived_chunk> in_shared;  ///< one for each 16 bytes of shared memory

  /// Returns the chunk at `column` of `row`. Both exist.
  const arrived_chunk& of_box(std::uint32_t row, std::uint32_t column) const;
};

/// Loads the box at `at` in the simulator, from memory that stands for the tensor's. Fails as
/// `simulator::copy_engine::load` does, and with `rule_broken` where `spec` breaks a rule.
[[nodiscard]] result<loaded_tile> load_tile(const tensor_spec& spec, const coordinates& at);

/// Returns how many boxes lie side by side along each axis of a tensor; 0 where it has no box.
std::array<std::uint64_t, max_rank> box_grid(const tensor_spec& spec);

/// Returns the first element of the last box along each axis: the one that is most often cut off.
/// Where the last boxes lie further than coordinates reach, the first ones.
coordinates last_box(const tensor_spec& spec);

}  // namespace tmap::drawing
