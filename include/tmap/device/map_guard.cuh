// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Guards judge each patch in device memory before it becomes a map that copies would follow. A
/// warp encoder takes one.

#include <tmap/detail/standard.hpp>
#include <tmap/device/report_bad.cuh>
#include <tmap/device/warp.cuh>
#include <tmap/map_patch.hpp>
#include <tmap/map_status.hpp>
#include <tmap/map_template.hpp>
#include <tmap/patch_rules.hpp>
#include <tmap/tensor_spec.hpp>

namespace tmap::device {

/// Device memory that safe empty maps point to. Define it zero-initialised, as
/// `__device__ guard_page page;`. It must outlive every map. A load of element 0 through a safe map
/// reads its first bytes, and a store there writes them.
struct alignas(128) guard_page {
  unsigned char bytes[128];
};

namespace detail {

/// Out of line, as it is rarely needed and makes up most of the code of a kernel that encodes.
__device__ __noinline__ inline map_status judge_by_rules(const tensor_spec& patched, patch_fields fields,
                                                         const address_window* windows, std::uint32_t window_count) {
  return tmap::detail::judge_by_rules(patched, fields, windows, window_count);
}

}  // namespace detail

/// Judges each patch, turns bad and empty ones into the safe empty map, and reports them on
/// request. `statuses` and `header` are as in `encode_run`, except that the caller sets the header
/// to `batch_header{}` before the kernel.
struct map_guard {
  const guard_page* page;
  map_status* statuses{};
  batch_header* header{};
  const address_window* windows{};
  std::uint32_t window_count{};
  /// Skips judging: any patch becomes the map it asks for, wild ones too. Use it for patches that
  /// were validated before.
  bool trusted{};
  fault_sink faults{};  ///< where bad maps are counted

  /// Does what `judge_patched` does, in two parts. The copy keeps the caller's spec in registers.
  __device__ map_status judge(const tensor_spec& patched, patch_fields fields) const {
    if (trusted || tmap::detail::is_plainly_good(patched, fields, windows, window_count)) return {};
    const tensor_spec copy = patched;
    return detail::judge_by_rules(copy, fields, windows, window_count);
  }

  /// Reports map `index` of each lane. Lanes without a map pass a good status and `has_map` false.
  /// All 32 lanes call it.
  __device__ void report(std::uint64_t index, bool has_map, map_status status) const {
    report_to(*this, index, has_map, status);
  }

  /// Adds what a warp tallied. One lane calls it.
  __device__ void count(const batch_header& maps) const {
    if (header != nullptr) add_to_header(*header, maps);
  }

 protected:
  /// Does the work of `report` for a guard whose `count` may add up more than this one's.
  template <class Guard>
  __device__ static void report_to(const Guard& guard, std::uint64_t index, bool has_map, map_status status) {
    if (guard.statuses != nullptr && has_map) guard.statuses[index] = status;
    if (__all_sync(~0u, status.is_good())) return;
    report_bad(guard.faults, item_kind::map, index, rules_of(status).bits);
    const batch_header maps = tally_items(static_cast<std::uint32_t>(index), status);
    if (lane_index() == 0) guard.count(maps);
  }
};

}  // namespace tmap::device
