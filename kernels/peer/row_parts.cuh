// SPDX-License-Identifier: Apache-2.0
#pragma once

// Cuts rows into parts for warps, in units of 16 bytes.

#include <tmap/detail/standard.hpp>
#include <tmap/device/warp.cuh>

#include <cstdint>

namespace tmap::kernels {

__device__ inline std::uint32_t lane_of_thread() {
  return threadIdx.x % device::warp_lanes;
}
__device__ inline std::uint32_t warp_of_thread() {
  return threadIdx.x / device::warp_lanes;
}
__device__ inline std::uint32_t first_lane(std::uint32_t lanes) {
  return static_cast<std::uint32_t>(__ffs(static_cast<int>(lanes))) - 1;
}
/// Returns the value of a lane to all lanes.
__device__ inline std::uint64_t value_of_lane(std::uint64_t value, std::uint32_t lane) {
  return __shfl_sync(~0u, value, static_cast<int>(lane));
}

/// Numbers the parts of rows. Each lane has up to `Most` units of a part, and fewer if warps would
/// have nothing to do otherwise.
template <std::uint32_t Most>
class row_parts {
 public:
  __device__ row_parts(std::uint32_t rows, std::uint32_t units, std::uint32_t warps)
      : units_(units),
        at_once_(units_of_lane(std::uint64_t{rows} * units, warps * device::warp_lanes)),
        of_row_((units + of_part() - 1) / of_part()),
        end_(rows * of_row_) {}

  /// Returns how many parts there are. A part has 512 bytes or more: 32 bits count those of 2 TiB.
  __device__ std::uint32_t count() const { return end_; }
  __device__ std::uint32_t row(std::uint32_t part) const { return part / of_row_; }
  /// Returns how many units a part has.
  __device__ std::uint32_t units(std::uint32_t part) const { return min(units_ - first_unit(part), of_part()); }
  /// Calls `use(i, unit)` for this lane's units of a part.
  template <class Use>
  __device__ void each_unit(std::uint32_t part, const Use& use) const {
    const std::uint32_t first = first_unit(part);
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
  __device__ std::uint32_t of_part() const {
    return at_once_ * device::warp_lanes;
  }
  __device__ std::uint32_t first_unit(std::uint32_t part) const {
    return part % of_row_ * of_part();
  }

  std::uint32_t units_;
  std::uint32_t at_once_;
  std::uint32_t of_row_;  ///< parts
  std::uint32_t end_;
};

}  // namespace tmap::kernels
