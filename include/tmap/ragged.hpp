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

// Operations on a batch of tensors of different sizes, on a GPU or on the host. Shapes and
// addresses may exist only in device memory; they are read and judged where the call runs. Tensors
// of one batch may take different routes (route.hpp); the bytes are the same on each, and on both
// engines.
//
// `run::where` says where a call runs (batch_run.hpp):
//
// - `on_stream`: it enqueues and returns. It may be captured in a graph (with arrays of the host
//   only where they are pinned: tensor_batch.hpp) and replayed with other shapes in the same
//   arrays. It never synchronises, but for CUDA's loading of a kernel at its first use, which may
//   wait for the device, and where it is checked (`run::check`). `scratch` has at least
//   `workspace_bytes`; rows by index need none.
// - `on_host`: for machines without a GPU, and to compare a GPU with. Every address is one of this
//   process: tensors, arrays (whatever `tensor_batch::side` says), statuses, header, windows,
//   begins, scales, index. The call returns when its work is done. A side of a tensor whose route
//   is `tensor_map` is read and written tile by tile by the simulated copy engine (simulator.hpp),
//   all others by plain loops. Policy `force` needs no GPU here.
//
// Every operation is thread-safe, on the host as far as the memory is. Source and destination may
// not overlap. A bad tensor is skipped, its destination untouched, and its status says why; the
// others complete. On a stream it is counted, too (faults.hpp).
//
// Fails with `invalid_argument` (counts that differ, rank, element bytes, null or misaligned
// arrays, workspace too small); where it is checked, and then after all its work, with `bad_items`;
// on a stream with `pageable_memory_in_capture` (an array of the host that is not pinned, in a
// capture; nothing was enqueued), `compute_capability_too_low` (policy `force`), `unsupported` (a
// GPU whose blocks have less shared memory than Hopper's), `no_driver`, `no_device`,
// `no_kernel_image`, `cuda_failure`; on the host with `out_of_memory`, and may then have done a
// part of its work.

namespace tmap::ragged {

/// What was wrong with a tensor, as bits. *Alignment of an element*: the largest power of two that
/// divides its bytes. *Most bytes* of a tensor: 2^47; in a batch of n tensors, n at least 2^16,
/// (2^63 - 1) / n, rounded down to whole MiB. Strides of dims of one element are not looked at. A
/// side with a dim of 0 has no fault of its own.
enum class fault : std::uint32_t {
  dim = 1u << 0,        ///< a dim above 2^40, or elements of more than *most bytes* altogether
  stride = 1u << 1,     ///< one whose product with its dim exceeds 2^47, or against the element's alignment
  address = 1u << 2,    ///< null, against the element's alignment, beyond all addresses, or `ragged_rows::rows`
  window = 1u << 3,     ///< it reaches outside every address window
  mismatch = 1u << 4,   ///< its two sides differ in shape
  overlap = 1u << 5,    ///< elements of the destination share bytes: a stride below the extent of the smaller ones
  truncated = 1u << 6,  ///< `pad`: larger than the dense tensor, which holds what fits (the one bad tensor that is not
                        ///< skipped); `pack`, `unpack`: ends behind the buffer
  index = 1u << 7,      ///< `gather`, `scatter`: a row that does not exist
};

/// What became of one tensor (of one row for `gather` and `scatter`). One with a dim of 0 on both
/// sides is empty and never bad; `truncated` stands alone.
using tensor_status = item_status<fault>;

/// What a caller may choose beside what every call has.
struct choices {
  std::optional<route_policy> policy{};  ///< none: what TMAP_POLICY says
  route_set allowed{all_routes};
};

/// How an operation runs and what it reports: a status for each tensor, or row.
using run = batch_run<fault, choices, engine>;

/// Enough for every operation on `count` tensors of this rank, whatever its choices.
[[nodiscard]] TMAP_API result<std::uint64_t> workspace_bytes(std::uint64_t count, std::uint32_t rank);

/// destination[i] = source[i]; both sides have the same dims.
[[nodiscard]] TMAP_API result<void> copy(const tensor_batch& source, const tensor_batch& destination, const run& run);

/// Ragged to contiguous: tensor i, packed, begins at the next multiple of `alignment` behind tensor
/// i - 1. Bad tensors take no room, those behind the end of the buffer do.
struct packed_buffer {
  void* memory{};
  std::uint64_t bytes{};       ///< capacity, at most 2^47: a tensor that ends behind it is bad (`truncated`)
  std::uint64_t alignment{1};  ///< a power of two, at most 2^20
  /// Null, or `count + 1` byte offsets that `pack` writes, the last: where another would begin.
  std::int64_t* begins{};
};
[[nodiscard]] TMAP_API result<void> pack(const tensor_batch& source, const packed_buffer& destination, const run& run);
/// The inverse: shapes are those of the destination; `source.begins` is written as by `pack`.
[[nodiscard]] TMAP_API result<void> unpack(const packed_buffer& source, const tensor_batch& destination,
                                           const run& run);

/// One element's bytes, lowest first, to fill with; those beyond `element_bytes` are ignored.
struct fill_value {
  alignas(16) unsigned char bytes[16]{};
};

/// Ragged to dense: tensor i goes to the low corner of dense tensor i, the rest becomes `fill`. A
/// tensor larger than the dense one is cut (`truncated`). A bad tensor's place is filled
/// altogether.
[[nodiscard]] TMAP_API result<void> pad(const tensor_batch& source, const dense_batch& destination,
                                        const fill_value& fill, const run& run);
/// The inverse: ragged tensor i from the low corner of dense tensor i. A tensor larger than the
/// dense one is bad (`mismatch`).
[[nodiscard]] TMAP_API result<void> unpad(const dense_batch& source, const tensor_batch& destination, const run& run);

/// Rows of a matrix in global memory, any number of them. `row_bytes` and `(rows - 1) *
/// pitch_bytes`: at most 2^47.
struct row_matrix {
  device_address address{};
  std::uint64_t rows{};
  std::uint64_t row_bytes{};
  std::uint64_t pitch_bytes{};
};
/// `count` row numbers of 4 or 8 bytes, signed: device memory, or the host's `on_host`.
struct row_index {
  const void* rows{};
  std::uint64_t count{};
  std::uint32_t bytes{};  ///< 4 or 8
};
/// destination row i = source row index[i]. A row number that does not exist leaves the destination
/// row untouched and is bad (`index`). `run::statuses` has one element for each index; windows are
/// not looked at. Indices may be more than a header's 32 bits count: `bad_count` then stays at 2^32
/// - 1, `first_bad` at 2^32 - 2.
[[nodiscard]] TMAP_API result<void> gather_rows(const row_matrix& source, const row_index& index,
                                                const row_matrix& destination, const run& run);
/// destination row index[i] = source row i. Of equal numbers any one wins, on the host the last.
[[nodiscard]] TMAP_API result<void> scatter_rows(const row_matrix& source, const row_index& index,
                                                 const row_matrix& destination, const run& run);

/// destination[i] = source[i] with dims 0 and 1 exchanged; rank 2 to 5.
[[nodiscard]] TMAP_API result<void> transpose(const tensor_batch& source, const tensor_batch& destination,
                                              const run& run);

/// Types that `cast` knows. `f8_e4m3` and `f8_e5m2` are the OCP 8-bit formats: results beyond the
/// largest finite value saturate to it; NaN stays NaN. f16 results beyond it become infinite, as
/// IEEE 754 says, u8 results saturate, NaN becomes 0.
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
  const float* scales{};  ///< null, or one factor for each tensor, used instead of `scale`: memory as of `row_index`
  const float* shifts{};  ///< the same for `shift`
};
[[nodiscard]] TMAP_API result<void> cast(const tensor_batch& source, const tensor_batch& destination,
                                         const cast_values& values, const run& run);

/// y[i] = a * x[i] + y[i], f32, one fused multiply-add an element. `element_bytes` of both is 4.
[[nodiscard]] TMAP_API result<void> saxpy(float a, const tensor_batch& x, const tensor_batch& y, const run& run);

/// destination element j of a row = the largest of the source's elements j - radius to j + radius
/// that exist, f32, along dimension 0. A NaN in the window makes it NaN.
[[nodiscard]] TMAP_API result<void> max_pool_1d(const tensor_batch& source, const tensor_batch& destination,
                                                std::uint32_t radius, const run& run);

/// How `reduce_rows` combines the elements of a row.
enum class row_reduction : std::uint32_t { sum, max };
/// One f32 for each row (dimension 0) of each tensor: the destination has the source's rank and
/// dims, but dim 0 is 1. `type` is f32, f16 or bf16; sums are taken in f32, in an order that
/// depends on the row's length only, so that results repeat bit for bit on every route. A NaN in a
/// row makes its sum and its maximum NaN. An empty row is an empty tensor: nothing is written.
[[nodiscard]] TMAP_API result<void> reduce_rows(const tensor_batch& source, value_type type, row_reduction reduction,
                                                const tensor_batch& destination, const run& run);

}  // namespace tmap::ragged
