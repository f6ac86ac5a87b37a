// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/batch_run.hpp>
#include <tmap/config.hpp>
#include <tmap/device_address.hpp>
#include <tmap/error.hpp>
#include <tmap/item_status.hpp>
#include <tmap/map_patch.hpp>

#include <cstdint>
#include <limits>
#include <optional>

/// @file
/// Runs many matrix products of different sizes in one call: C = A * B for each group, with sums in
/// f32. Sizes may exist only in device memory, where they are read and judged. Nothing is padded.
///
/// - `row_problem`: groups differ in their rows of A and C.
/// - `column_problem`: groups differ in their columns of B and C.
/// - `weight_problem`: groups differ in the rows that are summed over. Each has a matrix C.
/// - `pointer_problem`: groups differ in everything.
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
/// second dim, a pitch apart. Addresses and pitches are multiples of 16 bytes. So are rows of C,
/// and lines of operands along N or K, unless these are ragged. Ragged extents and M are free.
///
/// Copies begin at multiples of 16 bytes. If lines of A or B run along the ragged dim, as with
/// `a_layout::k_by_m` of a `row_problem`, each group therefore begins at a multiple of 8 elements,
/// or of 16 with 8 bits.
/// @fails
/// - `invalid_argument`: null or misaligned arrays and matrices, sizes against the above, an
///   epilogue that does not fit, an unknown plan, windows, a workspace too small.
/// - `no_kernel_image`: a GPU of another compute capability than 9.0, or a build without products.
///   The error's text names the case.
/// - `bad_items`: the call is checked and a group was bad. All its work is done.
/// - `no_driver`, `no_device`, `compute_capability_too_low`, `cuda_failure`.

namespace tmap::gemm {

/// The type of A and B. `f8_e4m3` is the OCP 8-bit format. Of `f8_e5m2`, A is of that OCP format
/// and B is e4m3: gradients times weights.
enum class operand_type : std::uint32_t { bf16, f16, f8_e4m3, f8_e5m2 };
TMAP_HOST_DEVICE constexpr bool has_8_bits(operand_type type) {
  return type == operand_type::f8_e4m3 || type == operand_type::f8_e5m2;
}
TMAP_HOST_DEVICE constexpr std::uint32_t operand_bytes(operand_type type) {
  return has_8_bits(type) ? 1 : 2;
}

/// The most groups of one call, and the most rows, columns or elements of K.
inline constexpr std::uint32_t max_groups = 65536;
inline constexpr std::uint64_t max_extent = std::uint64_t{1} << 31;

/// The faults of a group, as bits.
enum class fault : std::uint32_t {
  /// It ends before it begins, begins before the end of an earlier group, or ends after the last
  /// row. `begins_and_counts`: it shares rows of C with an earlier group that lies within the rows.
  /// `slots`: it has more rows than a slot. `labels`: its rows do not follow each other.
  /// `pointer_problem`: M is negative or above `max_extent`.
  rows = 1u << 0,
  /// `pointer_problem`: N or K is negative, above `max_extent`, or makes rows of no multiple of 16
  /// bytes.
  extent = 1u << 1,
  /// In a list of addresses: null, no multiple of 16, or reaching beyond all addresses (2^57).
  address = 1u << 2,
  /// `pointer_problem`: no multiple of 16, below the row's bytes, or 2^40 and more.
  pitch = 1u << 3,
  /// The fault of a row, not of a group: `labels` has a value for it that is neither a group nor
  /// -1. The row belongs to no group. It is counted (faults.hpp), but not in `statuses` or
  /// `header`.
  label = 1u << 4,
  /// Lines of A or B run along the ragged dim, and it begins at no multiple of 16 bytes of them.
  alignment = 1u << 5,
  /// The fault of a row, not of a group: `row_problem::a_rows` names a row that A does not have.
  /// The product reads a row of zeros. It is counted (faults.hpp), but not in `statuses` or
  /// `header`.
  a_row = 1u << 6,
  /// The fault of a row, not of a group: `row_problem::c_rows` names a row that C does not have.
  /// The row of the product is not stored. It is counted (faults.hpp), but not in `statuses` or
  /// `header`.
  c_row = 1u << 7,
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

/// The type of C. `f8_e4m3` comes with a scale for each 128 results of a row (`result_scales`).
enum class result_type : std::uint32_t {
  like_operands,  ///< f16 for operands of `f16`, else bf16
  f32,
  f8_e4m3,
};
/// Returns the bytes of an element of C.
TMAP_HOST_DEVICE constexpr std::uint32_t result_bytes(result_type type) {
  return type == result_type::f32 ? 4 : type == result_type::f8_e4m3 ? 1 : 2;
}

/// The function of a gate g. Sigma is 1 / (1 + exp(-x)).
enum class gate_function : std::uint32_t {
  none,
  silu,       ///< g * sigma(alpha * g)
  gelu,       ///< g * (1 + erf(g / sqrt(2))) / 2
  gelu_tanh,  ///< g * (1 + tanh(sqrt(2 / pi) * (g + 0.044715 * g^3))) / 2
};
/// The columns of B that are gates. N is a multiple of 32 with either, unless the gate is backward.
enum class gate_columns : std::uint32_t {
  halves,       ///< result j is of gate j and value N / 2 + j
  interleaved,  ///< result j is of gate 2 j and value 2 j + 1
};

/// Makes one result of two columns of sums: function(gate) * (value + value_shift). C has N / 2
/// columns. `alpha` 1.702, `limit` 7 and `value_shift` 1 are the layer of gpt-oss.
struct gate {
  gate_function function{};
  gate_columns columns{};
  float alpha{1};                                       ///< finite; of `silu` only
  float limit{std::numeric_limits<float>::infinity()};  ///< above 0: gates are cut to at most it, values to +-it
  float value_shift{};                                  ///< finite
  /// Gets the sums as they are before the gate, with factors and bias, in 16 bits (the type
  /// `like_operands`): [rows, N]. Without an address nothing is kept. A backward gate reads it.
  matrix kept{};
  /// The sums are then gradients of a gate's results, and N counts these. C gets the gradients of
  /// gates and values, [rows, 2 N], in the order of `columns`. Only factors go with it, and C of
  /// type `like_operands`.
  bool backward{};
};

/// Changes the sums, in this order, before C's old content is added (`accumulate`) and they are
/// rounded. Arrays are device memory, aligned to 16 bytes (`row_scales`: 4). Null means none.
struct epilogue {
  const float* row_scales{};          ///< factors, one for each row of A, which `a_rows` may name
  std::uint64_t row_scale_stride{1};  ///< elements from one row's factor to the next
  const float* column_scales{};       ///< factors, [groups, N]
  const void* bias{};                 ///< is added: [groups, N] of the type `like_operands`
  gemm::gate gate{};
};

/// Places the scales of C of type `f8_e4m3`. Columns [128 j, 128 j + 128) of row i are C times the
/// element `i * row_stride + j * column_stride`. It is their largest magnitude divided by 448, or 1
/// if that is 0, as in `ragged::quantize`. With a NaN or an infinity among them, it and all of them
/// are NaN.
///
/// Scales that are given, for instance those of an earlier step, are read instead of written.
/// Results are multiplied by the reciprocal, which is rounded to f32, and magnitudes above 448
/// become 448. A stride of 0 makes one scale belong to all of a row or to all of C.
struct result_scales {
  float* values{};
  std::uint64_t row_stride{};     ///< in elements
  std::uint64_t column_stride{};  ///< in elements
  bool are_powers_of_two{};       ///< rounded up to one; not of scales that are given
  bool are_given{};
};
/// This many results of a row share a scale.
inline constexpr std::uint32_t scaled_results = 128;

/// Places the scales of an operand of 8 bits. One scale belongs to 128 elements of K, of one line
/// (row of A) or of `lines` lines (columns of B). That of elements [128 j, 128 j + 128) of line i
/// in group g is the element `i / lines * line_stride + j * k_stride + g * group_stride`. The
/// largest such element is below 2^32.
///
/// In a `weight_problem`, `lines` is 1, and blocks begin where groups begin. If group g begins at
/// row r, the scale of its rows [r + 128 j, r + 128 j + 128) in line i is the element
/// `i * line_stride + (r / 128 + j) * k_stride + g * group_stride`, with r / 128 rounded down.
/// Where all groups begin at multiples of 128, `group_stride` may be 0. Else, if groups follow each
/// other, a `group_stride` of `k_stride` keeps their scales apart. Then there are at most (rows /
/// 128) + groups blocks.
struct block_scales {
  const float* values{};         ///< null: none, as if all were 1
  std::uint64_t line_stride{};   ///< in elements
  std::uint64_t k_stride{};      ///< in elements
  std::uint64_t group_stride{};  ///< in elements; of A: 0 in a `row_problem`
  std::uint32_t lines{1};        ///< of A: 1; of B: `scaled_columns` in a `row_problem`
};
/// This many elements of K, and as many columns of B, share a scale.
inline constexpr std::uint32_t scaled_elements = 128;
inline constexpr std::uint32_t scaled_columns = 128;

/// A holds the rows of all groups, and so does C [rows, N]. B has a matrix for each group. Rows of
/// C that belong to no group stay as they were, unless `zero_rest` is set.
struct row_problem {
  operand_type type{};
  std::uint32_t groups{};
  /// Rows of A and of C, unless `a_rows` or `c_rows` name these. Groups may end before.
  std::uint64_t rows{};
  std::uint64_t n{};
  std::uint64_t k{};
  row_offsets offsets{};
  matrix a{};
  gemm::a_layout a_layout{};
  /// Null, or words of device memory that a running kernel raises while it brings the rows of A:
  /// [groups + 1]. The product waits until word g is 0 before it reads rows of group g, and takes
  /// no multiprocessors before the last word is 0. `expert_parallel::dispatch_problem::pending` is
  /// such an array. Only rows may come late: offsets and scales are there before the product in
  /// stream order. Nothing ends a wait for a word that is never raised. So launch the dispatch
  /// first, and let the product wait for its event. If other work of this GPU must run before the
  /// words can be raised, such as other ranks, bound `choices::blocks`. Not with `a_rows`.
  const std::uint32_t* pending{};
  /// Null, or the row of A that row i is made of, in device memory: [rows]. A then has
  /// `a_row_count` rows, `m_by_k`, of which any may be named any number of times. Its scales and
  /// `row_scales` are then those of its `a_row_count` rows. -1 names a row of zeros with scales of
  /// 1. So does a number that is no row of A, and it is counted (`fault::a_row`). Numbers of rows
  /// that belong to no group are not read.
  const std::int32_t* a_rows{};
  std::uint64_t a_row_count{};  ///< 0 without `a_rows`
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
  /// Null, or the row of C in which row i is stored, in device memory: [rows]. C then has
  /// `c_row_count` rows. -1 stands for a row that is not stored. So does a number that is no row of
  /// C, and it is counted (`fault::c_row`). Rows of C that no row of a group names stay as they
  /// were. Only products of rows along K have it (`m_by_k`, `n_by_k`), of bf16, f16 or e4m3, with
  /// one C of 16 bits or f32, without `a_rows`, a backward gate and `fast_accumulation`.
  ///
  /// Rows of groups name different rows of C, or results are undefined. With `accumulate` and C of
  /// `f32`, several may name the same row. All are added to it, in no fixed order. Two that are
  /// added to zeros give the same bits in either order, more may not.
  const std::int32_t* c_rows{};
  std::uint64_t c_row_count{};  ///< 0 without `c_rows`
  result_type c_type{};
  /// Adds to what C held before, of type `like_operands` or `f32`. f32 is added in memory. The rest
  /// is read, added in f32 and rounded once.
  bool accumulate{};
  result_scales c_scales{};  ///< of C of type `f8_e4m3`
  gemm::epilogue epilogue{};
  /// Both or none; of 8-bit operands only. The tensor cores sum up 128 elements of K. The result is
  /// multiplied by the product of its two scales, which is rounded to f32, and added to the sum of
  /// those before it in one fused step. Scales may be any numbers; 0, infinities and NaNs act as in
  /// f32. With gates in halves, N / 2 is a multiple of 128.
  block_scales a_scales{};
  block_scales b_scales{};
  /// For `f8_e4m3` without block scales only. Tensor cores drop the bits of an 8-bit product that
  /// lie more than 13 bits below the largest term, which includes the sum so far. By default they
  /// sum 128 elements of K at a time, and the results are added in f32. If true, they sum all of K.
  /// That is faster, but each element may lose 2^-13 of the largest sum so far, so errors grow with
  /// K.
  bool fast_accumulation{false};
  /// Rows of C that belong to no group, or to a bad one, become zero. Groups that follow each other
  /// without gaps are written once, all others twice. Neither with `accumulate` nor with
  /// `c_addresses` or `c_rows`. Of C of type `f8_e4m3`, the scales of such rows stay as they were.
  bool zero_rest{};
};

/// C[:, columns of group g] = A[g] * (B's columns of group g). A has a matrix [m, k] for each
/// group, and all share the matrix C [m, columns]. Columns of C that belong to no group stay as
/// they were. A group whose columns do not begin and end at multiples of 8 is stored more slowly.
/// bf16 and f16.
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

/// Products that sum over rows: C[g] [m, n] = (A's rows of group g)^T * (B's rows of group g). A
/// has `m` columns for each row, and B has `n`. This is the gradient of a layer's weights. Groups
/// may have rows in common. A group without rows gets zeros. Operands of 8 bits are `m_by_k` and
/// `n_by_k`, so each group begins at a multiple of 16 rows, and they have scales.
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
  result_type c_type{};  ///< not `f8_e4m3`
  bool accumulate{};     ///< as in a `row_problem`
  bool zero_rest{};      ///< bad groups get zeros, too; neither with `accumulate` nor with `c_addresses`
  /// Both with operands of 8 bits, else none. Each line of both operands has a scale for 128 rows.
  /// They multiply the sums of these rows as in a `row_problem`. `b_scales.line_stride` is 1.
  block_scales a_scales{};
  block_scales b_scales{};
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
  result_type c_type{};  ///< not `f8_e4m3`
  bool accumulate{};     ///< as in a `row_problem`
};

/// The options that only products have.
struct choices {
  std::optional<std::uint32_t> plan{};  ///< below `plan_count`; none: chosen by the problem's sizes
  /// The most blocks that compute tiles, at least 2. Each takes a multiprocessor. None: as many as
  /// the GPU has.
  std::optional<std::uint32_t> blocks{};
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
