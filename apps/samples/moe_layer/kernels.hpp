// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "apps/samples/moe_layer/inputs.hpp"

// The layer's own kernels, which run before and after the products.

namespace moe {

/// Holds all device memory of the layer.
struct layer_arrays {
  __nv_bfloat16* tokens{};  ///< [tokens, width]
  __nv_bfloat16* router{};  ///< as in `layer_weights`
  __nv_bfloat16* gate_up{};
  __nv_bfloat16* down{};
  std::int32_t* experts{};  ///< as in `layer_results`
  float* shares{};
  std::int32_t* sizes{};
  std::int32_t* row_of{};
  std::int32_t* token_of{};  ///< [rows]: the token of each row
  __nv_bfloat16* sorted{};   ///< [rows, width]: tokens sorted by expert
  __nv_bfloat16* hidden{};   ///< [rows, hidden]
  __nv_bfloat16* answers{};  ///< [rows, width]: results of the experts
  __nv_bfloat16* output{};   ///< [tokens, width]
};

/// Writes `experts` and `shares`.
cudaError_t launch_route(const layer_sizes& sizes, const layer_arrays& arrays, cudaStream_t stream);
/// Writes `sizes`, `row_of` and `token_of`: an expert's rows keep the order of the choices.
cudaError_t launch_place(const layer_sizes& sizes, const layer_arrays& arrays, cudaStream_t stream);
/// Writes `output`: the sum in f32 of each token's expert results, weighted by their shares.
cudaError_t launch_combine(const layer_sizes& sizes, const layer_arrays& arrays, cudaStream_t stream);

}  // namespace moe
