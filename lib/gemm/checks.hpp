// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the host can check of a grouped product before anything is enqueued: arguments, never what device memory holds.

#include <tmap/error.hpp>
#include <tmap/grouped_gemm.hpp>

namespace tmap::gemm {

result<void> check_options(const options& with);
// Of a problem without groups nothing but its numbers.
result<void> check_problem(const row_problem& problem);
result<void> check_problem(const weight_problem& problem);
result<void> check_problem(const pointer_problem& problem);

}  // namespace tmap::gemm
