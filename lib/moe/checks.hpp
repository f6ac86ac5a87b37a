// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks of `route`, `combine` and `combine_backward` before anything is enqueued. They look at
// arguments, never at device memory.

#include <tmap/moe.hpp>

#include "lib/support/arguments.hpp"

namespace tmap::moe {

/// Checks all of the run but its workspace.
void check_call(support::arguments& given, const run& with);

/// Checks the numbers that the workspace depends on. `name` is that of the problem.
void check_sizes(support::arguments& given, const route_problem& problem, const support::argument& name);
/// Checks the rest of a problem whose sizes are good.
void check_problem(support::arguments& given, const route_problem& problem, const support::argument& name);
void check_results(support::arguments& given, const route_problem& problem, const route_results& results,
                   const support::argument& name);

void check_problem(support::arguments& given, const combine_problem& problem);
void check_problem(support::arguments& given, const combine_gradients& problem);

}  // namespace tmap::moe
