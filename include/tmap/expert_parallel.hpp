// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/batch_run.hpp>
#include <tmap/config.hpp>
#include <tmap/error.hpp>
#include <tmap/grouped_gemm.hpp>
#include <tmap/moe.hpp>
#include <tmap/peer_exchange.hpp>
#include <tmap/peer_memory.hpp>

#include <cuda_runtime_api.h>
#include <cuda/stream_ref>

#include <chrono>
#include <cstdint>

/// @file
/// Experts that are spread over the ranks of a group (docs/peers.md). Each rank has as many, and
/// expert e is on rank e / (experts / ranks).
///
/// 1. `dispatch_async` brings each token to the ranks of its experts. A token's row crosses once
///    for each of these ranks, and lands at all its places in the order by expert.
/// 2. The caller runs its products on these rows, as on those of `moe::route`.
/// 3. `combine_async` adds up the weighted results of each token on each rank, brings one row for
///    each (token, rank) home, and adds these up. Or it brings the result of each choice home
///    (`return_kind`).
///
/// Rows of an expert are in the order of the ranks they come from, then of tokens and choices. That
/// is their order on one GPU with the tokens of all ranks one after the other. Results do not
/// depend on timing: equal inputs give equal bits.
///
/// The calls are those of a group (peer_exchange.hpp): all ranks make them in the same order, each
/// on a stream of its own GPU, which is the current device. They enqueue kernels, return, never
/// allocate, and may be captured; all ranks must replay their graphs equally often. Different
/// windows may be used by different threads. No kernel waits longer than the patience.
/// `last_outcome` returns how the last call ended. A combine ends as its dispatch did unless that
/// was a success, so one look after the combine is enough. Only whole dispatches happen: if some
/// rank has too little room, all ranks learn it in the same call. Outputs of a call without success
/// are undefined.
///
/// Arrays are device memory of the caller, of this rank's GPU. Those marked *window* lie in the
/// user's bytes of this rank's window. Inputs must stay unchanged, and outputs unread, until the
/// work has run in stream order. Others pull `x`, `values` of `return_kind::rows`, and parts of the
/// workspace, which only these calls may write. A later kernel of the stream may overwrite `x`
/// after a combine, and `values` after `await_pulls_async`, if the last verdict is a success
/// (`device::last_verdict`): in a broken group slower ranks may still be pulling.
/// @fails `invalid_argument`, `no_kernel_image`, `no_driver`, `no_device`,
/// `compute_capability_too_low`, `cuda_failure`.

namespace tmap::expert_parallel {

/// Names what comes home from the experts of a token.
enum class return_kind : std::uint32_t {
  /// One sum from each rank: that of weight * row over the token's choices there, in their order,
  /// in f32 by one fused multiply-add for each, then rounded to the type. A token's result is base
  /// + its sums, in f32, in the order of its first choice of each rank. It has the bits of
  /// `moe::combine` without a base if all its experts are on one rank. Otherwise each sum is
  /// rounded once more.
  sums,
  /// The row of each choice. A token's result has the bits of `moe::combine` on one GPU. With many
  /// choices and few ranks, more rows cross.
  rows,
};

/// Holds the sizes of a layer's exchange. Ranks may differ in `tokens`, `arrivals` and `rows`. The
/// rest is the same on all ranks.
struct shape {
  std::uint64_t tokens{};   ///< of this rank
  std::uint32_t k{};        ///< choices of each token, from 1 up to `moe::max_k`
  std::uint32_t experts{};  ///< of all ranks together: a multiple of the ranks, at most `moe::max_experts` a rank
  /// Tokens of all ranks, its own included, that this rank has room for. The tokens of all ranks
  /// together are enough for any choices.
  std::uint64_t arrivals{};
  /// Rows that this rank has room for; a multiple of `alignment`. 0 stands for `row_count`, so that
  /// all arrivals have theirs.
  std::uint64_t rows{};
  std::uint32_t alignment{1};     ///< the first row of each expert is a multiple of it; a power of two
  std::uint32_t row_bytes{};      ///< of a token, a multiple of 16
  std::uint32_t scales{};         ///< f32 that go with each row, such as block scales; at most 4096
  std::uint64_t columns{};        ///< of a result; its bytes are a multiple of 16
  moe::float_type result_type{};  ///< of results and sums
  return_kind returned{};
};

/// Returns the rows of this rank: `rows`, or as many as its arrivals have at most.
TMAP_HOST_DEVICE constexpr std::uint64_t row_count(const shape& sizes, std::uint32_t ranks) {
  if (sizes.rows != 0 || ranks == 0) return sizes.rows;
  return moe::most_rows(sizes.arrivals, sizes.experts / ranks, sizes.k, sizes.alignment);
}

/// Describes tokens to send, and where what comes goes. Null stands for a result that is not
/// wanted.
struct dispatch_problem {
  shape sizes;
  gemm::matrix x;                 ///< *window*: [tokens] rows; address and pitch are multiples of 16
  const float* x_scales{};        ///< [tokens, scales]
  std::uint64_t x_scale_pitch{};  ///< elements from one token's scales to the next
  const std::int32_t* ids{};      ///< [tokens, k] experts; a number that is no expert is left out
  const float* weights{};         ///< [tokens, k]; null: all are 1
  /// *window*: gets the rows, in the order by expert. Rows without a choice stay as they are.
  gemm::matrix out;
  float* out_scales{};     ///< [rows, scales]
  std::int32_t* counts{};  ///< [experts of this rank]
  std::int32_t* begins{};  ///< [experts of this rank + 1]: as `moe::route_results::begins`
  std::int32_t* ends{};    ///< [experts of this rank]
  float* weight_of_row{};  ///< [rows]
  /// Null, or [experts of this rank + 1] words of device memory that let a product begin while rows
  /// come: `gemm::row_problem::pending`. The call sets them, so they need no initial value. Read
  /// them after `ready`. Word e is then 0 once all rows of expert e are in `out`. The last word
  /// is 0 once all blocks that bring rows run. Experts are complete in their order if the dispatch
  /// takes a kernel for each step; with few tokens, all at the end (docs/peers.md). All words are 0
  /// at the end of the call's last kernel, however it ends. Rows of a call without success are
  /// undefined. If `dispatch_async` returns a failure, start no product: it might wait for ever.
  std::uint32_t* pending{};
  /// Null, or an event of this GPU, which `pending` needs. The call records it when all outputs but
  /// `out` are there and the words are set. Another stream waits for it and runs the product, which
  /// takes the multiprocessors that the dispatch leaves, and in the end all. The stream of the call
  /// must wait for that stream before its combine, and before the next use of `pending`.
  cudaEvent_t ready{};
};

/// Describes results to return.
struct combine_problem {
  shape sizes;  ///< as in the dispatch; a combine of other sizes moves nothing and is refused
  /// [rows, columns]: results in the order of the dispatch's rows. With `return_kind::rows` it is
  /// in the *window*, and others read it, as they do `x`.
  gemm::matrix values;
  const float* weights{};  ///< [tokens, k], as in the dispatch; only `return_kind::rows` reads it here
  gemm::matrix base{};     ///< [tokens, columns]; address 0: zeros. It may be `out`.
  gemm::matrix out;        ///< [tokens, columns]
};

/// Describes how a call runs.
struct run {
  cuda::stream_ref stream;
  /// *window*: `workspace_bytes`, the same for a dispatch and its combine, which finds there what
  /// the dispatch knew. One workspace serves one dispatch at a time.
  workspace scratch{};
  /// Blocks of the kernels that move rows, fewer than the GPU has multiprocessors. Each takes a
  /// whole one. With few tokens there is one more block.
  std::uint32_t blocks{16};
  std::chrono::milliseconds patience{default_peer_patience};  ///< of each of a call's kernels
};

/// Returns the bytes of the workspace.
[[nodiscard]] TMAP_API result<std::uint64_t> workspace_bytes(const shape& sizes, std::uint32_t ranks);

/// Brings tokens to their experts. First it waits until all ranks have pulled what this rank sent
/// before, as `await_pulls_async`.
[[nodiscard]] TMAP_API result<void> dispatch_async(const peer_memory& window, const dispatch_problem& problem,
                                                   const run& run);

/// Brings the sums or rows of the last dispatch in this workspace home. Sums need a dispatch for
/// each combine: a second combine, or one of other sizes, moves nothing, and `last_outcome` returns
/// `invalid_argument`.
[[nodiscard]] TMAP_API result<void> combine_async(const peer_memory& window, const combine_problem& problem,
                                                  const run& run);

}  // namespace tmap::expert_parallel
