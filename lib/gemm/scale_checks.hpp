// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks of the scales of operands of 8 bits.

#include <tmap/grouped_gemm.hpp>

#include <cstdint>

#include "lib/support/arguments.hpp"

namespace tmap::gemm {

/// Checks scales of A and B that are not null. Sizes are checked.
void check_block_scales(support::arguments& given, const row_problem& problem);
/// Checks the scales of sums over rows, which operands of 8 bits need. Sizes are checked.
void check_line_scales(support::arguments& given, const weight_problem& problem);

/// Checks that all scales have an index of 32 bits. The operand has `lines` lines in each group.
void check_scale_places(support::arguments& given, const block_scales& scales, std::uint64_t lines,
                        std::uint64_t groups, std::uint64_t k, const support::argument& name);

}  // namespace tmap::gemm
