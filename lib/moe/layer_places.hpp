// SPDX-License-Identifier: Apache-2.0
#pragma once

// Places the intermediate results of a layer.

#include <tmap/batch_run.hpp>
#include <tmap/error.hpp>
#include <tmap/moe_layer.hpp>

#include <cstdint>

#include "lib/moe/layer_access.hpp"

namespace tmap::moe {

/// The first product's operand A.
struct layer_rows {
  gemm::matrix values{};
  float* scales{};  ///< with 8 bits
  row_access access{};
};

/// The places of all intermediate results. Those that the caller does not want are in the
/// workspace.
struct layer_places {
  layer_results results{};
  layer_rows rows{};
  const float* weights{};  ///< of choices; may be null
  workspace route_scratch{};
  workspace gate_up_scratch{};
  workspace down_scratch{};
  std::uintptr_t end{};  ///< of what is used of the workspace
};

/// Cuts the workspace, which begins at `memory`. Rows that the caller wants are sorted in any case.
/// The caller has checked the sizes.
[[nodiscard]] result<layer_places> place(const layer_problem& problem, const layer_results& wanted, const void* memory,
                                         row_access access);

}  // namespace tmap::moe
