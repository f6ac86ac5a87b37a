// SPDX-License-Identifier: Apache-2.0
#pragma once

// The way from lib/moe to the kernels of kernels/moe: plain functions that enqueue work and return
// the code of the CUDA runtime. The caller has checked the arguments.

#include <tmap/bad_items.hpp>
#include <tmap/item_status.hpp>
#include <tmap/moe.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <variant>

namespace tmap::kernels {

/// A block sorts this many choices at a time.
inline constexpr std::uint32_t sort_tile = 4096;
/// A single cluster of so many blocks sorts up to `sort_tile` choices for each of them.
inline constexpr std::uint32_t sort_cluster_blocks = 16;
inline constexpr std::uint32_t most_clustered_choices = sort_tile * sort_cluster_blocks;
/// Each GPU has room for clusters of so many blocks, if not for larger ones.
inline constexpr std::uint32_t sure_cluster_blocks = 8;
/// A cluster chooses the experts of so many tokens. More tokens need the whole GPU.
inline constexpr std::uint64_t most_clustered_tokens = 512;
/// More choices, and the logits of more tokens, take two launches of at most so many blocks.
inline constexpr std::uint32_t most_sort_blocks = 128;

inline bool has_logits(const moe::route_problem& problem) {
  return std::holds_alternative<moe::logits>(problem.choices);
}

/// Returns whether one launch does all, on a GPU with room for clusters of so many blocks.
inline bool takes_one_launch(const moe::route_problem& problem, std::uint32_t cluster_blocks) {
  if (has_logits(problem) && problem.tokens > most_clustered_tokens) return false;
  return problem.tokens * problem.k <= std::uint64_t{cluster_blocks} * sort_tile;
}

/// Returns the blocks of each of two launches: as many as keep each warp busy.
inline std::uint32_t sort_blocks(const moe::route_problem& problem) {
  constexpr std::uint64_t block_tokens = 32;
  constexpr std::uint64_t block_choices = 1024;
  const std::uint64_t by_tokens = has_logits(problem) ? (problem.tokens + block_tokens - 1) / block_tokens : 0;
  const std::uint64_t by_choices = (problem.tokens * problem.k + block_choices - 1) / block_choices;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(std::max(by_tokens, by_choices), 1, most_sort_blocks));
}

/// The parts of a route's workspace. Null parts are not needed.
struct route_scratch {
  std::int32_t* ids{};      ///< [choices], for logits that take two launches
  float* weights{};         ///< [choices], like `ids`
  std::uint32_t* totals{};  ///< [sort_blocks, experts], for two launches
};

/// How a call reports on its choices. Each pointer may be null.
struct choice_reports {
  moe::choice_status* statuses{};
  batch_header* header{};
  fault_sink faults{};
};

struct route_call {
  const moe::route_problem& problem;  ///< `rows` is not 0, unless there are no rows at all
  const moe::route_results& results;
  route_scratch scratch;
  choice_reports reports;
  cudaStream_t stream;
};
cudaError_t launch_route(const route_call& call);
/// Loads the kernels for given choices now, instead of at their first launch.
cudaError_t load_given_route();

/// There is at least one token and one column.
struct combine_call {
  const moe::combine_problem& problem;
  choice_reports reports;
  std::uint32_t multiprocessors;
  cudaStream_t stream;
};
cudaError_t launch_combine(const combine_call& call);

/// Tokens of bf16 that are rounded to e4m3, with a scale for each 128 elements as by
/// `ragged::quantize`. Each goes to the rows of its choices, or to one row of its own.
struct token_rows {
  gemm::matrix x;  ///< [tokens, columns]
  std::uint64_t tokens;
  std::uint64_t columns;  ///< a multiple of 16
  std::uint32_t k;
  const std::int32_t* row_of_choice;  ///< [tokens, k]; -1: none
  gemm::matrix rows;                  ///< [rows, columns]; its address and pitch are multiples of 16 bytes
  float* scales;                      ///< [rows, columns / 128, rounded up]
  bool powers_of_two;
};
/// There is at least one token.
cudaError_t launch_quantize_tokens(const token_rows& work, cudaStream_t stream);

/// There is at least one token and one column.
struct combine_backward_call {
  const moe::combine_gradients& problem;
  choice_reports reports;
  cudaStream_t stream;
};
cudaError_t launch_combine_backward(const combine_backward_call& call);

}  // namespace tmap::kernels
