// SPDX-License-Identifier: Apache-2.0
#pragma once

// Data that the set-up kernel writes to device memory and the product kernel reads.

#include <tmap/grouped_gemm.hpp>
#include <tmap/tensor_map.hpp>

#include <cstddef>
#include <cstdint>

namespace tmap::device {
struct queue_counter;
}

namespace tmap::kernels {

/// One group. Its maps cover exactly its elements: those of A and C, and that of B where the group
/// has one of its own.
struct alignas(16) gemm_group {
  std::uint64_t first_row;  ///< of A and C in a `row_problem`
  std::uint64_t a;
  std::uint64_t b;
  std::uint64_t c;
  std::uint64_t a_pitch;
  std::uint64_t b_pitch;
  std::uint64_t c_pitch;
  std::uint32_t m;
  std::uint32_t n;  ///< columns of B
  std::uint32_t k;
  std::uint32_t spare;
};

struct gemm_scratch {
  tensor_map* a;
  tensor_map* b;
  tensor_map* c;
  gemm_group* groups;
  std::uint64_t* tile_ends;      ///< tiles, or pairs of them, of groups 0 to i
  device::queue_counter* taken;  ///< of them
};

/// Returns the bytes of device memory that a problem of this many groups needs.
constexpr std::size_t gemm_scratch_bytes(std::uint32_t groups) {
  constexpr std::size_t of_group = 3 * sizeof(tensor_map) + sizeof(gemm_group) + sizeof(std::uint64_t);
  constexpr std::size_t of_call = sizeof(std::uint32_t);  // a device::queue_counter
  return groups * of_group + of_call;
}

inline gemm_scratch cut_scratch(void* memory, std::uint32_t groups) {
  auto* const maps = static_cast<tensor_map*>(memory);
  auto* const records = reinterpret_cast<gemm_group*>(maps + 3 * std::size_t{groups});
  auto* const tile_ends = reinterpret_cast<std::uint64_t*>(records + groups);
  return {maps,    maps + groups, maps + 2 * std::size_t{groups},
          records, tile_ends,     reinterpret_cast<device::queue_counter*>(tile_ends + groups)};
}

/// The size of a product's tiles.
struct tile_sizes {
  std::uint32_t m;
  std::uint32_t result_n;  ///< columns of C
  bool are_paired;
};

/// Holds what all groups have in common.
struct gemm_shape {
  gemm_scratch scratch;
  gemm::epilogue with;
  std::uint32_t groups;
  std::uint32_t b_pieces;  ///< loads that make the tile of B
  std::uint32_t values;    ///< the column of B at which values begin; 0: no gates
};

}  // namespace tmap::kernels
