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
/// | problem | what differs between groups | C of a group |
/// |---|---|---|
/// | `row_problem` | the rows of A | rows of C |
/// | `column_problem` | the columns of B | columns of C |
/// | `weight_problem` | the rows that are summed over | a matrix |
/// | `pointer_problem` | everything | a matrix |
///
/// Every function enqueues on the stream of `run::where` and returns. It may be captured in a graph
/// and replayed with other sizes in the same arrays. It is thread-safe, never allocates, and never
/// synchronises unless it is checked (`run::check`). `scratch` has at least
/// `workspace_bytes(groups)`. No output may overlap an input or another group's output. A bad group
/// is skipped: its output stays as it was, its status gives the reason, and it is counted
/// (faults.hpp). The other groups complete. A problem without groups, or a `row_problem` without
/// rows, enqueues nothing and writes no statuses.
///
/// C is row-major: row i begins at the address plus `i * pitch_bytes`, and its elements are
/// contiguous. Operands are stored in the order that `a_layout` and `b_layout` name: lines of the
/// second dim, a pitch apart. Addresses and pitches are multiples of 16 bytes. N and K are multiples
/// of 16 bytes of elements (8, or 16 for 8-bit types), unless they are ragged. Ragged extents and M
/// are free, but copies begin at multiples of 16 bytes: where lines of A or B run along the ragged
/// dim (`a_layout::k_by_m` of a `row_problem`, for example), each group begins at a multiple of 8
/// elements.
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
                      ///< last row; `begins_and_counts`: it shares rows of C with an earlier group that lies within
                      ///< the rows; `slots`: more rows than a slot has; `labels`: its rows do not follow each other;
                      ///< `pointer_problem`: M is negative or above `max_extent`
  extent = 1u << 1,   ///< `pointer_problem`: N or K is negative, above `max_extent` or no multiple of 16 bytes
  address = 1u << 2,  ///< in a list of addresses: null, no multiple of 16, or reaching beyond all addresses (2^57)
  pitch = 1u << 3,    ///< `pointer_problem`: no multiple of 16, below the row's bytes, or 2^40 and more
  label = 1u << 4,    ///< of a row, not of a group: `labels` has a value for it that is neither a group nor -1. The row
                      ///< belongs to no group. It is counted (faults.hpp), but not in `statuses` or `header`
  alignment = 1u << 5,  ///< lines of A or B run along the ragged dim, and it begins at no multiple of 16 bytes of them
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

/// The layout of an operand. 8-bit operands are stored along K: `m_by_k` and `n_by_k`.
enum class a_layout : std::uint32_t {
  m_by_k,  ///< line m holds the K elements of row m
  k_by_m,
};
enum class b_layout : std::uint32_t {
  n_by_k,  ///< line n holds the K elements of column n: what linear layers store
  k_by_n,
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

/// A holds the rows of all groups, and so does C [rows, N]. B has a matrix for each group. Rows of C
/// that belong to no group stay as they were.
struct row_problem {
  operand_type type{};
  std::uint32_t groups{};
  std::uint64_t rows{};  ///< of A and C; groups may end before
  std::uint64_t n{};
  std::uint64_t k{};
  row_offsets offsets{};
  matrix a{};
  gemm::a_layout a_layout{};
  matrix b{};
  std::uint64_t b_group_pitch_bytes{};  ///< from one group's B to the next
  /// Null, or the address of each group's B, in device memory. Then `b.address` and
  /// `b_group_pitch_bytes` are not used. The device checks the addresses.
  const std::uint64_t* b_addresses{};
  gemm::b_layout b_layout{};
  matrix c{};
  /// Null, or the address of each group's C [rows of the group, N], in device memory. Then
  /// `c.address` is not used. The device checks the addresses.
  const std::uint64_t* c_addresses{};
  gemm::epilogue epilogue{};
  /// For `f8_e4m3` only. Tensor cores drop the bits of an 8-bit product that lie more than 13 bits
  /// below the largest term, which includes the sum so far. By default they sum 128 elements of K
  /// at a time, and the results are added in f32. If true, they sum all of K. That is faster, but
  /// each element may lose 2^-13 of the largest sum so far, so errors grow with K.
  bool fast_accumulation{false};
};

/// C[:, columns of group g] = A[g] * (B's columns of group g). A has a matrix [m, k] for each group,
/// and all share the matrix C [m, columns]. Columns of C that belong to no group stay as they were.
/// A group whose columns do not begin and end at multiples of 8 is stored more slowly. bf16 and f16.
struct column_problem {
  operand_type type{};
  std::uint32_t groups{};
  std::uint64_t columns{};  ///< of B and C; groups may end before
  std::uint64_t m{};
  std::uint64_t k{};
  row_offsets offsets{};  ///< of columns
  matrix a{};
  std::uint64_t a_group_pitch_bytes{};  ///< from one group's A to the next
  gemm::a_layout a_layout{};
  matrix b{};
  gemm::b_layout b_layout{};
  matrix c{};
};

/// Products that sum over rows: C[g] [m, n] = (A's rows of group g)^T * (B's rows of group g). A has
/// `m` columns for each row, and B has `n`. This is the gradient of a layer's weights. Groups may
/// have rows in common. A group without rows gets zeros. bf16 and f16.
struct weight_problem {
  operand_type type{};
  std::uint32_t groups{};
  std::uint64_t rows{};  ///< of A and B: K of their layouts
  std::uint64_t m{};
  std::uint64_t n{};
  row_offsets offsets{};
  matrix a{};
  gemm::a_layout a_layout{gemm::a_layout::k_by_m};
  matrix b{};
  gemm::b_layout b_layout{gemm::b_layout::k_by_n};
  matrix c{};
  std::uint64_t c_group_pitch_bytes{};
  /// Null, or the address of each group's C, in device memory. Then `c.address` and
  /// `c_group_pitch_bytes` are not used. The device checks the addresses.
  const std::uint64_t* c_addresses{};
  epilogue_kind kind{epilogue_kind::none};  ///< `none` or `accumulate`
};

/// Groups with matrices of their own. Each array is device memory of `groups` values. bf16 and f16.
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
  gemm::a_layout a_layout{};
  gemm::b_layout b_layout{};
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
[[nodiscard]] TMAP_API result<void> multiply(const column_problem& problem, const run& run);
[[nodiscard]] TMAP_API result<void> multiply(const weight_problem& problem, const run& run);
[[nodiscard]] TMAP_API result<void> multiply(const pointer_problem& problem, const run& run);

}  // namespace tmap::gemm
