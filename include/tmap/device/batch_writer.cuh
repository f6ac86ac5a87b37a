// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Encoding by one warp into a batch that `map_service::reserve` lent.

#include <tmap/detail/standard.hpp>
#include <tmap/device/encode_warp.cuh>
#include <tmap/device/hazards.cuh>
#include <tmap/device/warp.cuh>
#include <tmap/map_batch_ref.hpp>

namespace tmap::device {

/// Encodes and publishes maps `first` to `first + count` of a reserved batch, as the `encode_warp`
/// that takes slots does. Each map may be encoded once. To fill the batch's statuses, give the
/// guard `writer.statuses`. Maps past the end of the batch are a failed assertion in a debug build
/// and a trap in any other: nothing is written.
template <class Source, class Guard, class Shape = any_shape>
__device__ void encode_warp(const map_template& base, const Source& source, const map_batch_writer& writer,
                            std::uint64_t first, std::uint32_t count, warp_stage& stage, const Guard& guard,
                            Shape shape = {}, publish how = publish::stores) {
  const bool fits = first <= writer.count && count <= writer.count - first;
  assert(fits);
  if (!fits) __trap();
  const std::uint32_t lane = lane_index();
  if (lane < count) detail::begin_write(writer, first + lane);
  encode_warp(base, source, writer.slots, first, count, stage, guard, shape, how);
  if (lane < count) detail::end_write(writer, first + lane);
  __syncwarp();
}

}  // namespace tmap::device
