// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/error.hpp>
#include <tmap/peer_memory.hpp>
#include <tmap/row_placement.hpp>

#include <cuda/stream_ref>

#include <chrono>
#include <cstdint>

/// @file
/// Calls that all ranks of a group make together, each on a stream of its own GPU. They enqueue a
/// kernel, return at once, and may be captured: counters lie in the window, so a graph may be
/// replayed if all ranks replay it as often. All ranks must make the same calls with the same
/// window in the same order. Calls with one window must not run at the same time on one rank.
///
/// The current device must be the GPU of this rank. No kernel waits longer than its patience, and
/// none traps. How it ended stands in the window: `last_outcome` returns it.
///
/// A window of `peer_group::allocate_local` is for `exchange_rows_async`, `await_pulls_async`,
/// `barrier_async` and `last_outcome`; other calls refuse it with `no_peer_access`. Exchanges and
/// barriers call NCCL, so they count as calls of the group: no other thread may use it or its
/// communicator meanwhile. All ranks capture such a call, or none does.
///
/// NCCL waits for other ranks without a deadline, and no patience bounds that. If a rank does not
/// come, or makes a barrier of what is an exchange on others, the others wait. `peer_group::check`
/// reports what NCCL finds. Only the end of the communicator ends the wait (ncclCommAbort).

namespace tmap {

/// How long a kernel waits for other ranks.
inline constexpr std::chrono::milliseconds default_peer_patience{5000};

/// Describes what one rank sends and gets in an exchange of rows. All pointers lie in the user's
/// bytes of this rank's window. The counts are in device memory: the host does not know them.
struct exchange_problem {
  /// The rows that this rank sends, in the order of the ranks they are for, then of their groups.
  const void* rows{};
  std::uint64_t sent_rows{};      ///< that `rows` has room for; `splits` may name fewer
  const std::uint32_t* splits{};  ///< [ranks, groups]: how many rows this rank sends to each
  void* out{};                    ///< gets the rows
  std::uint64_t capacity{};       ///< the rows that `out` has room for
  std::uint32_t* out_splits{};    ///< [ranks, groups]: gets how many rows came from each rank for each group
  std::uint32_t groups{1};        ///< of each rank, such as its experts; the same on all ranks
  std::uint32_t row_bytes{};      ///< at least 1; the same on all ranks
  row_placement placed{row_placement::rank_major};
  /// The bytes from one row to the next, less than 2^32. 0 stands for rows without gaps. Bytes
  /// between the rows of `out` stay as they are. Ranks may differ in their pitches.
  std::uint64_t rows_pitch_bytes{};
  std::uint64_t out_pitch_bytes{};
};

struct exchange_run {
  cuda::stream_ref stream;
  /// Blocks of the kernel, fewer than the GPU has multiprocessors. Each takes a whole one.
  std::uint32_t blocks{16};
  std::chrono::milliseconds patience{default_peer_patience};
};

/// Exchanges rows among all ranks. Each rank pulls what is for it; few rows come unasked, and many
/// are pushed. Only whole exchanges happen: if some rank would get more rows than its capacity, or
/// would send more than it has, no row moves, and all ranks learn it in the same call.
///
/// Later kernels of this stream find the rows in `out`. `rows` and `splits` must stay as they are
/// until `await_pulls_async`. In a broken group slower ranks may still be writing to `out`.
///
/// With a window of `peer_group::allocate_local` the bytes and the outcomes are the same. If a rank
/// sends another more rows than `pair_bytes` have room for, no row moves, and all ranks get
/// `peer_overflow`.
/// @fails `invalid_argument`, `no_kernel_image`, `no_driver`, `no_device`, `cuda_failure`. With a
/// window of `peer_group::allocate_local` also as `peer_group::check`.
[[nodiscard]] TMAP_API result<void> exchange_rows_async(const peer_memory& window, const exchange_problem& problem,
                                                        const exchange_run& run);

/// Waits, on the stream, until all ranks have pulled what this rank sent in earlier exchanges.
/// Later kernels may overwrite it if the outcome is a success (`device::last_verdict`). In a broken
/// group slower ranks may still be pulling. The outcome replaces that of the exchange: a success
/// hides an exchange that moved nothing, because of `peer_overflow` or bad counts.
/// @fails as `exchange_rows_async`.
[[nodiscard]] TMAP_API result<void> await_pulls_async(const peer_memory& window, cuda::stream_ref stream,
                                                      std::chrono::milliseconds patience = default_peer_patience);

/// Waits, on the stream, until all ranks have come here. What earlier kernels of the stream wrote
/// into any window, later kernels of all ranks may read.
/// @fails as `exchange_rows_async`.
[[nodiscard]] TMAP_API result<void> barrier_async(const peer_memory& window, cuda::stream_ref stream,
                                                  std::chrono::milliseconds patience = default_peer_patience);

/// Tests, on the stream, the way to every rank and back: bytes put into all windows and announced,
/// loaded there and got back. Then a kernel makes maps of a tensor on every rank, stores, adds and
/// loads tiles through them, and adds bytes. All this lies in the headers of the windows. Run it
/// once after `allocate` on machines that you do not know. `last_outcome` then fails with
/// `self_test_failed` and names a rank if bytes came wrong.
/// @fails as `exchange_rows_async`, and as `encode` if the driver makes no map.
[[nodiscard]] TMAP_API result<void> self_test_async(const peer_memory& window, cuda::stream_ref stream,
                                                    std::chrono::milliseconds patience = default_peer_patience);

/// Breaks the group of a window from the host: waiting kernels of all ranks end at once, and so do
/// later calls. For a program that found an error of its own and will make no more calls. Waits for
/// copies to all ranks, which need no multiprocessor. The current device must be the GPU of this
/// rank. Do not call it while this thread captures a stream.
/// @fails `invalid_argument`, `no_driver`, `no_device`, `cuda_failure`.
[[nodiscard]] TMAP_API result<void> abort_group(const peer_memory& window);

/// Waits for the stream, and returns how the last exchange or `await_pulls_async` with this window
/// ended, or a later call that waited in vain. To learn whether an exchange moved its rows, call it
/// before `await_pulls_async`. Do not call it while the stream is captured.
/// @fails `peer_timeout`, `peer_mismatch`, `group_broken`, `peer_overflow`, `self_test_failed`,
/// `invalid_argument` for counts of some rank, `cuda_failure`.
[[nodiscard]] TMAP_API result<void> last_outcome(const peer_memory& window, cuda::stream_ref stream);

}  // namespace tmap
