// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tensor_spec.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tmap::drawing {

/// Shared memory has 32 banks of 4 bytes; one cycle reads one word of each.
inline constexpr std::uint32_t bank_count = 32;

/// Counts the different words of each bank that one read touches, in the group of lanes that takes
/// longest.
using bank_load = std::array<std::uint32_t, bank_count>;

/// Returns the bank load of a warp's read: lane i reads `bytes` (4, 8 or 16, or less) at
/// `addresses[i]`. The hardware takes all lanes at once for up to 4 bytes, half of them for 8 bytes
/// and a quarter for 16.
bank_load load_of(const std::vector<std::uint32_t>& addresses, std::uint32_t bytes);

/// Returns the cycles a read takes: 1 has no conflict.
std::uint32_t ways_of(const bank_load& load);

/// Describes a read that kernels often make of a tile.
struct tile_read {
  std::string name;
  std::string meaning;
  bank_load with_swizzle{};
  bank_load without_swizzle{};  ///< the same read of a tile that is not swizzled
};

/// Lists the common reads that a tile of `spec`, which breaks no rule, is large enough for.
std::vector<tile_read> common_reads(const tensor_spec& spec);

}  // namespace tmap::drawing
