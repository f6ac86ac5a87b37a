// SPDX-License-Identifier: Apache-2.0
#pragma once

// Deals rows among the warps of all blocks, in units of 16 bytes.

#include <tmap/device/warp.cuh>

#include <cstdint>

#include "kernels/peer/worker.hpp"

namespace tmap::kernels {

__device__ inline std::uint32_t lane_of_thread() {
  return threadIdx.x % device::warp_lanes;
}
__device__ inline std::uint32_t first_lane(std::uint32_t lanes) {
  return static_cast<std::uint32_t>(__ffs(static_cast<int>(lanes))) - 1;
}
/// Returns the value of a lane to all lanes.
__device__ inline std::uint64_t value_of_lane(std::uint64_t value, std::uint32_t lane) {
  return __shfl_sync(~0u, value, static_cast<int>(lane));
}

/// Walks through the parts of rows that are a warp's share. Each lane has up to `Most` units of a
/// part, and fewer if warps would have nothing to do otherwise.
template <std::uint32_t Most>
class row_shares {
 public:
  __device__ row_shares(const peer::worker& warp, std::uint64_t rows, std::uint32_t units)
      : units_(units),
        at_once_(units_of_lane(rows * units, warp.count * device::warp_lanes)),
        parts_((units + at_once_ * device::warp_lanes - 1) / (at_once_ * device::warp_lanes)),
        at_(static_cast<std::uint32_t>(warp.number)),
        step_(static_cast<std::uint32_t>(warp.count)),
        end_(static_cast<std::uint32_t>(rows) * parts_) {}

  __device__ bool has_more() const { return at_ < end_; }
  __device__ void go_on() { at_ += step_; }
  __device__ std::uint32_t row() const { return at_ / parts_; }
  /// Calls `use(i, unit)` for this lane's units of the part.
  template <class Use>
  __device__ void each_unit(const Use& use) const {
    const std::uint32_t first = at_ % parts_ * at_once_ * device::warp_lanes;
#pragma unroll
    for (std::uint32_t i = 0; i < Most; ++i) {
      const std::uint32_t unit = first + i * device::warp_lanes + lane_of_thread();
      if (i < at_once_ && unit < units_) use(i, unit);
    }
  }

 private:
  static __device__ std::uint32_t units_of_lane(std::uint64_t units, std::uint64_t lanes) {
    std::uint32_t at_once = Most;
#pragma unroll
    for (std::uint32_t fewer = Most / 2; fewer > 0; fewer /= 2) at_once = units <= fewer * lanes ? fewer : at_once;
    return at_once;
  }

  std::uint32_t units_;
  std::uint32_t at_once_;
  std::uint32_t parts_;
  std::uint32_t at_, step_, end_;  // a part has 512 bytes or more, so 32 bits count those of 2 TiB
};

}  // namespace tmap::kernels
