// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/tile_case.hpp"

#include <tmap/error.hpp>
#include <tmap/tensor_map.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// Copies that kill a CUDA context, each with what it raises, and their neighbours that do not. The
// simulator must answer with the same error as a value; a GPU runs each in a process of its own.

namespace tmap::conformance {

/// Bits of one word of an encoded map, set to what no encoder would write.
struct word_edit {
  std::uint32_t word;
  std::uint64_t mask;
  std::uint64_t value;
};

struct fatal_case {
  std::string name;
  tile_case tile;  ///< a legal spec, then edited
  std::vector<word_edit> edits;
  std::uint32_t instruction_rank{};  ///< 0: the map's
  std::optional<status> raises;      ///< nothing: the copy must succeed

  std::uint32_t rank() const { return instruction_rank == 0 ? tile.spec.rank : instruction_rank; }
};

std::vector<fatal_case> fatal_cases();

/// The edited map over an arena at this address, which must be a multiple of 16 MiB.
tensor_map map_of(const fatal_case& fatal, std::uint64_t arena_address);

}  // namespace tmap::conformance
