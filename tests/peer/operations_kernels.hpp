// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/peer_memory_ref.hpp>
#include <tmap/peer_verdict.hpp>
#include <tmap/tensor_map.hpp>

#include <cuda_runtime.h>

#include <cstdint>

// Kernels that call each function of tmap/device/peer.cuh, and the values that they send. Every
// rank runs the same kernel at the same time. Places are bytes of the user in a window.

namespace tmap::testing::operations {

/// Lies between pieces, and no kernel may write it.
inline constexpr std::uint32_t gap_bytes = 64;
inline constexpr std::uint32_t most_words = 1024;  ///< of a piece

/// Returns a word of the piece that `from` sends `to` in a round. No two words are alike.
TMAP_HOST_DEVICE constexpr std::uint32_t piece_word(std::uint32_t round, std::uint32_t from, std::uint32_t to,
                                                    std::uint32_t piece, std::uint32_t word) {
  std::uint64_t key = (((std::uint64_t{round} * 8 + from) * 8 + to) * 64 + piece) * 65536 + word;
  key = (key ^ (key >> 33)) * 0xff51afd7ed558ccdULL;
  key = (key ^ (key >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return static_cast<std::uint32_t>(key >> 32);
}

/// Counts what the block of a kernel has done, in device memory. Rounds go on from launch to
/// launch, so a graph may replay it.
struct operation_counts {
  std::uint32_t rounds;
  peer_status ended;  ///< `timeout` if a wait was in vain
  unsigned long long right_words;
  unsigned long long wrong_words;
};

/// Names how pieces come to the receiver.
enum class piece_way : std::uint32_t {
  put_and_load,   ///< the sender puts them, and threads load them
  put_and_copy,   ///< the sender puts them, and a bulk copy reads them
  write_and_get,  ///< the sender writes them to its own window, and the receiver gets them
};

/// Names how the sender orders its puts before their signals.
enum class piece_order : std::uint32_t {
  quiet_each,  ///< `quiet` after each put, and `raise` at the end
  flush_each,  ///< `flush` after each put, `quiet` and `raise_released` at the end
  one_ahead,   ///< `quiet` for all but the last put, and `raise_released` for each rank meanwhile
};

/// Describes rounds in which each rank sends pieces to every rank. A round overwrites those of the
/// round before, once the receiver has returned its credit.
struct piece_request {
  std::uint64_t data;
  std::uint64_t signals;  ///< word s is raised by rank s once its pieces are there
  std::uint64_t credits;  ///< word s is raised by rank s once it has read the pieces
  std::uint32_t pieces;   ///< for each rank in a round
  std::uint32_t words;    ///< of a piece
  std::uint32_t rounds;   ///< of a launch
  piece_way way;
  piece_order order;
  std::uint64_t patience;  ///< in nanoseconds

  /// Returns where a piece from or for `rank` lies in a window.
  TMAP_HOST_DEVICE std::uint64_t place(std::uint32_t rank, std::uint32_t piece) const {
    return data + (std::uint64_t{rank} * pieces + piece) * (4 * words + gap_bytes);
  }
};

/// Describes additions of all ranks into one place of every rank, by several blocks at once.
struct add_request {
  std::uint64_t data;
  std::uint64_t signal;  ///< each block of each rank raises it once
  std::uint32_t elements;
  std::uint32_t times;
  std::uint32_t blocks;
  std::uint64_t patience;
};

/// Returns what `from` adds to an element of `to`. Sums of a few are exact in every type.
TMAP_HOST_DEVICE constexpr float addend(std::uint32_t from, std::uint32_t to, std::uint32_t element) {
  return static_cast<float>((5 * from + 3 * to + element) % 7) - 3;
}

/// Describes barriers, or pieces that one rank passes to another into the same place.
struct turns_request {
  std::uint64_t data;
  std::uint32_t words;  ///< of a piece
  std::uint32_t turns;
  std::uint64_t patience;

  TMAP_HOST_DEVICE std::uint64_t place(std::uint32_t from) const { return data + from * (4 * words + gap_bytes); }
};

/// Names the function that one thread calls.
enum class lone_call : std::uint32_t {
  raise,
  wait,
  raise_address,
  raise_released_address,
  wait_address,
  barrier,
  put,
  take,
  give_back
};

struct lone_request {
  lone_call call;
  std::uint32_t peer;      ///< that the call names; waits name none
  std::uint64_t offset;    ///< of the signal or the data
  std::uint32_t value;     ///< of the signal, or of all words that are put
  std::uint64_t patience;  ///< in nanoseconds; 0 is also the deadline
};
inline constexpr std::uint32_t lone_words = 32;  ///< that a lone call puts

struct lone_result {
  std::uint32_t has_come;  ///< what a wait returned
  peer_verdict verdict;    ///< what any other call returned
  peer_verdict last;       ///< `last_verdict` after it
  std::uint64_t waited;    ///< in nanoseconds
  std::uint32_t is_done;   ///< 1
};

inline constexpr std::uint32_t tile_columns = 64;
inline constexpr std::uint32_t tile_rows = 16;
inline constexpr std::uint32_t tile_elements = tile_columns * tile_rows;
inline constexpr std::uint32_t most_tiles = 3;  ///< of a tensor

/// Returns an element that `writer` stores. It is a whole number.
TMAP_HOST_DEVICE constexpr float tile_value(std::uint32_t writer, std::uint32_t tensor, std::uint32_t row,
                                            std::uint32_t column) {
  return static_cast<float>((((writer + 1) * 32 + tensor) * 64 + row) * 64 + column);
}

/// Describes a kernel with one block for each tensor of a batch. It stores all tiles of its tensor,
/// or adds them, and raises word `tensor` of the rank before this one. Then it loads the tensor
/// that the rank after this one has stored.
struct tile_request {
  const tensor_map* stored;
  const std::uint64_t* stored_rows;
  const tensor_map* loaded;  ///< null: only store
  const std::uint64_t* loaded_rows;
  std::uint64_t signals;
  std::uint32_t tensors;
  bool adds;
  std::uint64_t patience;
};

/// Loads all kernels on the current GPU. CUDA may wait for the GPU when it loads one.
[[nodiscard]] cudaError_t load_kernels();
[[nodiscard]] cudaError_t load_turns();  ///< loads those of barriers, passed pieces and single calls

/// Each copies what came in the last round to `out`, in the order of ranks.
[[nodiscard]] cudaError_t launch_pieces(const peer_memory_ref& window, const piece_request& request,
                                        operation_counts* counts, std::uint32_t* out, cudaStream_t stream);
/// `T` is float, __half or __nv_bfloat16.
template <class T>
[[nodiscard]] cudaError_t launch_adds(const peer_memory_ref& window, const add_request& request,
                                      operation_counts* counts, T* out, cudaStream_t stream);
/// In each turn every rank writes and puts words to all ranks, and a barrier announces them.
[[nodiscard]] cudaError_t launch_barriers(const peer_memory_ref& window, const turns_request& request,
                                          operation_counts* counts, cudaStream_t stream);
/// Has a block for each rank that it sends to, and one for each that it takes from: so many counts.
[[nodiscard]] cudaError_t launch_passes(const peer_memory_ref& window, const turns_request& request,
                                        operation_counts* counts, cudaStream_t stream);
[[nodiscard]] cudaError_t launch_call(const peer_memory_ref& window, const lone_request& request, lone_result* result,
                                      cudaStream_t stream);
/// `out` gets `most_tiles` tiles for each tensor.
[[nodiscard]] cudaError_t launch_tiles(const peer_memory_ref& window, const tile_request& request,
                                       operation_counts* counts, float* out, cudaStream_t stream);

}  // namespace tmap::testing::operations
