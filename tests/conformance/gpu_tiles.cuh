// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/tile_case.hpp"

#include <tmap/device/reduce_copy.cuh>
#include <tmap/device/tile_copy.cuh>
#include <tmap/tensor_map.hpp>

#include <cuda/ptx>

#include <cstddef>
#include <cstdint>

// Each block does one copy. It fills shared memory from an image, copies the tile, and writes the
// image back.

namespace tmap::conformance {

/// `instruction_rank` is the `.dim` of the instruction, right or wrong. `expected_bytes` is the
/// number of bytes that the barrier expects.
struct tile_job {
  copy_kind kind{};
  reduction operation{};
  std::uint32_t instruction_rank{};
  std::int32_t coordinates[max_rank]{};
  std::uint32_t shared_offset{};
  std::uint32_t expected_bytes{};
};

inline constexpr std::uint32_t threads_of_tile_block = 128;
inline constexpr std::uint64_t wait_limit_ns = 20'000'000;

__device__ inline std::uint64_t nanoseconds() {
  return cuda::ptx::get_sreg_globaltimer();
}

/// Returns false if the barrier has not received its bytes in time.
__device__ inline bool wait_limited(device::tile_barrier& barrier) {
  const std::uint64_t start = nanoseconds();
  while (!cuda::ptx::mbarrier_try_wait_parity(barrier.word(), 0)) {
    if (nanoseconds() - start > wait_limit_ns) return false;
  }
  return true;
}

template <std::uint32_t Rank>
__device__ bool copy_as(const tile_job& job, device::acquired_map map, std::byte* tile, device::tile_barrier& barrier) {
  std::int32_t corner[Rank];
  for (std::uint32_t axis = 0; axis < Rank; ++axis) corner[axis] = job.coordinates[axis];
  if (job.kind == copy_kind::load) {
    barrier.arrive_expect(job.expected_bytes);
    device::load_tile(tile, map, corner, barrier);
    return wait_limited(barrier);
  }
  if (job.kind == copy_kind::store) {
    device::store_tile(map, corner, tile);
  } else {
    device::reduce_tile(job.operation, map, corner, tile);
  }
  device::commit_stores();
  device::wait_stores_written();
  return true;
}

__device__ inline bool copy_tile(const tile_job& job, device::acquired_map map, std::byte* tile,
                                 device::tile_barrier& barrier) {
  switch (job.instruction_rank) {
    case 1: return copy_as<1>(job, map, tile, barrier);
    case 2: return copy_as<2>(job, map, tile, barrier);
    case 3: return copy_as<3>(job, map, tile, barrier);
    case 4: return copy_as<4>(job, map, tile, barrier);
    case 5: return copy_as<5>(job, map, tile, barrier);
    default: return false;
  }
}

/// `images` holds shared_bytes for each block, in and out. `in_time[b]` reports whether block b's
/// copy finished.
__global__ void __launch_bounds__(threads_of_tile_block)
    run_tiles(const tile_job* jobs, const tensor_map* maps, std::byte* images, std::uint8_t* in_time) {
  extern __shared__ __align__(1024) std::byte shared[];
  __shared__ device::tile_barrier barrier;
  std::byte* image = images + blockIdx.x * shared_bytes;
  for (std::uint32_t i = threadIdx.x; i < shared_bytes; i += blockDim.x) shared[i] = image[i];
  if (threadIdx.x == 0) {
    barrier.init(1);
    device::fence_barrier_init();
  }
  device::fence_shared_writes();
  __syncthreads();
  if (threadIdx.x == 0) {
    const tile_job& job = jobs[blockIdx.x];
    const auto map = device::acquire(maps + blockIdx.x, device::map_scope::sys);
    in_time[blockIdx.x] = copy_tile(job, map, shared + job.shared_offset, barrier) ? 1 : 0;
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < shared_bytes; i += blockDim.x) image[i] = shared[i];
}

}  // namespace tmap::conformance
