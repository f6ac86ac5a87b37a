// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tile_layout.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

// Rows of a tile as they lie in shared memory: chunks of 16 bytes, which the swizzle exchanges.

namespace tmap::simulator {

inline constexpr std::uint64_t chunk_bytes = 16;

/// Spreads a row over its chunks of the tile. The tile begins at `shared_address`, a multiple of
/// 128, so a chunk never leaves its 128-byte line.
inline void scatter_row(const std::byte* row, std::uint64_t bytes, std::byte* tile, std::uint64_t offset,
                        std::uint32_t shared_address, swizzle mode) {
  for (std::uint64_t done = 0; done < bytes; done += chunk_bytes) {
    std::memcpy(tile + (swizzled(shared_address + offset + done, mode) - shared_address), row + done, chunk_bytes);
  }
}

/// Does the inverse of `scatter_row`.
inline void gather_row(const std::byte* tile, std::uint64_t offset, std::byte* row, std::uint64_t bytes,
                       std::uint32_t shared_address, swizzle mode) {
  for (std::uint64_t done = 0; done < bytes; done += chunk_bytes) {
    std::memcpy(row + done, tile + (swizzled(shared_address + offset + done, mode) - shared_address), chunk_bytes);
  }
}

}  // namespace tmap::simulator
