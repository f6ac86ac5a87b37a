// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adds up weighted rows, by a warp.

#include <tmap/device/warp.cuh>

#include <cstdint>

#include "kernels/moe/row_units.cuh"
#include "kernels/peer/row_parts.cuh"
#include "kernels/peer_launch.hpp"

namespace tmap::kernels {

/// Each lane has so many loads on its way: units of a row, and rows. Most choices of a token have
/// no row here, so a kernel that takes a unit of all choices waits for memory most of the time.
inline constexpr std::uint32_t summed_units = 4, summed_rows = 2;

constexpr std::uint32_t units_of(const weighted_rows& of) {
  return static_cast<std::uint32_t>(of.columns * moe::float_bytes(of.type) / unit_bytes);
}

using summed_parts = row_parts<summed_units>;

/// The sums of a lane's units of a part.
template <class Element>
using unit_sums = float[summed_units][unit_of<Element>::count];

/// Names a row and its weight. Each lane of a warp has one.
struct lane_row {
  std::uint64_t address;  ///< 0: there is none
  float weight;
};

/// Reads the row of each choice of a token: lane j has choice j.
__device__ inline lane_row load_rows(const weighted_rows& of, std::uint64_t token) {
  if (lane_of_thread() >= of.k) return {0, 0};
  const std::uint64_t choice = token * of.k + lane_of_thread();
  const std::int32_t row = of.row_of_choice[choice];
  const float weight = of.weights == nullptr ? 1.0f : of.weights[choice];  // comes at the same time
  if (!has_row(row, of.rows)) return {0, 0};
  return {of.values.address + static_cast<std::uint64_t>(row) * of.values.pitch_bytes, weight};
}
__device__ inline std::uint32_t lanes_with_rows(const lane_row& mine) {
  return __ballot_sync(~0u, mine.address != 0);
}

/// Adds a unit of a row, times its weight.
template <class Element>
__device__ void add_unit(const uint4& unit, float weight, float (&sums)[unit_of<Element>::count]) {
  float values[unit_of<Element>::count];
  unit_of<Element>::read(unit, values);
#pragma unroll
  for (std::uint32_t i = 0; i < unit_of<Element>::count; ++i) sums[i] = fmaf(weight, values[i], sums[i]);
}

/// Names the part of a row that a warp works on.
struct summed_part {
  const summed_parts& all;
  std::uint32_t number;

  __device__ std::uint32_t row() const { return all.row(number); }
  template <class Use>
  __device__ void each_unit(const Use& use) const {
    all.each_unit(number, use);
  }
};

/// Adds this lane's units of the rows of the lanes `left`, in the order of lanes.
template <class Element>
__device__ void add_rows(const summed_part& part, const lane_row& mine, std::uint32_t left, unit_sums<Element>& sums) {
  TMAP_KEEP_ROLLED
  while (left != 0) {
    uint4 units[summed_rows][summed_units];
    float weights[summed_rows];
    bool is_there[summed_rows];
#pragma unroll
    for (std::uint32_t j = 0; j < summed_rows; ++j) {
      is_there[j] = left != 0;
      if (!is_there[j]) continue;
      const std::uint32_t lane = first_lane(left);
      const auto* const from = reinterpret_cast<const uint4*>(value_of_lane(mine.address, lane));
      weights[j] = __shfl_sync(~0u, mine.weight, static_cast<int>(lane));
      left &= left - 1;
      part.each_unit([&](std::uint32_t i, std::uint32_t unit) { units[j][i] = from[unit]; });
    }
#pragma unroll
    for (std::uint32_t j = 0; j < summed_rows; ++j) {
      if (!is_there[j]) continue;
      part.each_unit([&](std::uint32_t i, std::uint32_t) { add_unit<Element>(units[j][i], weights[j], sums[i]); });
    }
  }
}

/// Begins with this lane's units of a row, or with zeros if `from` is null.
template <class Element>
__device__ void begin_sums(const summed_part& part, const uint4* from, unit_sums<Element>& sums) {
#pragma unroll
  for (std::uint32_t i = 0; i < summed_units; ++i) {
#pragma unroll
    for (float& each : sums[i]) each = 0;
  }
  if (from == nullptr) return;
  part.each_unit([&](std::uint32_t i, std::uint32_t unit) { unit_of<Element>::read(from[unit], sums[i]); });
}

/// Stores this lane's units of a row.
template <class Element>
__device__ void store_sums(const summed_part& part, const unit_sums<Element>& sums, uint4* to) {
  part.each_unit([&](std::uint32_t i, std::uint32_t unit) { to[unit] = unit_of<Element>::write(sums[i]); });
}

}  // namespace tmap::kernels
