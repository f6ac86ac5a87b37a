// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stages planned records in shared memory, so that a warp stores them coalesced.

#include "kernels/ragged/planned_tensor.hpp"

#include <tmap/device/encode_warp.cuh>

#include <cstdint>

namespace tmap::kernels {

/// The staged records of a warp. They lie 144 bytes apart, as maps do in a `warp_stage`.
using record_stage = device::warp_stage;

inline constexpr std::uint32_t record_chunks = sizeof(planned_tensor) / sizeof(uint4);

__device__ inline void stage_record(record_stage& stage, const planned_tensor& record) {
#pragma unroll
  for (std::uint32_t chunk = 0; chunk < record_chunks; ++chunk) {
    stage.chunk(threadIdx.x % device::warp_lanes * record_chunks + chunk) =
        reinterpret_cast<const uint4*>(&record)[chunk];
  }
}

/// Stores each lane's staged record to `records[index]` if the lane has one. All 32 lanes call it.
__device__ inline void store_records(record_stage& stage, planned_tensor* records, std::uint64_t index,
                                     bool has_record) {
  __syncwarp();
  const std::uint32_t owners = __ballot_sync(~0u, has_record);
#pragma unroll
  for (std::uint32_t turn = 0; turn < record_chunks; ++turn) {
    const std::uint32_t at = turn * device::warp_lanes + threadIdx.x % device::warp_lanes;
    const std::uint32_t owner = at / record_chunks;
    const std::uint64_t target = __shfl_sync(~0u, index, static_cast<int>(owner));
    if ((owners >> owner & 1) != 0) reinterpret_cast<uint4*>(records + target)[at % record_chunks] = stage.chunk(at);
  }
  __syncwarp();
}

}  // namespace tmap::kernels
