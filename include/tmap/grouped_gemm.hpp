// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/batch_run.hpp>
#include <tmap/config.hpp>
#include <tmap/device_address.hpp>
#include <tmap/error.hpp>
#include <tmap/item_status.hpp>
#include <tmap/map_patch.hpp>

#include <cstdint>
#include <optional>

/// @file
/// Runs many matrix products of different sizes in one call: C = A * B for each group, with sums in
/// f32. Sizes may exist only in device memory, where they are read and judged. Nothing is padded.
///
/// Every function enqueues on the stream of `run::where` and returns. It may be captured in a graph
/// and replayed with other sizes in the same arrays. It is thread-safe, never allocates, and never
/// synchronises unless it is checked (`run::check`). `scratch` has at least
/// `workspace_bytes(groups)`. No output may overlap an input or another group's output. A bad group
/// is skipped: its output stays as it was, its status gives the reason, and it is counted
/// (faults.hpp). The other groups complete. A problem without groups, or a `row_problem` without
/// rows, enqueues nothing and writes no statuses.
///
/// Matrices are row-major: row i begins at the address plus `i * pitch_bytes`, and its elements are
/// contiguous. Addresses and pitches are multiples of 16 bytes. N is a multiple of 16 bytes of
/// elements (8, or 16 for 8-bit types), and so is K if it is the inner dim of an operand. The
/// number of rows is free.
/// @fails `invalid_argument` (null or misaligned arrays and matrices, sizes against the above, an
/// epilogue that does not fit, an unknown plan, windows, workspace too small), `no_driver`,
/// `no_device`, `compute_capability_too_low`, `no_kernel_image` (a GPU of another compute
/// capability than 9.0, or a build without products; the error's text names the case),
/// `cuda_failure`. A checked call also fails with `bad_items`, after all its work.

namespace tmap::gemm {

/// The type of A and B. C is f16 for `f16`, else bf16. `f8_e4m3` is the OCP 8-bit format.
enum class operand_type : std::uint32_t { bf16, f16, f8_e4m3 };
TMAP_HOST_DEVICE constexpr std::uint32_t operand_bytes(operand_type type) {
  return type == operand_type::f8_e4m3 ? 1 : 2;
}

/// The most groups of one call, and the most rows, columns or elements of K.
inline constexpr std::uint32_t max_groups = 65536;
inline constexpr std::uint64_t max_extent = std::uint64_t{1} << 31;

/// The faults of a group, as bits.
enum class fault : std::uint32_t {
  rows = 1u << 0,     ///< it ends before it begins, begins before the end of an earlier group, or ends after the
                      ///< last row; `pointer_problem`: M is negative or above `max_extent`
  extent = 1u << 1,   ///< `pointer_problem`: N or K is negative, above `max_extent` or no multiple of 16 bytes
  address = 1u << 2,  ///< `pointer_problem`: null, no multiple of 16, or reaching beyond all addresses (2^57)
  pitch = 1u << 3,    ///< `pointer_problem`: no multiple of 16, below the row's bytes, or 2^40 and more
};

/// The status of one group. A group without rows is empty, not bad; so is a group of a
/// `pointer_problem` with a legal M, N and K of which one is 0. Nothing is written for an empty
/// group, except zeros if the sum is empty: in a `weight_problem`, and in a `pointer_problem` with
/// K = 0.
using group_status = item_status<fault>;

struct matrix {
  device_address address{};
  std::uint64_t pitch_bytes{};
};

/// The layout of a group's B.
enum class b_layout : std::uint32_t {
  n_by_k,  ///< row n holds the K elements of column n: what linear layers store
  k_by_n,  ///< not for `f8_e4m3`
};

/// The operation on the sums before they are rounded to C's type.
enum class epilogue_kind : std::uint32_t {
  none,
  bias,        ///< + bias[group][column]
  swiglu,      ///< column j of C = silu(column j) * column N / 2 + j: C has N / 2 columns; N a multiple of 32
  accumulate,  ///< + what C held before
};
/// The largest enumerator.
inline constexpr epilogue_kind last_epilogue_kind{epilogue_kind::accumulate};
struct epilogue {
  epilogue_kind kind{epilogue_kind::none};
  const void* bias{};  ///< `bias`: [groups, N] of C's type, device memory, aligned to 16 bytes
  /// Factors that the sums are multiplied by first; null means 1. Device memory, aligned to 16
  /// bytes.
  const float* row_scales{};     ///< one for each row of A
  const float* column_scales{};  ///< [groups, N]
};

/// A [rows, K] holds the rows of one group after another, and so does C [rows, N]. B is [groups, N,
/// K] or [groups, K, N]. Rows of C that belong to no group stay as they were.
struct row_problem {
  operand_type type{};
  std::uint32_t groups{};
  std::uint64_t rows{};  ///< of A and C; groups may end before
  std::uint64_t n{};
  std::uint64_t k{};
  row_offsets offsets{};
  matrix a{};
  matrix b{};
  std::uint64_t b_group_pitch_bytes{};  ///< from one group's B to the next
  b_layout layout{};
  matrix c{};
  gemm::epilogue epilogue{};
  /// For `f8_e4m3` only. Tensor cores drop the bits of an 8-bit product that lie more than 13 bits
  /// below the largest term, which includes the sum so far. By default they sum 128 elements of K
  /// at a time, and the results are added in f32. If true, they sum all of K. That is faster, but
  /// each element may lose 2^-13 of the largest sum so far, so errors grow with K.
  bool fast_accumulation{false};
};

/// Products that sum over rows: C[g] [m, n] = (A's rows of group g)^T * (B's rows of group g), for
/// A [rows, m] and B [rows, n]. This is the gradient of a layer's weights. A group without rows
/// gets zeros. bf16 and f16.
struct weight_problem {
  operand_type type{};
  std::uint32_t groups{};
  std::uint64_t rows{};
  std::uint64_t m{};
  std::uint64_t n{};
  row_offsets offsets{};
  matrix a{};
  matrix b{};
  matrix c{};
  std::uint64_t c_group_pitch_bytes{};
  epilogue_kind kind{epilogue_kind::none};  ///< `none` or `accumulate`
};

/// Groups with matrices of their own: A [m, k], B [n, k] or [k, n], C [m, n]. Each array is device
/// memory of `groups` values. bf16 and f16.
struct pointer_problem {
  operand_type type{};
  std::uint32_t groups{};
  const std::uint64_t* a{};  ///< addresses
  const std::uint64_t* b{};
  const std::uint64_t* c{};
  const std::int64_t* a_pitch_bytes{};
  const std::int64_t* b_pitch_bytes{};
  const std::int64_t* c_pitch_bytes{};
  const std::int64_t* m{};
  const std::int64_t* n{};
  const std::int64_t* k{};
  b_layout layout{};
  epilogue_kind kind{epilogue_kind::none};  ///< `none` or `accumulate`
};

/// The options that only products have.
struct choices {
  std::optional<std::uint32_t> plan{};  ///< below `plan_count`; none: chosen by the problem's sizes
};

/// How a call runs and what it reports. `statuses` has an element for each group. `windows` must be
/// empty.
using run = batch_run<fault, choices, on_stream>;

/// Returns the bytes that are enough for every call on this many groups, with any choices.
[[nodiscard]] TMAP_API result<std::uint64_t> workspace_bytes(std::uint32_t groups);

/// The plans by which products are cut into tiles, for tuning. Names are stable, numbers are not.
TMAP_API std::uint32_t plan_count();
TMAP_API const char* plan_name(std::uint32_t plan);  ///< null from `plan_count` on

[[nodiscard]] TMAP_API result<void> multiply(const row_problem& problem, const run& run);
[[nodiscard]] TMAP_API result<void> multiply(const weight_problem& problem, const run& run);
[[nodiscard]] TMAP_API result<void> multiply(const pointer_problem& problem, const run& run);

}  // namespace tmap::gemm
