// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/encode_status.hpp>
#include <tmap/error.hpp>
#include <tmap/map_patch.hpp>
#include <tmap/tensor_map.hpp>
#include <tmap/tensor_spec.hpp>

#include <cuda/stream_ref>

#include <cstdint>

namespace tmap {

/// A batch of tensor pairs to copy tile by tile. All maps of both sides share `tile`'s type, rank, box and swizzle
/// (element strides 1, no interleave); pointers are device memory, owned by the caller, unchanged until the copy ran.
/// At most `max_batch` tensors.
struct tile_copy_batch {
  tensor_spec tile;                ///< type, rank, box_dim, swizzle; the rest is ignored
  const tensor_map* sources;       ///< `count` published maps, loaded from
  const tensor_map* destinations;  ///< `count` published maps, stored to
  const map_patch* extents;        ///< `count` patches whose global_dim says what to walk; any bits are legal
  std::uint64_t count;
  const map_status* source_statuses{};       ///< null, or what became of each source's map (`encode_options`)
  const map_status* destination_statuses{};  ///< the same of the destinations
};

/// Device memory that `copy_tiles_async` needs for a batch of `count` tensors.
TMAP_API result<std::uint64_t> copy_tiles_workspace_bytes(std::uint64_t count);

/// Walks the box grid of every tensor's extents with one persistent grid and copies each tile from source to
/// destination at the same coordinates. What lies outside the source reads as its fill; what lies outside the
/// destination is dropped: a destination larger than its source comes out padded, a smaller one cropped. The copy
/// engine ends a stored row at the next multiple of 16 bytes, so up to 15 bytes behind a destination's row are
/// overwritten.
///
/// The walk follows `extents`, which cannot mislead it. A tensor is left out, its maps never used, when an extent is 0
/// or above 2^31 (coordinates are signed), when it would take more than 2^31 tiles, and, by the statuses, when its
/// source is bad or its destination bad or empty. The others are copied all the same. Up to 2^31 tiles are work like
/// any other: extents too large for their maps cost time, not safety.
///
/// Maps that the encoder refused do no harm without statuses, either: a bad or empty source reads as its fill but for
/// element 0, which is the guard page's, and through such a destination only that page is written. With statuses the
/// same holds of an empty source, a tensor of no elements, whose destination thus comes out as padding alone.
///
/// `workspace` is device memory of the caller, aligned to 256 bytes, busy until the copy has run in stream order.
/// Returns when enqueued. Thread-safe; capturable. Fails with `invalid_argument` (no rank 1-5, a tile too large for two
/// stages of shared memory, a workspace too small), `rule_broken`, `no_driver`, `no_device`, `no_kernel_image`,
/// `cuda_failure`.
TMAP_API result<void> copy_tiles_async(const tile_copy_batch& batch, void* workspace, std::uint64_t workspace_bytes,
                                       cuda::stream_ref stream);

}  // namespace tmap
