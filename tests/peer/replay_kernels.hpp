// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/peer_memory_ref.hpp>

#include <cuda_runtime.h>

#include <cstdint>

namespace tmap::testing {

/// Places what one rank sends and gets, as bytes of the user in its window.
struct replayed_exchange {
  std::uint64_t splits;
  std::uint64_t out_splits;
  std::uint64_t rows;
  std::uint64_t out;
  std::uint32_t groups;
  std::uint32_t row_words;
  std::uint32_t most_rows;  ///< for one group of one rank
};

/// Counts what came, in device memory.
struct replay_counts {
  unsigned long long calls;
  unsigned long long bytes;
  unsigned long long wrong_words;
  unsigned long long wrong_counts;
};

/// Draws how many rows go to each group of each rank in the next call, and writes them.
void launch_draw(const peer_memory_ref& window, const replayed_exchange& at, const replay_counts* counts,
                 cudaStream_t stream);
/// Compares every word that came, by rank, with the definition, and ends the call.
void launch_compare(const peer_memory_ref& window, const replayed_exchange& at, replay_counts* counts,
                    cudaStream_t stream);

}  // namespace tmap::testing
