// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/error.hpp>
#include <tmap/grouped_gemm.hpp>
#include <tmap/moe.hpp>

#include <cstdint>

/// @file
/// A layer of experts in one call:
///
/// 1. It routes tokens to experts, as `route` does.
/// 2. It multiplies the rows of each expert twice, with a gate in between, as `gemm::multiply` of a
///    `row_problem` does.
/// 3. It adds up the weighted results of each token, as `combine` does.
///
/// `layer` enqueues on the stream of `run::where` and returns. It may be captured in a graph and
/// replayed with other contents in the same arrays. It is thread-safe, never allocates, and never
/// synchronises unless it is checked (`run::check`). All arrays are device memory of the caller.
/// Inputs must stay unchanged, and outputs unread, until the work has run in stream order. No
/// output may overlap another array, except that `out` may be `base` or `x`. A token's result
/// depends on its own row of `x`, on its choices and on the weights of their experts alone, and
/// equal inputs give equal bits. (A token that loses a choice because `routing.rows` is too small
/// also depends on the tokens before it.)
///
/// Each choice is judged on the device as by `route`. A bad one is skipped, its status gives the
/// reason, and it is counted as a row (faults.hpp). An expert whose weights have a bad address is
/// skipped, reported as a group (`gemm::fault::address`), and its rows of results are undefined.
/// @fails
/// - `invalid_argument`: null or misaligned arrays and matrices, sizes that products, `route` or
///   `combine` do not take, a workspace too small, windows.
/// - `no_kernel_image`: a GPU of another compute capability than 9.0, or a build without products.
/// - `bad_items`: the call is checked and a choice or an expert was bad. All its work is done.
/// - `no_driver`, `no_device`, `compute_capability_too_low`, `cuda_failure`.

namespace tmap::moe {

/// The weights of one product: a matrix [n, k] for each expert, whose lines hold the k weights of a
/// result, as linear layers store them.
struct expert_weights {
  gemm::matrix values{};              ///< of the first expert
  std::uint64_t group_pitch_bytes{};  ///< from one expert's weights to the next
  /// Null, or the address of each expert's weights, in device memory. Then `values.address` and
  /// `group_pitch_bytes` are not used. The device checks the addresses.
  const std::uint64_t* addresses{};
  const void* bias{};  ///< null, or [experts, n] of the type of `layer_problem::x`, aligned to 16 bytes
  /// Of weights of `f8_e4m3`, which must have them: a scale for each 128 x 128 of an expert's
  /// matrix.
  gemm::block_scales scales{};
};

/// out[t] = base[t] + the sum over the choices j of token t: weight[t, j] * expert(x[t]).
/// expert(x) = down * gate(gate_up * x + bias of gate_up) + bias of down.
///
/// Weights of `f8_e4m3` have block scales. Tokens and results are then bf16. Each token is rounded
/// to e4m3 with a scale for each 128 elements, as by `ragged::quantize`, and so are the results of
/// the gate.
struct layer_problem {
  gemm::operand_type type{};  ///< of weights: bf16, f16 or `f8_e4m3`
  /// Its `rows` bound the rows of all experts.
  route_problem routing{};
  std::uint64_t width{};  ///< elements of a token, a multiple of 8; with `f8_e4m3` of 16
  /// Results of a gate, a multiple of 16. With `f8_e4m3` and gates in halves, a multiple of 128.
  std::uint64_t inner{};
  gemm::matrix x{};          ///< [tokens, width] of `type`, or bf16
  expert_weights gate_up{};  ///< n = 2 * inner, k = width
  /// Has a function. `kept` may be set: it gets the results of the first product before the gate,
  /// [rows, 2 * inner], for training.
  gemm::gate gate{.function = gemm::gate_function::silu};
  expert_weights down{};  ///< n = width, k = inner
  bool powers_of_two{};   ///< with `f8_e4m3`: scales that the layer makes are rounded up to them
  gemm::matrix base{};    ///< [tokens, width]: the output of a shared expert, for example; address 0: zeros
  gemm::matrix out{};     ///< [tokens, width]
};

/// Results that training or debugging may want. Null, or an address of 0, stands for a result that
/// is not wanted. *Rows* are `route_problem::rows`, or `most_rows` if that is 0. They are in the
/// order of `routed.begins`. Rows without a choice hold no defined numbers.
struct layer_results {
  route_results routed{};
  /// [rows, width]: the rows of x, in the order by expert. With `f8_e4m3` they are rounded to it,
  /// and go together with `row_scales`.
  gemm::matrix rows{};
  gemm::matrix activated{};   ///< [rows, inner]: the results of the gate, of `type`
  float* row_scales{};        ///< with `f8_e4m3`, of `rows`: [rows, width / 128, rounded up]
  float* activated_scales{};  ///< with `f8_e4m3`, of `activated`: [rows, inner / 128, rounded up]
  gemm::matrix outputs{};     ///< [rows, width]: the results of the experts, without the weights of choices
  gemm::group_status* gate_up_statuses{};  ///< [experts], of the first product
  gemm::group_status* down_statuses{};     ///< [experts], of the second
};

/// Returns the bytes of `scratch` that are enough for the problem, with any results. It looks at
/// the problem's sizes, its type and the kind of its choices.
[[nodiscard]] TMAP_API result<std::uint64_t> workspace_bytes(const layer_problem& problem);

/// Runs the layer. `run::statuses` has an element for each choice, and `run::header` counts these.
/// Without tokens it writes what `route` writes, and nothing else.
[[nodiscard]] TMAP_API result<void> layer(const layer_problem& problem, const layer_results& results, const run& run);

}  // namespace tmap::moe
