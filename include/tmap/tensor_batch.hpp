// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tensor_source.hpp>
#include <tmap/tensor_spec.hpp>

#include <cstdint>

namespace tmap {

/// The memory of the arrays of a `tensor_source`: device or host. The operation copies host arrays
/// to the workspace on its stream, as `cudaMemcpyAsync` does, so pinned arrays must stay unchanged
/// until then. A captured operation refuses arrays in pageable memory
/// (`pageable_memory_in_capture`). Each replay copies them again, so they must be pinned (or
/// registered, or managed) and outlive the graph and its executables. CUDA may copy pageable memory
/// through the legacy stream. Use pinned arrays while another thread captures a stream that waits
/// for the legacy one.
enum class array_side : std::uint32_t { device, host };

/// The dims and strides that all tensors of a `ragged_rows` batch have in common, as in
/// `tensor_spec`. They are dims 0 to rank - 2, and the strides of dims 1 to rank - 2. The stride of
/// the outermost dim is `row_pitch_bytes`. Ignored for other sources.
struct inner_extents {
  std::uint64_t dim[max_rank - 1]{};
  std::uint64_t stride_bytes[max_rank - 2]{};
};

/// The tensors of one side of an operation. A plain value; the arrays it points to belong to the
/// caller and must stay unchanged until the operation has run in stream order. Dims count elements,
/// innermost first. Strides count bytes. A dim of 0 makes a tensor empty, which costs nothing.
/// `ragged::fault` (ragged.hpp) lists the limits of dims.
struct tensor_batch {
  /// A source as for tensor maps, without the alignment that maps need. `patch_array`,
  /// `patch_columns` and `compact_columns` have the address, dims and strides of each tensor. In
  /// columns, a null stride array means *packed*: each tensor's stride is the product of its lower
  /// dims. `ragged_rows` has the address and outermost dim of each tensor, and `inner` has the
  /// inner dims and strides of all of them.
  tensor_source tensors;
  std::uint64_t count{};          ///< tensors, at most `max_batch`
  std::uint32_t element_bytes{};  ///< 1 to 16: also 3-byte pixels
  std::uint32_t rank{};           ///< 1 to 5
  inner_extents inner{};
  array_side side{array_side::device};
};

/// Tensors of one size at equal distances in one buffer: [count, dim[rank - 1], ..., dim[0]]. Dims
/// are at most 2^40, and the last byte lies at most 2^47 bytes after the first.
struct dense_batch {
  device_address address{};
  std::uint64_t dim[max_rank]{};               ///< of each tensor, in elements, innermost first
  std::uint64_t stride_bytes[max_rank - 1]{};  ///< as in `tensor_spec`; all 0 means packed
  std::uint64_t tensor_pitch_bytes{};          ///< from one tensor to the next; 0 means packed
};

}  // namespace tmap
