// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/moe_layer.hpp>

#include <cstdint>

namespace tmap::moe {

inline constexpr std::uint64_t item_bytes = 2;  // of tokens and results

/// The places of all intermediate results. Those that the caller does not want are in the
/// workspace.
struct layer_places {
  layer_results results;
  const float* weights;  ///< of choices; may be null
  workspace route_scratch;
  workspace gate_up_scratch;
  workspace down_scratch;
  std::uintptr_t end;
};

/// Returns the places of a layer with its workspace at `memory`. The caller has checked the sizes.
[[nodiscard]] result<layer_places> place_layer(const layer_problem& problem, const layer_results& wanted,
                                               const void* memory);

}  // namespace tmap::moe
