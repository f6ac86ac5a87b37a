// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs the recorded threads of a ring in every order that there is, over barriers as PTX defines
// them (ISA 9.7.13.15): a phase is complete when all arrivals it counts and all bytes it was told
// to expect have come; who waits for a parity goes on while the phase under way has the other one.
// Copies land and stores read at any time after their start.

#include <cstdint>
#include <string>
#include <vector>

#include "device/ring_model/recorder.hpp"

namespace tmap::testing {

/// `threads` that share barriers of these counts. `parts[tile]`: a bit for each thread that fills a
/// part of the tile.
struct ring_program {
  std::vector<std::uint32_t> barrier_counts;
  std::vector<thread_steps> threads;
  std::vector<std::uint32_t> parts;
};

struct exploration {
  std::string fault;  ///< the first that some order leads to; empty: every order ends, and each tile is read whole
  std::uint64_t states{};
};

exploration explore(const ring_program& program);

}  // namespace tmap::testing
