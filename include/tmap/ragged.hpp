// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/batch_run.hpp>
#include <tmap/config.hpp>
#include <tmap/device_address.hpp>
#include <tmap/error.hpp>
#include <tmap/item_status.hpp>
#include <tmap/route.hpp>
#include <tmap/tensor_batch.hpp>

#include <cstdint>
#include <optional>

/// @file
/// Operations on a batch of tensors of different sizes, on a GPU or on the host. Shapes and
/// addresses may exist only in device memory. They are read and judged where the call runs. Tensors
/// of one batch may take different routes (route.hpp). The bytes are the same on every route and on
/// both engines.
///
/// `run::where` names the engine of a call (batch_run.hpp):
///
/// - `on_stream`: the call enqueues and returns. It may be captured in a graph (host arrays must
///   then be pinned: tensor_batch.hpp) and replayed with other shapes in the same arrays. It never
///   synchronises unless it is checked (`run::check`), except that CUDA may wait for the device
///   when it loads a kernel at its first use. `scratch` has at least `workspace_bytes`; rows by
///   index need none.
/// - `on_host`: for machines without a GPU, and as a reference for a GPU. Every address is an
///   address of this process: tensors, arrays (for any `tensor_batch::side`), statuses, header,
///   windows, begins, scales, index. The call returns when its work is done. A side of a tensor
///   with route `tensor_map` is read and written tile by tile by the simulated copy engine
///   (simulator.hpp), all others by plain loops. Policy `force` needs no GPU here.
///
/// Every operation is thread-safe; on the host, as far as the memory is. Source and destination
/// must not overlap. A bad tensor is skipped: its destination stays as it was, and its status gives
/// the reason. The others complete. On a stream, bad tensors are also counted (faults.hpp).
/// @fails
/// - `invalid_argument`: counts that differ, a wrong rank or element size, null or misaligned
///   arrays, a workspace too small.
/// - `bad_items`: the call is checked and a tensor was bad. All its work is done.
/// - `pageable_memory_in_capture`, on a stream: a host array is not pinned, in a capture. Nothing
///   was enqueued.
/// - `compute_capability_too_low`, on a stream: policy `force`.
/// - `unsupported`, on a stream: the GPU's blocks have less shared memory than Hopper's.
/// - `no_driver`, `no_device`, `no_kernel_image`, `cuda_failure`, on a stream.
/// - `out_of_memory`, on the host: part of the work may be done.

namespace tmap::ragged {

/// The faults of a tensor, as bits. The *alignment of an element* is the largest power of two that
/// divides its bytes. The *most bytes* of a tensor are 2^47. If a batch has n tensors, and n is at
/// least 2^16, they are (2^63 - 1) / n, rounded down to whole MiB. Strides of dims of one element
/// are ignored. A side with a dim of 0 has no fault of its own.
enum class fault : std::uint32_t {
  dim = 1u << 0,        ///< a dim above 2^40, or elements of more than *most bytes* altogether
  stride = 1u << 1,     ///< one whose product with its dim exceeds 2^47, or against the element's alignment
  address = 1u << 2,    ///< null, against the element's alignment, beyond all addresses, or `ragged_rows::rows`
  window = 1u << 3,     ///< it reaches outside every address window
  mismatch = 1u << 4,   ///< its two sides differ in shape
  overlap = 1u << 5,    ///< elements of the destination share bytes: a stride below the extent of the smaller ones
  truncated = 1u << 6,  ///< `pad`: larger than the dense tensor, which holds what fits (the one bad tensor that is not
                        ///< skipped); `pack`, `unpack`: it ends after the buffer
  index = 1u << 7,      ///< `gather`, `scatter`: a row that does not exist
};

/// The status of one tensor, or of one row for `gather_rows` and `scatter_rows`. A tensor with a
/// dim of 0 on both sides is empty and never bad. `truncated` is never combined with another fault.
using tensor_status = item_status<fault>;

/// The options that only ragged operations have.
struct choices {
  std::optional<route_policy> policy{};  ///< none: the value of TMAP_POLICY
  route_set allowed{all_routes};
};

/// How an operation runs and what it reports. `statuses` has an element for each tensor, or row.
using run = batch_run<fault, choices, engine>;

/// Returns the bytes that are enough for every operation on `count` tensors of this rank, with any
/// choices.
[[nodiscard]] TMAP_API result<std::uint64_t> workspace_bytes(std::uint64_t count, std::uint32_t rank);

/// destination[i] = source[i]; both sides have the same dims.
[[nodiscard]] TMAP_API result<void> copy(const tensor_batch& source, const tensor_batch& destination, const run& run);

/// A contiguous buffer of packed tensors. Tensor i begins at the next multiple of `alignment` after
/// tensor i - 1. Bad tensors take no room, except those that end after the buffer.
struct packed_buffer {
  void* memory{};
  std::uint64_t bytes{};       ///< capacity, at most 2^47: a tensor that ends after it is bad (`truncated`)
  std::uint64_t alignment{1};  ///< a power of two, at most 2^20
  /// Null, or `count + 1` byte offsets that `pack` writes. The last is where another tensor would
  /// begin.
  std::int64_t* begins{};
};
[[nodiscard]] TMAP_API result<void> pack(const tensor_batch& source, const packed_buffer& destination, const run& run);
/// Does the inverse of `pack`. Shapes are those of the destination; `source.begins` is written as
/// by `pack`.
[[nodiscard]] TMAP_API result<void> unpack(const packed_buffer& source, const tensor_batch& destination,
                                           const run& run);

/// The bytes of one element to fill with, lowest first. Bytes beyond `element_bytes` are ignored.
struct fill_value {
  alignas(16) unsigned char bytes[16]{};
};

/// Ragged to dense: tensor i goes to the low corner of dense tensor i, and the rest becomes `fill`.
/// A tensor larger than the dense one is cut (`truncated`). The place of a bad tensor is filled
/// completely.
[[nodiscard]] TMAP_API result<void> pad(const tensor_batch& source, const dense_batch& destination,
                                        const fill_value& fill, const run& run);
/// Does the inverse of `pad`: ragged tensor i comes from the low corner of dense tensor i. A tensor
/// larger than the dense one is bad (`mismatch`).
[[nodiscard]] TMAP_API result<void> unpad(const dense_batch& source, const tensor_batch& destination, const run& run);

/// Rows of a matrix in global memory, any number of them. `row_bytes` and `(rows - 1) *
/// pitch_bytes` are at most 2^47.
struct row_matrix {
  device_address address{};
  std::uint64_t rows{};
  std::uint64_t row_bytes{};
  std::uint64_t pitch_bytes{};
};
/// `count` signed row numbers of 4 or 8 bytes, in device memory, or in host memory with `on_host`.
struct row_index {
  const void* rows{};
  std::uint64_t count{};
  std::uint32_t bytes{};  ///< 4 or 8
};
/// destination row i = source row index[i]. A row number that does not exist leaves the destination
/// row unchanged and is bad (`index`). `run::statuses` has one element for each index; windows are
/// ignored. The header saturates: `bad_count` at `2^32 - 1`, `first_bad` at `2^32 - 2`.
[[nodiscard]] TMAP_API result<void> gather_rows(const row_matrix& source, const row_index& index,
                                                const row_matrix& destination, const run& run);
/// destination row index[i] = source row i. If indices are equal, any one of their rows wins; on
/// the host the last.
[[nodiscard]] TMAP_API result<void> scatter_rows(const row_matrix& source, const row_index& index,
                                                 const row_matrix& destination, const run& run);

/// destination[i] = source[i] with dims 0 and 1 exchanged; rank 2 to 5.
[[nodiscard]] TMAP_API result<void> transpose(const tensor_batch& source, const tensor_batch& destination,
                                              const run& run);

/// The types that `cast` converts. `f8_e4m3` and `f8_e5m2` are the OCP 8-bit formats. Results
/// beyond the largest finite value saturate in the 8-bit formats and in u8, and become infinite in
/// f16 (IEEE 754). NaN becomes 0 in u8 and stays NaN in all others.
enum class value_type : std::uint32_t { u8, f16, bf16, f32, f8_e4m3, f8_e5m2 };
TMAP_HOST_DEVICE constexpr std::uint32_t value_bytes(value_type type) {
  switch (type) {
    case value_type::f32: return 4;
    case value_type::f16:
    case value_type::bf16: return 2;
    default: return 1;
  }
}

/// destination = source * scale + shift, computed in f32 (one fused multiply-add), rounded to
/// nearest even.
struct cast_values {
  value_type from{};
  value_type to{};
  float scale{1};
  float shift{0};
  const float* scales{};  ///< null, or one factor for each tensor instead of `scale`, in memory as that of `row_index`
  const float* shifts{};  ///< the same for `shift`
};
[[nodiscard]] TMAP_API result<void> cast(const tensor_batch& source, const tensor_batch& destination,
                                         const cast_values& values, const run& run);

/// The elements that share a scale in `quantize`. Blocks begin at element 0 of a row and at row 0
/// of a tensor, and the last ones may be smaller. Rows lie along dim 0, and dim 1 counts them.
/// Slices of higher dims have blocks of their own.
enum class scale_block : std::uint32_t {
  row,            ///< a whole row
  block_1x128,    ///< 128 elements of a row
  block_128x128,  ///< 128 elements of each of 128 rows; rank 2 to 5
  block_128x1,    ///< 128 elements of a column; the destination's dims 0 and 1 are exchanged; rank 2 to 5
};

struct quantize_values {
  value_type from{};  ///< f32, f16 or bf16
  value_type to{};    ///< f8_e4m3 or f8_e5m2
  scale_block block{};
  bool powers_of_two{};      ///< each scale is rounded up to a power of two, as formats like UE8M0 need
  bool transposed_scales{};  ///< dims 0 and 1 of the scales are exchanged; rank 2 to 5
};

/// Rounds each tensor to 8 bits with a scale for each block, so that value = destination * scale.
/// Both sides have the same dims, but `block_128x1` exchanges dims 0 and 1 of the destination, as
/// `transpose` does. `scales` are f32, of the source's rank. Their dims count the blocks of the
/// source:
///
/// - `row`: dim 0 is 1.
/// - `block_1x128`: dim 0 is that of the source over 128, rounded up.
/// - `block_128x128`: dims 0 and 1 are those of the source over 128, rounded up.
/// - `block_128x1`: dim 1 is that of the source over 128, rounded up.
///
/// All other dims are those of the source. With `transposed_scales` a contiguous dim 0 of the
/// scales follows the rows. Scales of other dims are a `mismatch`. They may overlap neither side.
///
/// `block_128x1` makes the bytes that `transpose` and then `quantize` with `block_1x128` make, in
/// one pass. Without `transposed_scales`, its scales are those that `block_1x128` makes with
/// `transposed_scales`.
///
/// With *top* as the largest magnitude in a block, and *most* as the largest finite value of `to`
/// (448 or 57344):
///
/// - scale = top / most, rounded to f32, and at least 2^-126. With `powers_of_two`, it is then
///   rounded up to the next power of two.
/// - destination = source * (1 / scale), where the quotient and the product are each rounded to
///   f32. The result is rounded to nearest even and saturates.
/// - A block of zeros has the scale 1. Zeros keep their sign.
/// - A block with a NaN or an infinity has the scale NaN (0x7fffffff), and all its results are NaN
///   (0x7f). No other block is affected.
///
/// An empty tensor has no scales, and its part of `scales` is not read. Every route loads in the
/// same way, so that `run::choices` change nothing. A row of more than 16 KiB is read twice
/// if it has one scale.
[[nodiscard]] TMAP_API result<void> quantize(const tensor_batch& source, const tensor_batch& destination,
                                             const tensor_batch& scales, const quantize_values& values, const run& run);

/// y[i] = a * x[i] + y[i] in f32, with one fused multiply-add for each element. `element_bytes` of
/// both is 4.
[[nodiscard]] TMAP_API result<void> saxpy(float a, const tensor_batch& x, const tensor_batch& y, const run& run);

/// Element j of a destination row is the largest of the existing source elements j - radius to j +
/// radius, f32, along dimension 0. A NaN among them makes it NaN.
[[nodiscard]] TMAP_API result<void> max_pool_1d(const tensor_batch& source, const tensor_batch& destination,
                                                std::uint32_t radius, const run& run);

/// Sums each column of each matrix, as the gradient of a bias needs. Tensors have rank 2: dim 0 are
/// columns, dim 1 are rows. The destination has as many columns, and one row. `from` is f32, f16 or
/// bf16; `to` is f32 or the source's type. Sums are taken in f32, in an order that depends only on
/// the number of rows, so results do not depend on the route or on the rest of the batch. They are
/// rounded to `to` at the end. A NaN in a column makes its sum NaN. The sums of a tensor without
/// rows are +0: unlike in `reduce_rows`, such a tensor is not empty, and its destination is
/// written. A tensor without columns is empty. `run::choices` change nothing on a GPU.
[[nodiscard]] TMAP_API result<void> column_sums(const tensor_batch& source, value_type from,
                                                const tensor_batch& destination, value_type to, const run& run);

/// How `reduce_rows` combines the elements of a row.
enum class row_reduction : std::uint32_t { sum, max };
/// Makes one f32 from each row (dimension 0) of each tensor. The destination has the source's rank
/// and dims, except that dim 0 is 1. `type` is f32, f16 or bf16. Sums are taken in f32, in an order
/// that depends only on the row's length, so results are bitwise equal on every route. A NaN in a
/// row makes its sum and its maximum NaN. An empty row is an empty tensor, for which nothing is
/// written.
[[nodiscard]] TMAP_API result<void> reduce_rows(const tensor_batch& source, value_type type, row_reduction reduction,
                                                const tensor_batch& destination, const run& run);

}  // namespace tmap::ragged
