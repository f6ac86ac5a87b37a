// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks of dispatch and combine before anything is enqueued.

#include <tmap/expert_parallel.hpp>

#include <cstdint>

#include "lib/support/arguments.hpp"

namespace tmap::expert_parallel {

/// Checks the numbers that the workspace depends on, and the others of a shape.
void check_shape(support::arguments& given, const shape& sizes, std::uint32_t ranks, const support::argument& name);

// Check the rest of a call whose window is there and whose shape is good. The workspace has
// `needed` bytes.
void check(support::arguments& given, const peer_memory& window, const dispatch_problem& problem, const run& with,
           std::uint64_t needed);
void check(support::arguments& given, const peer_memory& window, const combine_problem& problem, const run& with,
           std::uint64_t needed);

}  // namespace tmap::expert_parallel
