// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "lib/pool/pool_calls.hpp"

namespace tmap::testing {

struct load_report {
  std::uint64_t foreign_ids{};
  std::uint64_t recycled_slots{};  ///< lent again after the first time
  std::uint64_t refused_takes{};
  std::uint64_t replays{};
  std::uint64_t released_in_captures{};
  std::uint64_t without_memory{};  ///< calls that found no memory
  std::string problem;             ///< the first problem that is not a foreign id; empty if there is none
};

/// Creates and ends batches, graphs and streams in random order over one pool until it has tried
/// `takes` takes. The device runs in random steps in between.
load_report run_random_load(const pool::pool_calls& calls, std::uint64_t seed, std::uint64_t takes,
                            bool memory_runs_out = false);

}  // namespace tmap::testing
