// SPDX-License-Identifier: Apache-2.0
#pragma once

// The way from lib/moe to the kernels of kernels/moe: plain functions that enqueue work and return
// the code of the CUDA runtime. The caller has checked the arguments.

#include <tmap/bad_items.hpp>
#include <tmap/item_status.hpp>
#include <tmap/moe.hpp>

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tmap::kernels {

/// A block sorts this many choices at a time.
inline constexpr std::uint32_t sort_tile = 8192;
/// A single cluster of so many blocks sorts up to `sort_tile` choices for each of them.
inline constexpr std::uint32_t sort_cluster_blocks = 8;
inline constexpr std::uint32_t most_clustered_choices = sort_tile * sort_cluster_blocks;
/// More choices are sorted by two launches of at most so many blocks.
inline constexpr std::uint32_t most_sort_blocks = 256;

/// Returns the blocks that count and place more than `most_clustered_choices` choices.
constexpr std::uint32_t sort_blocks(std::uint64_t choices) {
  const std::uint64_t tiles = (choices + sort_tile - 1) / sort_tile;
  return tiles < most_sort_blocks ? static_cast<std::uint32_t>(tiles) : most_sort_blocks;
}

/// The parts of a route's workspace. Null parts are not needed.
struct route_scratch {
  std::int32_t* ids{};      ///< [choices], for logits
  float* weights{};         ///< [choices], for logits
  std::uint32_t* totals{};  ///< [sort_blocks, experts], for more than `most_clustered_choices` choices
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

/// There is at least one token and one column.
struct combine_call {
  const moe::combine_problem& problem;
  choice_reports reports;
  std::uint32_t multiprocessors;
  cudaStream_t stream;
};
cudaError_t launch_combine(const combine_call& call);

/// Tokens of bf16 that are rounded to e4m3, with a scale for each 128 elements as by
/// `ragged::quantize`. Each goes to the rows of its choices.
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

}  // namespace tmap::kernels
