// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks of a layer before anything is enqueued.

#include <tmap/moe_layer.hpp>

#include <cstdint>

#include "lib/support/arguments.hpp"

namespace tmap::moe {

inline constexpr std::uint64_t token_item_bytes = 2;  ///< of tokens and results

/// Returns whether operands are rounded to 8 bits.
bool has_8_bits(const layer_problem& problem);
/// Returns the scales of a row of this many elements.
std::uint64_t scales_of(std::uint64_t columns);
/// Returns the rows of all experts.
std::uint64_t row_count(const layer_problem& problem);

/// Checks the numbers that the workspace depends on.
void check_sizes(support::arguments& given, const layer_problem& problem);
/// Checks the rest of a problem whose sizes are good.
void check_problem(support::arguments& given, const layer_problem& problem);
void check_results(support::arguments& given, const layer_problem& problem, const layer_results& results);

}  // namespace tmap::moe
