// SPDX-License-Identifier: Apache-2.0
#pragma once

// Prepares the launches of a product whose arguments have been checked.

#include <tmap/error.hpp>
#include <tmap/grouped_gemm.hpp>

#include <cstdint>
#include <optional>

#include "kernels/gemm_launch.hpp"

namespace tmap::gemm {

struct prepared_product {
  const kernels::gemm_plan* plan;
  kernels::gemm_maps maps;
  std::uint32_t multiprocessors;
};

/// Checks the GPU, chooses a plan unless one was asked for, and makes the maps that the device
/// completes. There is at least one group, and a `row_problem` has at least one row.
template <class Problem>
[[nodiscard]] result<prepared_product> prepare(const Problem& problem, const std::optional<std::uint32_t>& asked);

}  // namespace tmap::gemm
