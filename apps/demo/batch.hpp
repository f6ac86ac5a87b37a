// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/rule.hpp>
#include <tmap/tensor_spec.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/drawing/loaded_tile.hpp"

namespace tmap::demo {

/// Describes one tensor of the demo. Its address counts from the begin of the batch's memory.
struct demo_tensor {
  std::string name;
  tensor_spec spec;
  bool is_wrong{};        ///< it breaks a rule, on purpose
  bool is_null{};         ///< its address is null, not one in the memory
  std::uint64_t bytes{};  ///< of memory that it takes

  /// Returns the spec for memory that begins at `base`.
  tensor_spec at(std::uint64_t base) const;
};

/// Names one tile to move: its tensor, its box and the place for its bytes.
struct demo_tile {
  std::uint32_t tensor{};
  drawing::coordinates at{};
  std::uint64_t offset{};  ///< in the array of all tiles, a multiple of 16
  std::uint64_t bytes{};   ///< of shared memory that the tile takes
};

/// Holds all tensors, the bytes of their memory and the tiles that are moved: each box of each
/// tensor that breaks no rule.
struct demo_batch {
  std::vector<demo_tensor> tensors;
  std::vector<std::byte> memory;
  std::vector<demo_tile> tiles;
  std::uint64_t tile_bytes{};
};

/// Returns the batch. It is the same on every machine.
demo_batch make_batch();

/// Names the address at which the demo's memory begins in the simulator.
inline constexpr std::uint64_t simulated_base = 0x7f0000000000;

/// Returns whether a tensor has a dim of 0. Such a tensor is no error: there is nothing to move.
bool is_empty(const tensor_spec& spec);

}  // namespace tmap::demo
