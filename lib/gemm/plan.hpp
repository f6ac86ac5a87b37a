// SPDX-License-Identifier: Apache-2.0
#pragma once

// Chooses how a problem is cut into tiles, and the maps through which tiles are loaded and stored.

#include <tmap/grouped_gemm.hpp>
#include <tmap/map_template.hpp>

#include <cstdint>

#include "kernels/gemm_launch.hpp"

namespace tmap::gemm {

/// Returns the index in `kernels::gemm_plans` that suits the problem's sizes.
std::uint32_t choose_plan(const row_problem& problem);
std::uint32_t choose_plan(const column_problem& problem);
std::uint32_t choose_plan(const weight_problem& problem);
std::uint32_t choose_plan(const pointer_problem& problem);

/// Returns whether a plan can do the problem: results that share a scale belong to one tile.
bool is_plan_of(const row_problem& problem, std::uint32_t plan);

/// Arguments of `make_template`. Where each group has a map of its own, the extents are 1.
struct map_spec {
  tensor_spec spec{};
  patch_fields fields{};
};
struct map_specs {
  map_spec a{};
  map_spec b{};
  map_spec c{};
  map_spec second{};  ///< of results of 16 bits that are not in C, or in the second half of its columns
};
map_specs map_specs_of(const row_problem& problem, const kernels::gemm_plan& plan);
map_specs map_specs_of(const column_problem& problem, const kernels::gemm_plan& plan);
map_specs map_specs_of(const weight_problem& problem, const kernels::gemm_plan& plan);
map_specs map_specs_of(const pointer_problem& problem, const kernels::gemm_plan& plan);

}  // namespace tmap::gemm
