// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace experts {

/// Holds the sizes of the layer. Tokens and results are bf16.
struct layer_sizes {
  std::uint32_t ranks{2};
  std::uint32_t tokens{256};  ///< of each rank
  std::uint32_t experts{16};  ///< of all ranks
  std::uint32_t k{4};         ///< experts of each token
  std::uint32_t width{1024};  ///< values of a token
  std::uint32_t hidden{512};  ///< values between the two products
  std::uint32_t blocks{4};    ///< of the kernels that move rows
  bool are_virtual{true};     ///< all ranks on the first GPU
  bool returns_rows{false};   ///< results come home one by one, not as sums
  bool has_8_bits{false};     ///< weights and the operands of products are e4m3, with block scales
  bool is_timed{false};       ///< graphs record events between their parts

  std::uint64_t all_tokens() const { return std::uint64_t{ranks} * tokens; }
  std::uint32_t local_experts() const { return experts / ranks; }
  std::uint64_t item_bytes() const { return has_8_bits ? 1 : 2; }                  ///< of an operand
  std::uint64_t row_bytes() const { return std::uint64_t{width} * item_bytes(); }  ///< of a token that is sent
  std::uint64_t result_bytes() const { return std::uint64_t{width} * 2; }
  std::uint64_t scales(std::uint64_t values) const { return has_8_bits ? (values + 127) / 128 : 0; }
};

/// Holds bf16 as it lies in memory.
using bf16_values = std::vector<std::uint16_t>;

/// Holds the matrices of all experts in the type of the products. Those of 8 bits have a scale for
/// each 128 x 128.
struct matrices {
  std::vector<unsigned char> values;
  std::vector<float> scales;
};
struct layer_weights {
  matrices gate_up;  ///< [experts, 2 * hidden, width]
  matrices down;     ///< [experts, width, hidden]
};

/// Holds the inputs of all ranks, one rank after the other.
struct layer_inputs {
  bf16_values tokens;         ///< [all tokens, width]
  std::vector<float> logits;  ///< [all tokens, experts]
};

/// Holds the results of one rank.
struct rank_results {
  std::vector<std::int32_t> begins;  ///< [experts of the rank + 1]
  bf16_values outputs;               ///< rows of its experts, without the weights of choices
  bf16_values out;                   ///< [tokens, width]
};

/// Holds the results of the same layer on one GPU.
struct layer_results {
  std::vector<std::int32_t> ids;  ///< [all tokens, k]
  std::vector<float> weights;     ///< [all tokens, k]
  std::vector<std::int32_t> row_of_choice;
  std::vector<std::int32_t> begins;  ///< [experts + 1]
  bf16_values outputs;
  bf16_values out;
};

}  // namespace experts
