// SPDX-License-Identifier: Apache-2.0
#pragma once

// Chooses how a layer's first product finds the rows of x. Tests name either way.

#include <tmap/error.hpp>
#include <tmap/moe_layer.hpp>

#include <cstdint>

namespace tmap::moe {

/// How the first product finds the rows of an expert. Both ways give the same bits. Tokens that the
/// layer rounds to 8 bits are always sorted.
enum class row_access : std::uint32_t {
  by_index,  ///< it reads each token where it is, by `token_of_row`
  sorted,    ///< tokens are copied into the order by expert before
};
/// Returns the faster way for a problem of good sizes.
row_access choose_access(const layer_problem& problem);

/// Do what the public functions do, in the named way. Rows that the caller wants are sorted in any
/// case. The sizes of `workspace_bytes` are good.
[[nodiscard]] result<std::uint64_t> workspace_bytes(const layer_problem& problem, row_access access);
[[nodiscard]] result<void> layer(const layer_problem& problem, const layer_results& results, const run& with,
                                 row_access access);

}  // namespace tmap::moe
