// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "apps/demo/engine.hpp"

namespace tmap::demo {

/// Counts the elements of all tiles, and those that are wrong.
struct check_result {
  std::uint64_t elements{};
  std::uint64_t wrong{};
  std::uint64_t filled{};  ///< outside their tensor
  double seconds{};
};

/// Compares each element of each tile with the one that the batch's memory has at its coordinates.
check_result check_tiles(const demo_batch& batch, const engine_run& run);

/// Returns sixteen digits (FNV-1a) of all bytes of all tiles: equal on every engine.
std::string checksum_of(const std::vector<std::byte>& tiles);

}  // namespace tmap::demo
