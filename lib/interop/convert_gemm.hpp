// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/gemm.h>
#include <tmap/grouped_gemm.hpp>

#include "lib/interop/call.hpp"

// C's structs of c/gemm.h and the library's. `check_problem` comes before `problem_of`.

namespace tmap::interop {

void check_problem(arguments& given, const tmap_row_problem* problem);
void check_problem(arguments& given, const tmap_weight_problem* problem);
void check_problem(arguments& given, const tmap_pointer_problem* problem);

gemm::row_problem problem_of(const tmap_row_problem& problem);
gemm::weight_problem problem_of(const tmap_weight_problem& problem);
gemm::pointer_problem problem_of(const tmap_pointer_problem& problem);

/// Null: without any.
gemm::run run_of(const tmap_gemm_options* options, const on_stream& where);

}  // namespace tmap::interop
