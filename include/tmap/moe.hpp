// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/batch_run.hpp>
#include <tmap/config.hpp>
#include <tmap/device_address.hpp>
#include <tmap/error.hpp>
#include <tmap/grouped_gemm.hpp>
#include <tmap/item_status.hpp>

#include <cstdint>
#include <variant>

/// @file
/// The two ends of a layer of experts. `route` chooses experts for each token and sorts the choices
/// by expert. `combine` adds up the weighted rows of each token after the experts have worked, and
/// `combine_backward` computes its gradients. The products between them are in grouped_gemm.hpp.
///
/// *Choice* `token * k + j` is the j-th expert of a token. A *row* is a place in the order by
/// expert: rows of one expert follow each other, in the order of their choices.
///
/// The functions enqueue on the stream of `run::where` and return. They may be captured in a graph
/// and replayed with other contents in the same arrays. They are thread-safe, never allocate, and
/// never synchronise unless they are checked (`run::check`). All arrays are device memory of the
/// caller. Inputs must stay unchanged, and outputs unread, until the work has run in stream order.
/// No output may overlap another array, except that `combine_problem::out` may be its `base`.
/// Results do not depend on timing: equal inputs give equal bits.
///
/// Each choice is judged on the device. A bad one is skipped, its status gives the reason, and it
/// is counted as a row (faults.hpp). All others complete. A choice of -1 is empty, which is no
/// fault: it is skipped, too.
/// @fails
/// - `invalid_argument`: null or misaligned arrays, sizes beyond the limits below, a workspace too
///   small, windows.
/// - `bad_items`: the call is checked and a choice was bad. All its work is done.
/// - `no_driver`, `no_device`, `compute_capability_too_low`, `no_kernel_image`, `cuda_failure`.

namespace tmap::moe {

/// The limits of one call.
inline constexpr std::uint32_t max_experts = 1024;
inline constexpr std::uint32_t max_k = 32;              ///< choices of one token
inline constexpr std::uint32_t max_expert_groups = 32;  ///< see `expert_groups`
inline constexpr std::uint32_t max_alignment = 256;     ///< of an expert's first row
inline constexpr std::uint64_t max_choices = 1u << 30;  ///< tokens * k; of `combine`, also its rows
inline constexpr std::uint64_t max_columns = 1u << 30;

/// The faults of a choice, as bits. No other fault of a row (`ragged::fault`) has these bits,
/// except that `row` is `ragged::fault::index`.
enum class fault : std::uint32_t {
  row = 1u << 7,       ///< `combine`, `combine_backward`: its row does not exist
  expert = 1u << 8,    ///< `route` with given choices: its expert does not exist
  capacity = 1u << 9,  ///< `route`: its row would be `route_problem::rows` or above
};

/// The status of one choice.
using choice_status = item_status<fault>;

/// The type of logits, and of the rows that `combine` adds up.
enum class float_type : std::uint32_t { f32, bf16, f16 };
TMAP_HOST_DEVICE constexpr std::uint32_t float_bytes(float_type type) {
  return type == float_type::f32 ? 4 : 2;
}

/// How logits become choices and weights. Each expert has a *score* for each token. The k experts
/// with the largest scores are chosen, in falling order; of equal scores, the lower expert comes
/// first. A NaN counts as -infinity. Scores and weights are computed in f32.
enum class scoring : std::uint32_t {
  softmax_then_top_k,  ///< score: the logit; weight: its part of the softmax of all logits
  top_k_then_softmax,  ///< score: the logit; weight: its part of the softmax of the k chosen logits
  sigmoid,             ///< score: sigmoid(logit) + bias; weight: sigmoid(logit)
};

/// The score of a group of experts.
enum class group_scoring : std::uint32_t {
  largest,             ///< of its scores
  sum_of_two_largest,  ///< groups of at least 2 experts
};

/// Limits the choice to the experts of the best groups. Group g is the g-th part of all experts, in
/// their order. Of groups with equal scores, the lower one comes first.
struct expert_groups {
  std::uint32_t count{1};   ///< divides the experts evenly; 1: no groups
  std::uint32_t chosen{1};  ///< as many as hold k experts at least
  group_scoring score{};
};

/// Choices that are computed from logits.
struct logits {
  gemm::matrix values{};  ///< [tokens, experts]; address and pitch are multiples of an element's bytes
  float_type type{};
  moe::scoring scoring{};
  const float* bias{};  ///< `sigmoid` only: one for each expert; it changes the choice, not the weights
  expert_groups groups{};
  /// Divides the weights of a token by their sum. Weights whose sum is 0 stay as they are.
  bool renormalise{};
  float scale{1};  ///< the weights are multiplied by it, last
};

/// Choices that exist already. -1 stands for no expert.
struct given_choices {
  const void* ids{};       ///< [tokens, k] signed integers without gaps
  std::uint32_t bytes{4};  ///< of an integer: 4 or 8
  const float* weights{};  ///< [tokens, k] without gaps; null: all are 1
};

struct route_problem {
  std::uint64_t tokens{};
  std::uint32_t experts{};  ///< at least 1
  std::uint32_t k{};        ///< choices of each token, from 1 up to `max_k`; with logits, at most `experts`
  std::variant<logits, given_choices> choices{};
  std::uint32_t alignment{1};  ///< the first row of each expert is a multiple of it; a power of two
  /// Bounds the rows; a multiple of `alignment`. A choice whose row would be `rows` or above is bad
  /// (`capacity`). 0 stands for `most_rows`, so that every choice has a row.
  std::uint64_t rows{};
};

/// Returns the rows that are enough for any choices: `tokens * k`, plus the gaps that `alignment`
/// leaves between the experts.
TMAP_HOST_DEVICE constexpr std::uint64_t most_rows(std::uint64_t tokens, std::uint32_t experts, std::uint32_t k,
                                                   std::uint32_t alignment = 1) {
  const std::uint64_t choices = tokens * k;
  const std::uint64_t used = choices < experts ? choices : experts;
  return (choices + used * (alignment - 1)) / alignment * alignment;
}

/// The results of `route`. Null stands for a result that is not wanted.
struct route_results {
  /// [tokens, k]. For choices from logits only: given choices are there already.
  std::int32_t* ids{};
  float* weights{};
  std::int32_t* counts{};  ///< [experts]: the choices of each expert, including those without a row
  /// [experts + 1]: the first row of each expert. The last element is the first multiple of
  /// `alignment` that follows all rows. With `offset_format::prefix` they cut the rows of a
  /// product (`gemm::row_problem`) into experts with their gaps.
  std::int32_t* begins{};
  /// [experts]: the end of each expert's rows. If `alignment` is 1, these are the offsets of a
  /// product by `offset_format::ends`.
  std::int32_t* ends{};
  std::int32_t* row_of_choice{};  ///< [tokens, k]; -1: the choice was skipped
  /// [rows], or [`most_rows`] if `route_problem::rows` is 0. Rows without a choice hold -1 and 0.
  std::int32_t* token_of_row{};
  float* weight_of_row{};
};

/// `statuses` has an element for each choice. `windows` must be empty.
struct no_choices {};
using run = batch_run<fault, no_choices, on_stream>;

/// Returns the bytes of `scratch` that are enough for the problem, with any results. It looks at
/// the problem's sizes and at the kind of its choices.
[[nodiscard]] TMAP_API result<std::uint64_t> workspace_bytes(const route_problem& problem);

/// Chooses experts and sorts the choices by expert. Without tokens, it writes no rows, and counts
/// of 0.
[[nodiscard]] TMAP_API result<void> route(const route_problem& problem, const route_results& results, const run& run);

/// out[t] = base[t] + the sum over j of weights[t, j] * values[row_of_choice[t, j]], in f32: one
/// fused multiply-add for each j, in order, then one rounding to the type. The result of a token
/// does not depend on other tokens. Matrices have `columns` elements of `row_type` in each row;
/// their addresses and pitches, and the bytes of their rows, are multiples of 16 bytes.
struct combine_problem {
  std::uint64_t tokens{};
  std::uint32_t k{};
  std::uint64_t columns{};
  float_type row_type{};                ///< of `values`, `base` and `out`
  std::uint64_t rows{};                 ///< of `values`
  gemm::matrix values{};                ///< [rows, columns]
  const std::int32_t* row_of_choice{};  ///< [tokens, k]; -1: nothing is added
  const float* weights{};               ///< [tokens, k]; null: all are 1
  gemm::matrix base{};                  ///< [tokens, columns]; address 0: zeros. It may be `out`.
  gemm::matrix out{};                   ///< [tokens, columns]
};

/// It needs no workspace. A problem without tokens or columns enqueues nothing and writes no
/// statuses.
[[nodiscard]] TMAP_API result<void> combine(const combine_problem& problem, const run& run);

/// The gradients of `combine`. For each choice of a row, d_values[row] = weight * d_out[token] in
/// f32, then rounded to the type. Its d_weight is the inner product of values[row] and
/// d_out[token], summed in f32 in an order that depends on `columns` and `row_type` alone. A
/// skipped choice has a d_weight of 0. Rows that no choice names stay as they are. No two choices
/// name the same row. Matrices are those of `combine_problem`. The gradient of its base is `d_out`.
struct combine_gradients {
  std::uint64_t tokens{};
  std::uint32_t k{};
  std::uint64_t columns{};
  float_type row_type{};                ///< of `values`, `d_out` and `d_values`
  std::uint64_t rows{};                 ///< of `values` and `d_values`
  gemm::matrix values{};                ///< [rows, columns]; read for `d_weights` only
  const std::int32_t* row_of_choice{};  ///< [tokens, k]; -1: the choice was skipped
  const float* weights{};               ///< [tokens, k]; null: all are 1
  gemm::matrix d_out{};                 ///< [tokens, columns]
  gemm::matrix d_values{};              ///< [rows, columns]; address 0: not wanted
  float* d_weights{};                   ///< [tokens, k]; null: not wanted
};

/// It needs no workspace. A problem without tokens or columns enqueues nothing and writes nothing.
[[nodiscard]] TMAP_API result<void> combine_backward(const combine_gradients& problem, const run& run);

}  // namespace tmap::moe
