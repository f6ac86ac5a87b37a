// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/samples/moe_layer/inputs.hpp"

// The layer as plain loops on the host, in double. Computes how far a run on the GPU may differ.

namespace moe {

/// Holds a number and its error bound: the allowed difference of a result that accumulates in f32
/// and is stored in bf16.
struct bounded {
  double value{};
  double error{};
};

/// Returns each expert's logit for one token.
std::vector<bounded> plain_logits(const layer_sizes& sizes, const layer_weights& weights, const float* token);

/// Returns one token's output for these experts. NaN and infinite inputs are not supported.
std::vector<bounded> plain_output(const layer_sizes& sizes, const layer_weights& weights, const float* token,
                                  const std::int32_t (&experts)[choices]);

struct comparison {
  std::string fault;     ///< empty if there is none
  double worst{};        ///< the largest error of the output, relative to the allowed one
  double worst_error{};  ///< the largest error of the output
};

/// Checks the choices, the shares, that rows are the choices sorted by expert, and the output. Two
/// logits that differ by less than their errors may change places.
comparison compare(const layer_sizes& sizes, const layer_weights& weights, const std::vector<float>& tokens,
                   const layer_results& got);

}  // namespace moe
