// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/batch_run.hpp>
#include <tmap/config.hpp>
#include <tmap/error.hpp>
#include <tmap/make_template.hpp>
#include <tmap/map_status.hpp>
#include <tmap/peer_memory_ref.hpp>
#include <tmap/publish.hpp>
#include <tmap/tensor_map.hpp>
#include <tmap/tensor_source.hpp>

#include <cstdint>

namespace tmap {

/// The most maps of one batch.
inline constexpr std::uint64_t max_batch = std::uint64_t{1} << 24;

/// The options that only an encode of a batch has.
struct encode_choices {
  /// Skips validation: every patch becomes the map it asks for, even an invalid one. Only for
  /// patches that were validated before. Statuses, header and windows must be left out, and a check
  /// finds nothing.
  bool trusted{};
  publish published_by{publish::stores};
  /// Makes maps of tensors on other ranks of a group (peer_group.hpp). A map whose own address, or
  /// whose owner, is not in the group's window breaks T05. One that leaves the window of its owner
  /// breaks T38. `base` must let the address change. `windows` must be empty, `trusted` false and
  /// `published_by` `publish::stores`. `map_service::update` takes an owner for each map of the
  /// batch.
  map_owners owners{};
};

/// How a batch of maps is encoded. A map that lies in none of the `windows` breaks T38. Only a
/// source with `offset_format::sizes` uses `where.scratch`: the running sum of the sizes needs
/// `ragged_workspace_bytes`.
using encode_run = batch_run<rule, encode_choices, on_stream>;

/// Makes `count` maps from a template and a patch source. `slots` is device memory of the caller,
/// aligned to 128 bytes. One kernel on `run.where.stream` writes and publishes the maps; later
/// kernels in stream order may `acquire` them (device/acquire.cuh). The call returns as soon as the
/// work is enqueued. Only the first use of a kernel may wait for the device, when CUDA loads it;
/// `map_service::create` loads all kernels. The source's arrays must stay valid and unchanged
/// until the kernel has run. A slot must not be rewritten while a kernel may still copy through it.
/// Thread-safe. May be captured in a graph. Does nothing if `count` is 0.
///
/// Every patch is validated on the device by the rules of `validate` (patch_rules.hpp), without the
/// warnings. A patch that breaks a rule, or has a dim of 0, becomes the *safe empty map*
/// (`empty_spec`). It describes one element at a zeroed page of the library, with the template's
/// box, element strides and modes. A load through it returns a whole box of fill, so barriers
/// complete; at coordinate 0 it reads the page. A store writes only to the page and only at
/// coordinate 0: up to 32 bytes. A later load through another safe map may see these bytes in its
/// element 0. The rules of use (U01 to U09) hold for it as for any map. `run` names the memory
/// for statuses and header, and the addresses that maps may reach. With `run.check` the call waits
/// and fails if a map is bad. Bad maps are always counted (faults.hpp).
///
/// `ragged_rows` change the address and the outermost dim, and `base.fields` must name exactly
/// these two. Negative sizes and decreasing ends make huge dims, which are refused. If
/// `ragged_rows::rows` is given, rows beyond it are refused as an address of 0 (T05).
///
/// Validation cannot know whether memory at an address is mapped (give address windows), nor
/// whether a box that a patch changes fits the shared memory of its consumer.
/// @fails
/// - `invalid_argument`: null or misaligned slots or members of `run`, a count above `max_batch`, a
///   null source array whose field the template changes, offsets of other than 4 or 8 bytes, a
///   workspace too small, `trusted` together with what needs validation.
/// - `unsupported`: a zeroed template on a GPU above compute capability 9.0.
/// - `bad_items`: the call is checked and a map was bad. All maps are made.
/// - `no_driver`, `no_device`, `no_kernel_image`, `cuda_failure`.
[[nodiscard]] TMAP_API result<void> encode_batch(const map_template& base, const tensor_source& source,
                                                 tensor_map* slots, std::uint64_t count, const encode_run& run);

/// Returns the bytes of device memory that `count` sizes (`offset_format::sizes`) of `offset_bytes`
/// (4 or 8) need.
/// @fails `invalid_argument`.
[[nodiscard]] TMAP_API result<std::uint64_t> ragged_workspace_bytes(std::uint64_t count, std::uint32_t offset_bytes);

}  // namespace tmap
