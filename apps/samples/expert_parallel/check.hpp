// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "apps/samples/expert_parallel/sizes.hpp"

namespace experts {

/// Counts what a comparison of all ranks with one GPU found.
struct comparison {
  std::uint64_t rows{};        ///< of all experts, all of the same bits
  std::uint64_t tokens{};      ///< whose results have the bits of `tmap::moe::layer`
  std::uint64_t other_bits{};  ///< tokens that are rounded once more, because two ranks have their experts
  std::string fault;           ///< empty: all is as it should be
};

/// Compares every bit. Rows of experts must be those of the layer on one GPU. If results come home
/// one by one, so must the results of all tokens. Otherwise a token's result must be the sum of
/// these rows by the definition of `return_kind::sums`, and that of the layer if all its experts
/// are on one rank.
comparison compare(const layer_sizes& sizes, const layer_results& one_gpu, const std::vector<rank_results>& ranks);

}  // namespace experts
