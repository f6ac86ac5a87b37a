// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/samples/expert_parallel/sizes.hpp"

namespace experts {

/// Runs the layer of all ranks' tokens by `tmap::moe::layer` on the first GPU.
layer_results run_on_one_gpu(const layer_sizes& sizes, const layer_weights& weights, const layer_inputs& inputs);

}  // namespace experts
