// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels that peer_bench measures. They use the functions of tmap/device/peer.cuh alone.

#include <tmap/peer_memory_ref.hpp>

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tmap::apps::bench {

/// The bytes of one copy, and those after which a signal is raised.
inline constexpr std::uint64_t piece_bytes = 16384;
inline constexpr std::uint64_t chunk_bytes = 131072;

enum class movement { put, get, add_f32 };

/// Moves `bytes`, a multiple of `chunk_bytes`, between this rank and `peer`. Offsets are those of
/// the user in the windows of the ranks.
struct move_request {
  movement kind{};
  std::uint32_t peer{};
  std::uint64_t from{};
  std::uint64_t to{};
  std::uint64_t bytes{};
  std::uint32_t blocks{};
  bool raises{};  ///< a signal for each chunk, at `signals` on the peer
  std::uint64_t signals{};
};

/// Sends pieces to and fro between two ranks. Rank 0 begins, and writes nanoseconds of one way.
struct turns_request {
  std::uint32_t peer{};
  std::uint32_t bytes{};     ///< of each piece, at most 8192; 0: a signal alone
  std::uint32_t turns{};     ///< after as many to warm up
  std::uint64_t to{};        ///< offset of the piece
  std::uint64_t signal{};    ///< offset of the signal, which must be 0 on both ranks
  std::uint64_t result{};    ///< offset of a `turns_result` on this rank
  std::uint64_t patience{};  ///< in nanoseconds
};

struct turns_result {
  double nanoseconds;  ///< of one way, or of one barrier
  std::uint64_t is_done;
};

/// Loads all kernels below on the current GPU: a launch that loads one may wait for the GPU.
cudaError_t prepare_kernels();

cudaError_t launch_move(const peer_memory_ref& window, const move_request& request, cudaStream_t stream);
cudaError_t launch_turns(const peer_memory_ref& window, const turns_request& request, cudaStream_t stream);
/// `request.turns` barriers of the group in one kernel.
cudaError_t launch_barriers(const peer_memory_ref& window, const turns_request& request, cudaStream_t stream);
/// Keeps the stream busy while the host enqueues what is measured.
cudaError_t launch_delay(std::uint64_t microseconds, cudaStream_t stream);

}  // namespace tmap::apps::bench
