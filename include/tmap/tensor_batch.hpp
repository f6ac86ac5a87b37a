// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tensor_source.hpp>
#include <tmap/tensor_spec.hpp>

#include <cstdint>

namespace tmap {

/// What the arrays of a `tensor_source` are: device memory, or memory of the host. Arrays of the
/// host are copied to the workspace by the operation, on its stream, as `cudaMemcpyAsync` copies:
/// pinned ones must stay unchanged until then. A captured operation refuses arrays in pageable
/// memory (`pageable_memory_in_capture`): each replay copies them again, so they must be pinned (or
/// registered, or managed) and outlive the graph and its executables. CUDA may copy pageable memory
/// by way of the legacy stream: while another thread captures a stream that waits for the legacy
/// one, use pinned arrays.
enum class array_side : std::uint32_t { device, host };

/// Dims and strides that all tensors of a `ragged_rows` batch share, as in `tensor_spec`: dims 0 to
/// rank - 2, and strides of dims 1 to rank - 2 (that of the outermost dim is `row_pitch_bytes`).
/// Ignored for other sources.
struct inner_extents {
  std::uint64_t dim[max_rank - 1]{};
  std::uint64_t stride_bytes[max_rank - 2]{};
};

/// The tensors of one side of an operation. A plain value; the arrays it points to belong to the
/// caller and stay unchanged until the operation has run in stream order. Dims count elements,
/// innermost first; strides count bytes. A dim of 0 makes a tensor empty, which costs nothing. How
/// large dims may be: `ragged::fault` (ragged.hpp).
struct tensor_batch {
  /// As tensor maps are made from, without the alignment that maps need. `patch_array`,
  /// `patch_columns` and `compact_columns` bring address, dims and strides of each tensor; in
  /// columns a null stride array means *packed*: every tensor's stride is the product of its dims
  /// below. `ragged_rows` brings address and outermost dim of each tensor, and `inner` the inner
  /// dims and strides, which all share.
  tensor_source tensors;
  std::uint64_t count{};          ///< tensors, at most `max_batch`
  std::uint32_t element_bytes{};  ///< 1 to 16: also 3-byte pixels
  std::uint32_t rank{};           ///< 1 to 5
  inner_extents inner{};
  array_side side{array_side::device};
};

/// Equally large tensors at equal distances in one buffer: [count, dim[rank - 1], ..., dim[0]].
/// Dims are at most 2^40, and the last byte lies at most 2^47 bytes after the first.
struct dense_batch {
  device_address address{};
  std::uint64_t dim[max_rank]{};               ///< of each tensor, in elements, innermost first
  std::uint64_t stride_bytes[max_rank - 1]{};  ///< as in `tensor_spec`; all 0 means packed
  std::uint64_t tensor_pitch_bytes{};          ///< from one tensor to the next; 0 means packed
};

}  // namespace tmap
