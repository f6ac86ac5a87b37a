// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/device/report_bad.cuh>
#include <tmap/device/warp.cuh>
#include <tmap/moe.hpp>

#include <cstdint>

#include "kernels/launch.hpp"
#include "kernels/moe_launch.hpp"

namespace tmap::kernels {

/// Enqueues the reset of the header, if the call reports in one.
inline cudaError_t launch_reset(const choice_reports& of, cudaStream_t stream) {
  return of.header == nullptr ? cudaSuccess : launch_header_reset(of.header, stream);
}

/// Reports statuses that are not all good. It is one function, not a copy for each call.
template <class Header>
__device__ __noinline__ void report_odd_choices(const choice_reports& to, std::uint32_t choice,
                                                moe::choice_status status, Header* header) {
  device::report_bad(to.faults, item_kind::row, choice, status.is_bad() ? status.bits : 0);
  if (header == nullptr) return;
  const batch_header items = device::tally_items(choice, status);
  if (threadIdx.x % device::warp_lanes == 0) device::add_to_header(*header, items);
}

/// Reports the status of one choice for each lane; lanes without a choice pass a good one. All
/// lanes of a warp call it together. `header` may be null.
template <class Header>
__device__ void report_choices(const choice_reports& to, std::uint32_t choice, moe::choice_status status,
                               Header* header) {
  if (__all_sync(~0u, status.is_good())) return;
  if (to.header == nullptr && to.faults.record == nullptr) return;  // nobody asks
  report_odd_choices(to, choice, status, header);
}

}  // namespace tmap::kernels
