// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs the recorded threads of a ring in every possible order, over barriers as PTX defines them
// (ISA 9.7.13.15). A phase is complete when all counted arrivals and all expected bytes have come.
// A wait for a parity ends while the current phase has the other parity. Copies land and stores
// read at any time after their start.

#include <cstdint>
#include <string>
#include <vector>

#include "device/ring_model/recorder.hpp"

namespace tmap::testing {

/// Holds threads that share barriers with these counts. `parts[tile]` has a bit for each thread
/// that fills a part of the tile.
struct ring_program {
  std::vector<std::uint32_t> barrier_counts;
  std::vector<thread_steps> threads;
  std::vector<std::uint32_t> parts;
};

struct exploration {
  /// Names the first fault that some order leads to. Empty if every order ends and each tile is
  /// read whole.
  std::string fault;
  std::uint64_t states{};
};

exploration explore(const ring_program& program);

}  // namespace tmap::testing
