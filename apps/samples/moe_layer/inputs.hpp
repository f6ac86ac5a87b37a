// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <vector>

// The input of the layer, in host memory.

namespace moe {

/// The number of experts per token.
inline constexpr std::uint32_t choices = 2;

/// `width` counts the values of a token and is a multiple of 8. `hidden` counts the values of an
/// expert's hidden layer and is a multiple of 16.
struct layer_sizes {
  std::uint32_t tokens{512};
  std::uint32_t experts{8};
  std::uint32_t width{256};
  std::uint32_t hidden{512};
  /// Weights are of e4m3 with a scale for each 128 x 128. Then `width` is a multiple of 16 and
  /// `hidden` of 128.
  bool has_8_bits{};

  /// Returns the number of tokens sorted by expert: each token appears once for each of its
  /// experts.
  std::uint32_t rows() const { return tokens * choices; }
};

/// Row-major matrices. Every number can be represented in bf16, or in e4m3 times a scale.
struct layer_weights {
  std::vector<float> router;   ///< [experts, width]
  std::vector<float> gate_up;  ///< [experts, 2 * hidden, width]: gates first, then values
  std::vector<float> down;     ///< [experts, width, hidden]
};

/// Returns normal random numbers, scaled so that a layer's results are about as large as its
/// inputs.
layer_weights random_weights(const layer_sizes& sizes, std::uint64_t seed);
/// Returns an array [tokens, width].
std::vector<float> random_tokens(const layer_sizes& sizes, std::uint64_t seed);

std::vector<__nv_bfloat16> as_bf16(const std::vector<float>& values);
std::vector<float> as_float(const std::vector<__nv_bfloat16>& values);

/// The elements of K, and the lines, that share a scale.
inline constexpr std::uint32_t scaled = 128;

/// Matrices of 8 bits, one for each expert, and their scales, which are powers of two.
struct scaled_matrices {
  std::vector<__nv_fp8_storage_t> values;  ///< as many as there were numbers
  std::vector<float> scales;               ///< [experts, lines / 128, columns / 128], rounded up
};
/// Rounds `experts` matrices [lines, columns]. Numbers that `as_float` has returned are exact.
scaled_matrices as_e4m3(const std::vector<float>& values, std::uint64_t lines, std::uint64_t columns);
/// The inverse.
std::vector<float> as_float(const scaled_matrices& from, std::uint64_t lines, std::uint64_t columns);

/// The results of a run. Choice i belongs to token i / `choices`.
struct layer_results {
  std::vector<std::int32_t> experts;  ///< for each choice
  std::vector<float> shares;          ///< for each choice
  std::vector<std::int32_t> sizes;    ///< the number of rows of each expert
  std::vector<std::int32_t> row_of;   ///< for each choice, its row among the tokens sorted by expert
  std::vector<float> output;          ///< [tokens, width]
};

}  // namespace moe
