// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks of what happens to sums.

#include <tmap/grouped_gemm.hpp>

#include <cstdint>

#include "lib/support/arguments.hpp"

namespace tmap::gemm {

/// Check numbers, which even a problem without groups must have right.
void check_results(support::arguments& given, const row_problem& problem);
void check_results(support::arguments& given, const weight_problem& problem);
void check_results(support::arguments& given, const pointer_problem& problem);

/// Checks the numbers of a gate, which may have no function.
void check_gate(support::arguments& given, const gate& with, const support::argument& name);
/// With a gate, N is a multiple of this. Then rows of results of any type take whole units, and so
/// do halves of rows of B.
inline constexpr std::uint64_t gated_columns = 32;

/// Checks the rows of C that an index names, and what they exclude, because they are stored by
/// kernels of their own.
void check_targets(support::arguments& given, const row_problem& problem);

/// Checks the memory that an epilogue names.
void check_epilogue(support::arguments& given, const row_problem& problem);

}  // namespace tmap::gemm
