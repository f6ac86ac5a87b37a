// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/batch_run.hpp>
#include <tmap/config.hpp>
#include <tmap/error.hpp>
#include <tmap/make_template.hpp>
#include <tmap/map_status.hpp>
#include <tmap/publish.hpp>
#include <tmap/tensor_map.hpp>
#include <tmap/tensor_source.hpp>

#include <cstdint>

namespace tmap {

/// Most maps of one batch.
inline constexpr std::uint64_t max_batch = std::uint64_t{1} << 24;

/// What a batch encode lets its caller choose.
struct encode_choices {
  /// Leaves validation out: any patch becomes the map it asks for, wild ones too. For patches
  /// validated before. Goes with no statuses, header or windows; a check then finds nothing.
  bool trusted{};
  publish published_by{publish::stores};
};

/// How a batch of maps is encoded. A map that leaves all `windows` breaks T38. `where.scratch` is
/// looked at where a source has `offset_format::sizes`: their running sum needs
/// `ragged_workspace_bytes` of it.
using encode_run = batch_run<rule, encode_choices, on_stream>;

/// Template + patch source -> `count` maps in `slots` (device memory, 128-byte aligned, owned by
/// the caller), made by one kernel on `run.where.stream` and published: after it, in stream order,
/// any kernel may `acquire` them (device/acquire.cuh). Returns as soon as the work is enqueued, but
/// for CUDA's loading of a kernel at its first use, which may wait for the device
/// (`map_service::create` loads all of them). The source's arrays must stay valid and unchanged
/// until it has run. A slot must not be rewritten while a kernel may still copy through it.
/// Thread-safe; may be captured in a graph. `count` 0 does nothing.
///
/// Every patch is validated on the device, by the rules of `validate` (patch_rules.hpp); warnings
/// do not count. A patch that breaks a rule, or has a dim of 0, never becomes a wild map but the
/// *safe empty map* (`empty_spec`): one element at a zeroed page of the library, everything else
/// outside the tensor, with the template's box, element strides and modes. Loads through it bring a
/// whole box of fill, so barriers complete; at coordinate 0 they read the page. Stores write
/// nothing but the page, and only at coordinate 0: up to 32 bytes, which a later load through
/// another safe map may then see in its element 0. Rules of use (U01 to U09) hold for it as for any
/// map. `run` says where the kernel reports what became of each map and of the batch, and which
/// addresses maps may reach; `run.check` makes the call wait and fail where a map is bad. Bad maps
/// are counted in any case (faults.hpp).
///
/// `ragged_rows` change the address and the outermost dim: `base.fields` must name just these two.
/// Negative sizes and ends that decrease make huge dims, which are refused; rows that do not exist
/// are refused where `ragged_rows::rows` says how many do, as an address of 0 (T05).
///
/// What validation cannot know: whether memory behind an address is mapped (give address windows),
/// and whether a box that a patch changes fits the shared memory that its consumer has.
///
/// Fails with `invalid_argument` (null or misaligned slots or members of `run`, count > 2^24, a
/// source array that is null though the template changes its field, offsets of other than 4 or 8
/// bytes, a workspace too small, `trusted` beside what needs validation), `unsupported` (a zeroed
/// template on a GPU above compute capability 9.0), `no_driver`, `no_device`, `no_kernel_image`,
/// `cuda_failure`; where it is checked, and then after all maps are made, with `bad_items`.
[[nodiscard]] TMAP_API result<void> encode_batch(const map_template& base, const tensor_source& source,
                                                 tensor_map* slots, std::uint64_t count, const encode_run& run);

/// Device memory that `offset_format::sizes` of `count` offsets of `offset_bytes` (4 or 8) needs.
/// Same failures.
[[nodiscard]] TMAP_API result<std::uint64_t> ragged_workspace_bytes(std::uint64_t count, std::uint32_t offset_bytes);

}  // namespace tmap
