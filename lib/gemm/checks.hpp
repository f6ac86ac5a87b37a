// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the host can check of a grouped product before anything is enqueued: arguments, never what device memory holds.

#include <tmap/grouped_gemm.hpp>

#include "lib/support/arguments.hpp"

namespace tmap::gemm {

void check_options(support::arguments& given, const options& with);
// Of a problem without groups nothing but its numbers.
void check_problem(support::arguments& given, const row_problem& problem);
void check_problem(support::arguments& given, const weight_problem& problem);
void check_problem(support::arguments& given, const pointer_problem& problem);

}  // namespace tmap::gemm
