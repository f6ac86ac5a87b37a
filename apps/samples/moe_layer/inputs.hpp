// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <vector>

#include "apps/samples/moe_layer/router.hpp"

// What the layer works on, in host memory.

namespace moe {

/// `width`: values of a token, a multiple of 8; `hidden`: of an expert's hidden layer, a multiple
/// of 16.
struct layer_sizes {
  std::uint32_t tokens{512};
  std::uint32_t experts{8};
  std::uint32_t width{256};
  std::uint32_t hidden{512};

  /// Of the tokens sorted by expert: each token once for each of its experts.
  std::uint32_t rows() const { return tokens * choices; }
};

/// Row-major; every number is one of bf16.
struct layer_weights {
  std::vector<float> router;   ///< [experts, width]
  std::vector<float> gate_up;  ///< [experts, 2 * hidden, width]: gates first, then values
  std::vector<float> down;     ///< [experts, width, hidden]
};

/// Normal numbers, scaled so that every layer's results are about as large as its inputs.
layer_weights random_weights(const layer_sizes& sizes, std::uint64_t seed);
/// [tokens, width]
std::vector<float> random_tokens(const layer_sizes& sizes, std::uint64_t seed);

std::vector<__nv_bfloat16> as_bf16(const std::vector<float>& values);
std::vector<float> as_float(const std::vector<__nv_bfloat16>& values);

/// What a run leaves. Choice i belongs to token i / `choices`.
struct layer_results {
  std::vector<std::int32_t> experts;  ///< of each choice
  std::vector<float> shares;          ///< of each choice
  std::vector<std::int32_t> sizes;    ///< rows of each expert
  std::vector<std::int32_t> row_of;   ///< of each choice: its row among the tokens sorted by expert
  std::vector<float> output;          ///< [tokens, width]
};

}  // namespace moe
