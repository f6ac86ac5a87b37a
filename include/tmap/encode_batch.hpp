// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/error.hpp>
#include <tmap/map_patch.hpp>
#include <tmap/map_template.hpp>
#include <tmap/tensor_map.hpp>

#include <cuda/stream_ref>

#include <cstdint>

namespace tmap {

/// Most maps of one batch.
inline constexpr std::uint64_t max_batch = std::uint64_t{1} << 24;

// encode_batch_async: template + patch source -> `count` maps in `slots` (device memory, 128-byte aligned, owned by the
// caller), made by one kernel on `stream` and published: after it, in stream order, any kernel may `acquire` them
// (device/acquire.cuh). Returns as soon as the work is enqueued; the sources' arrays must stay valid and unchanged
// until it has run. A slot must not be rewritten while a kernel may still copy through it. Thread-safe; may be captured
// in a graph. `count` 0 does nothing. Fails with `invalid_argument` (null or misaligned slots, count > 2^24, a source
// array that is null though the template changes its field), `no_driver`, `no_device`, `no_kernel_image`,
// `cuda_failure`.

TMAP_API result<void> encode_batch_async(const map_template& base, const patch_array& source, tensor_map* slots,
                                         std::uint64_t count, cuda::stream_ref stream);

TMAP_API result<void> encode_batch_async(const map_template& base, const patch_columns& source, tensor_map* slots,
                                         std::uint64_t count, cuda::stream_ref stream);

/// Changes the address and the outermost dim: `base.fields` must name just these two.
TMAP_API result<void> encode_batch_async(const map_template& base, const ragged_rows<std::int32_t>& source,
                                         tensor_map* slots, std::uint64_t count, cuda::stream_ref stream);
TMAP_API result<void> encode_batch_async(const map_template& base, const ragged_rows<std::int64_t>& source,
                                         tensor_map* slots, std::uint64_t count, cuda::stream_ref stream);

/// Device memory that `offset_format::sizes` of `count` offsets of `offset_bytes` (4 or 8) needs. Same failures.
TMAP_API result<std::uint64_t> ragged_workspace_bytes(std::uint64_t count, std::uint32_t offset_bytes);

}  // namespace tmap
