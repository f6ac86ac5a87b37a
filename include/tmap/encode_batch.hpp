// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/bad_items.hpp>
#include <tmap/config.hpp>
#include <tmap/error.hpp>
#include <tmap/item_status.hpp>
#include <tmap/make_template.hpp>
#include <tmap/map_patch.hpp>
#include <tmap/map_status.hpp>
#include <tmap/publish.hpp>
#include <tmap/tensor_map.hpp>

#include <cuda/stream_ref>

#include <cstdint>

namespace tmap {

/// Most maps of one batch.
inline constexpr std::uint64_t max_batch = std::uint64_t{1} << 24;

/// What a batch encode does beside making maps. All pointers are device memory of the caller, unchanged (`windows`) or
/// unread (`statuses`, `header`) until the encode has run in stream order; each may be null.
struct encode_options {
  map_status* statuses{};           ///< one for each map
  batch_header* header{};           ///< needs no initial value
  batch_totals* totals{};           ///< what this batch adds to
  const address_window* windows{};  ///< with any, a map that reaches outside each of them is bad (T38)
  std::uint32_t window_count{};     ///< every map looks through them in turn: meant for a few
  /// Leaves validation out: any patch becomes the map it asks for, wild ones too. For patches validated before. Goes
  /// with no other option but `check`, which then finds nothing.
  bool trusted{};
  fault_check check{};  ///< whether the call waits, and fails with `bad_items` where a map is bad
  publish published_by{publish::stores};
};

// encode_batch_async: template + patch source -> `count` maps in `slots` (device memory, 128-byte aligned, owned by the
// caller), made by one kernel on `stream` and published: after it, in stream order, any kernel may `acquire` them
// (device/acquire.cuh). Returns as soon as the work is enqueued, but for CUDA's loading of a kernel at its first use,
// which may wait for the device (`map_service::create` loads all of them). The sources' arrays must stay valid and
// unchanged until it has run. A slot must not be rewritten while a kernel may still copy through it. Thread-safe; may
// be captured in a graph. `count` 0 does nothing.
//
// Every patch is validated on the device, by the rules of `validate` (patch_rules.hpp); warnings do not count. A patch
// that breaks a rule, or has a dim of 0, never becomes a wild map but the *safe empty map* (`empty_spec`): one element
// at a zeroed page of the library, everything else outside the tensor, with the template's box, element strides and
// modes. Loads through it bring a whole box of fill, so barriers complete; at coordinate 0 they read the page. Stores
// write nothing but the page, and only at coordinate 0: up to 32 bytes, which a later load through another safe map
// may then see in its element 0. Rules of use (U01 to U09) hold for it as for any map. `options` says where the kernel
// reports what became of each map and of the batch, and which addresses maps may reach; `options.check` makes the call
// wait and fail where a map is bad. Bad maps are counted in any case (faults.hpp).
//
// What validation cannot know: whether memory behind an address is mapped (give address windows), and whether a box
// that a patch changes fits the shared memory that its consumer has.
//
// Fails with `invalid_argument` (null or misaligned slots or options, count > 2^24, a source array that is null though
// the template changes its field, `trusted` beside another option), `no_driver`, `no_device`, `no_kernel_image`,
// `cuda_failure`; where it is checked, and then after all maps are made, with `bad_items`.

[[nodiscard]] TMAP_API result<void> encode_batch_async(const map_template& base, const patch_array& source,
                                                       tensor_map* slots, std::uint64_t count, cuda::stream_ref stream,
                                                       const encode_options& options = {});

[[nodiscard]] TMAP_API result<void> encode_batch_async(const map_template& base, const patch_columns& source,
                                                       tensor_map* slots, std::uint64_t count, cuda::stream_ref stream,
                                                       const encode_options& options = {});

[[nodiscard]] TMAP_API result<void> encode_batch_async(const map_template& base, const compact_columns& source,
                                                       tensor_map* slots, std::uint64_t count, cuda::stream_ref stream,
                                                       const encode_options& options = {});

/// Changes the address and the outermost dim: `base.fields` must name just these two. Negative sizes and ends that
/// decrease make huge dims, which are refused; rows that do not exist are refused where `ragged_rows::rows` says how
/// many do, as an address of 0 (T05).
[[nodiscard]] TMAP_API result<void> encode_batch_async(const map_template& base,
                                                       const ragged_rows<std::int32_t>& source, tensor_map* slots,
                                                       std::uint64_t count, cuda::stream_ref stream,
                                                       const encode_options& options = {});
[[nodiscard]] TMAP_API result<void> encode_batch_async(const map_template& base,
                                                       const ragged_rows<std::int64_t>& source, tensor_map* slots,
                                                       std::uint64_t count, cuda::stream_ref stream,
                                                       const encode_options& options = {});

/// Device memory that `offset_format::sizes` of `count` offsets of `offset_bytes` (4 or 8) needs. Same failures.
[[nodiscard]] TMAP_API result<std::uint64_t> ragged_workspace_bytes(std::uint64_t count, std::uint32_t offset_bytes);

}  // namespace tmap
