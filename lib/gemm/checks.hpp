// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks of a grouped product before anything is enqueued. They look at arguments, never at device
// memory.

#include <tmap/device_limits.hpp>
#include <tmap/error.hpp>
#include <tmap/grouped_gemm.hpp>

#include "lib/support/arguments.hpp"

namespace tmap::gemm {

/// Checks that products run on such a GPU. Fails with `compute_capability_too_low`, or with
/// `no_kernel_image` and a reason.
[[nodiscard]] result<void> check_gpu(const device_limits& limits, bool has_kernels);

/// Checks all of the run but its workspace.
void check_call(support::arguments& given, const run& with);
/// Checks that the plan that was asked for, if any, can do the problem.
void check_plan(support::arguments& given, const row_problem& problem, const run& with);
template <class Problem>
void check_plan(support::arguments&, const Problem&, const run&) {}
/// Check a problem. A problem without groups needs good numbers only.
void check_problem(support::arguments& given, const row_problem& problem);
void check_problem(support::arguments& given, const column_problem& problem);
void check_problem(support::arguments& given, const weight_problem& problem);
void check_problem(support::arguments& given, const pointer_problem& problem);

}  // namespace tmap::gemm
