// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tensor_spec.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

// The permutation of 16-byte chunks in shared memory. PTX ISA 5.5.7; measured to depend on the absolute address.

namespace tmap::simulator {

inline constexpr std::uint64_t chunk_bytes = 16;

/// Which of the address bits 6:4 a mode changes: 1, 3 or 7 (shifted down by four); 0 without swizzle.
constexpr std::uint64_t swizzle_mask(swizzle mode) {
  return swizzle_span_bytes(mode) == 0 ? 0 : swizzle_span_bytes(mode) / chunk_bytes - 1;
}

/// Where the byte that would stand at `address` without swizzle stands. Its own inverse.
constexpr std::uint64_t swizzled(std::uint64_t address, std::uint64_t mask) {
  return address ^ (((address >> 7) & mask) << 4);
}

/// Spreads a row over its chunks of the tile. The tile begins at `shared_address`, a multiple of 128, so a chunk never
/// leaves its 128-byte line.
inline void scatter_row(const std::byte* row, std::uint64_t bytes, std::byte* tile, std::uint64_t offset,
                        std::uint32_t shared_address, std::uint64_t mask) {
  for (std::uint64_t done = 0; done < bytes; done += chunk_bytes) {
    std::memcpy(tile + (swizzled(shared_address + offset + done, mask) - shared_address), row + done, chunk_bytes);
  }
}

/// The inverse of `scatter_row`.
inline void gather_row(const std::byte* tile, std::uint64_t offset, std::byte* row, std::uint64_t bytes,
                       std::uint32_t shared_address, std::uint64_t mask) {
  for (std::uint64_t done = 0; done < bytes; done += chunk_bytes) {
    std::memcpy(row + done, tile + (swizzled(shared_address + offset + done, mask) - shared_address), chunk_bytes);
  }
}

}  // namespace tmap::simulator
