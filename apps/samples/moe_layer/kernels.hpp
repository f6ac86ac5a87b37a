// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "apps/samples/moe_layer/inputs.hpp"

// The scores of the experts, which come before the layer.

namespace moe {

/// Holds all device memory of the layer.
struct layer_arrays {
  __nv_bfloat16* tokens{};   ///< [tokens, width]
  __nv_bfloat16* router{};   ///< as in `layer_weights`
  unsigned char* gate_up{};  ///< of bf16 or e4m3
  unsigned char* down{};
  float* gate_up_scales{};  ///< of e4m3 only
  float* down_scales{};
  float* logits{};          ///< [tokens, experts]
  std::int32_t* experts{};  ///< as in `layer_results`
  float* shares{};
  std::int32_t* sizes{};
  std::int32_t* row_of{};
  __nv_bfloat16* output{};  ///< [tokens, width]
};

/// Writes `logits`: the products of each token with the router's rows.
cudaError_t launch_scores(const layer_sizes& sizes, const layer_arrays& arrays, cudaStream_t stream);

}  // namespace moe
