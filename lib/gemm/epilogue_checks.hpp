// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks of what happens to sums.

#include <tmap/grouped_gemm.hpp>

#include "lib/support/arguments.hpp"

namespace tmap::gemm {

/// Check numbers, which even a problem without groups must have right.
void check_results(support::arguments& given, const row_problem& problem);
void check_results(support::arguments& given, const weight_problem& problem);
void check_results(support::arguments& given, const pointer_problem& problem);

/// Checks the memory that an epilogue names.
void check_epilogue(support::arguments& given, const row_problem& problem);

}  // namespace tmap::gemm
