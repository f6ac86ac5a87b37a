// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/reduction.hpp>
#include <tmap/tensor_spec.hpp>

#include <cstdint>
#include <string>
#include <vector>

// One copy of one tile, as every engine must do it. All cases share one shape of memory: an arena
// of global memory with the tensor somewhere inside it, and a piece of shared memory with the tile
// somewhere inside that.

namespace tmap::conformance {

inline constexpr std::uint64_t arena_bytes = 128 << 10;
inline constexpr std::uint64_t tensor_offset = 16 << 10;  ///< canaries before it, and at least as many behind it
inline constexpr std::uint64_t shared_bytes = 24 << 10;
inline constexpr std::uint64_t largest_footprint = 16 << 10;

enum class copy_kind : std::uint32_t { load, store, reduce };

/// Where a box lies, seen from the tensor.
enum class place : std::uint32_t { inside, low, high, outside, far, anywhere };

struct tile_case {
  tensor_spec spec;  ///< `global_address` counts from the start of the arena
  copy_kind kind{};
  reduction operation{};  ///< of a reduction
  std::int32_t coordinates[max_rank]{};
  std::uint32_t shared_offset{};
  place where{};
};

const char* name(reduction operation);
const char* name(place where);

/// One line for a message: every number of the case.
std::string to_text(const tile_case& tile);

/// The features of the model that a case exercises: the rows of the fidelity table.
std::vector<std::string> features_of(const tile_case& tile);

}  // namespace tmap::conformance
