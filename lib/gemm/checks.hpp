// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the host can check of a grouped product before anything is enqueued: arguments, never what
// device memory holds.

#include <tmap/device_limits.hpp>
#include <tmap/error.hpp>
#include <tmap/grouped_gemm.hpp>

#include "lib/support/arguments.hpp"

namespace tmap::gemm {

/// Whether products run on such a GPU: `compute_capability_too_low`, or `no_kernel_image` with a
/// reason.
[[nodiscard]] result<void> check_gpu(const device_limits& limits, bool has_kernels);

/// All of it but the workspace.
void check_call(support::arguments& given, const run& with);
// Of a problem without groups nothing but its numbers.
void check_problem(support::arguments& given, const row_problem& problem);
void check_problem(support::arguments& given, const weight_problem& problem);
void check_problem(support::arguments& given, const pointer_problem& problem);

}  // namespace tmap::gemm
