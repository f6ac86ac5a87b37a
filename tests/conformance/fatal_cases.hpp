// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/tile_case.hpp"

#include <tmap/error.hpp>
#include <tmap/tensor_map.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// Lists copies that kill a CUDA context, each with the error that it raises, and similar copies
// that are fine. The simulator must return the same error as a value. A GPU runs each copy in a
// process of its own.

namespace tmap::conformance {

/// Sets bits of one word of an encoded map to a value that no encoder writes.
struct word_edit {
  std::uint32_t word;
  std::uint64_t mask;
  std::uint64_t value;
};

struct fatal_case {
  std::string name;
  tile_case tile;  ///< legal before the edits
  std::vector<word_edit> edits;
  std::uint32_t instruction_rank{};  ///< 0 means the map's rank
  std::optional<status> raises;      ///< empty if the copy must succeed

  std::uint32_t rank() const { return instruction_rank == 0 ? tile.spec.rank : instruction_rank; }
};

std::vector<fatal_case> fatal_cases();

/// Returns the edited map over an arena at this address, which must be a multiple of 16 MiB.
tensor_map map_of(const fatal_case& fatal, std::uint64_t arena_address);

}  // namespace tmap::conformance
