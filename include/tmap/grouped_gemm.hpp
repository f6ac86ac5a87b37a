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

// Many matrix products of different sizes in one call, C = A * B for each group, sums in f32. Sizes
// may exist only in device memory; they are read and judged there. Nothing is padded.
//
// Every function: enqueues on the stream of `run::where` and returns; may be captured in a graph
// and replayed with other sizes in the same arrays; is thread-safe; never synchronises, unless it
// is checked (`run::check`), and never allocates. `scratch` has at least `workspace_bytes(groups)`.
// No output may overlap an input, nor another group's output. A bad group is skipped, its output
// untouched, and its status says why; the others complete. It is counted (faults.hpp). A problem
// without groups, or a `row_problem` without rows, is done at once: not even statuses are written.
//
// Matrices are row-major: row i begins `i * pitch_bytes` behind the address, its elements follow
// each other. Addresses and pitches are multiples of 16 bytes. N, and K where it is the inner dim
// of an operand, are multiples of 16 bytes of elements (8, or 16 for 8-bit types); rows are any
// number.
//
// Fails with `invalid_argument` (null or misaligned arrays and matrices, sizes against the above,
// an epilogue that does not fit, an unknown plan, windows, workspace too small), `no_driver`,
// `no_device`, `compute_capability_too_low`, `no_kernel_image` (a GPU of another compute capability
// than 9.0, whose instructions products are made of, or a build without them: the error's text says
// which), `cuda_failure`; where it is checked, and then after all its work, with `bad_items`.

namespace tmap::gemm {

/// Of A and B. C is f16 for `f16`, else bf16. `f8_e4m3` is the OCP 8-bit format.
enum class operand_type : std::uint32_t { bf16, f16, f8_e4m3 };
TMAP_HOST_DEVICE constexpr std::uint32_t operand_bytes(operand_type type) {
  return type == operand_type::f8_e4m3 ? 1 : 2;
}

/// The most groups of one call, and the most rows, columns or elements of K.
inline constexpr std::uint32_t max_groups = 65536;
inline constexpr std::uint64_t max_extent = std::uint64_t{1} << 31;

/// What was wrong with a group, as bits.
enum class fault : std::uint32_t {
  rows = 1u << 0,     ///< it ends before it begins, begins before the end of any group before it, or ends behind the
                      ///< last row; `pointer_problem`: M is negative or above `max_extent`
  extent = 1u << 1,   ///< `pointer_problem`: N or K is negative, above `max_extent` or no multiple of 16 bytes
  address = 1u << 2,  ///< `pointer_problem`: null, no multiple of 16, or reaching beyond all addresses (2^57)
  pitch = 1u << 3,    ///< `pointer_problem`: no multiple of 16, below the row's bytes, or 2^40 and more
};

/// What became of one group. One that begins where it ends (of a `pointer_problem`: with a good M,
/// N and K of which one is 0) is empty and never bad: nothing is written for it, or zeros where
/// nothing is what is summed over (`weight_problem`, and `pointer_problem` with K = 0).
using group_status = item_status<fault>;

struct matrix {
  device_address address{};
  std::uint64_t pitch_bytes{};
};

/// How B of a group lies.
enum class b_layout : std::uint32_t {
  n_by_k,  ///< row n holds the K elements of column n: what linear layers store
  k_by_n,  ///< not for `f8_e4m3`
};

/// What is done to the sums before they are rounded to C's type.
enum class epilogue_kind : std::uint32_t {
  none,
  bias,        ///< + bias[group][column]
  swiglu,      ///< column j of C = silu(column j) * column N / 2 + j: C has N / 2 columns; N a multiple of 32
  accumulate,  ///< + what C held before
};
/// The bound of the numbers that stand for one.
inline constexpr epilogue_kind last_epilogue_kind{epilogue_kind::accumulate};
struct epilogue {
  epilogue_kind kind{epilogue_kind::none};
  const void* bias{};  ///< `bias`: [groups, N] of C's type, device memory, aligned to 16 bytes
  /// Factors that sums are multiplied by before all else; null: 1. Device memory, aligned to 16
  /// bytes.
  const float* row_scales{};     ///< one for each row of A
  const float* column_scales{};  ///< [groups, N]
};

/// A [rows, K] holds the groups' rows one group after another; C [rows, N] likewise, B is [groups,
/// N, K] or [groups, K, N]. Rows of C that belong to no group stay untouched.
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
  /// `f8_e4m3` only. Tensor cores cut off what of an 8-bit product lies more than 13 bits below the
  /// largest term, the sum so far among them. By default they sum up 128 elements of K, and f32
  /// sums add those up. True: they sum up all of K. That is faster, and each element may lose 2^-13
  /// of the largest sum on the way, so that errors grow with K.
  bool fast_accumulation{false};
};

/// Sums over rows: C[g] [m, n] = (A's rows of group g)^T * (B's rows of group g), for A [rows, m]
/// and B [rows, n]: the gradient of a layer's weights. A group without rows gets zeros. bf16 and
/// f16.
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

/// Every group by itself: A [m, k], B [n, k] or [k, n], C [m, n]. All arrays are device memory of
/// `groups` values. bf16 and f16.
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

/// What a caller may choose beside what every call has.
struct choices {
  std::optional<std::uint32_t> plan{};  ///< none: chosen by the problem's sizes; else below `plan_count`
};

/// How a call runs and what it reports: a status for each group. `windows` must be empty.
using run = batch_run<fault, choices, on_stream>;

/// Enough for every call on this many groups, whatever its choices.
[[nodiscard]] TMAP_API result<std::uint64_t> workspace_bytes(std::uint32_t groups);

/// The ways in which products can be cut into tiles, for tuning. Names are stable, numbers are not.
TMAP_API std::uint32_t plan_count();
TMAP_API const char* plan_name(std::uint32_t plan);  ///< null from `plan_count` on

[[nodiscard]] TMAP_API result<void> multiply(const row_problem& problem, const run& run);
[[nodiscard]] TMAP_API result<void> multiply(const weight_problem& problem, const run& run);
[[nodiscard]] TMAP_API result<void> multiply(const pointer_problem& problem, const run& run);

}  // namespace tmap::gemm
