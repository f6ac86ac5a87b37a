// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/reduction.hpp>
#include <tmap/tensor_spec.hpp>

#include <cstdint>
#include <string>
#include <vector>

// Describes one copy of one tile, which every engine must do alike. All cases use memory of the
// same shape: an arena of global memory with the tensor somewhere inside it, and a piece of shared
// memory with the tile somewhere inside it.

namespace tmap::conformance {

inline constexpr std::uint64_t arena_bytes = 128 << 10;
inline constexpr std::uint64_t tensor_offset = 16 << 10;  ///< holds canaries, and at least as many follow the tensor
inline constexpr std::uint64_t shared_bytes = 24 << 10;
inline constexpr std::uint64_t largest_footprint = 16 << 10;

enum class copy_kind : std::uint32_t { load, store, reduce };

/// Names the position of a box relative to the tensor.
enum class place : std::uint32_t { inside, low, high, outside, far, anywhere };

struct tile_case {
  tensor_spec spec;  ///< `global_address` is an offset into the arena
  copy_kind kind{};
  reduction operation{};  ///< applies to a reduction
  std::int32_t coordinates[max_rank]{};
  std::uint32_t shared_offset{};
  place where{};
};

const char* name(reduction operation);
const char* name(place where);

/// Returns every number of the case on one line, for a message.
std::string to_text(const tile_case& tile);

/// Returns the features of the model that a case exercises, which are rows of the fidelity table.
std::vector<std::string> features_of(const tile_case& tile);

}  // namespace tmap::conformance
