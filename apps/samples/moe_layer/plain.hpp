// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/samples/moe_layer/inputs.hpp"

// The layer as plain loops on the host, in double, and how far from it a run on the GPU may lie.

namespace moe {

/// A number, and how far from it a result may lie that sums in f32 and keeps what it stores in
/// bf16.
struct bounded {
  double value{};
  double error{};
};

/// Each expert's logit for one token.
std::vector<bounded> plain_logits(const layer_sizes& sizes, const layer_weights& weights, const float* token);

/// One token's output, when it goes to these experts. NaN or infinite inputs are not for it.
std::vector<bounded> plain_output(const layer_sizes& sizes, const layer_weights& weights, const float* token,
                                  const std::int32_t (&experts)[choices]);

struct comparison {
  std::string fault;     ///< empty: none
  double worst{};        ///< the largest error of the output, in units of the allowed one
  double worst_error{};  ///< the largest error of the output
};

/// Judges the choices (two logits closer than their errors may change places), the shares, that
/// rows are the choices sorted by expert, and the output.
comparison compare(const layer_sizes& sizes, const layer_weights& weights, const std::vector<float>& tokens,
                   const layer_results& got);

}  // namespace moe
