// SPDX-License-Identifier: Apache-2.0
// Tests why `acquire` waits for an empty bulk group after its fence. One thread encodes, another
// acquires, and a third copies, with a barrier after each step. With the fence alone, the copy
// sometimes overtakes the invalidation.
#include <tmap/device/acquire.cuh>
#include <tmap/device/tile_copy.cuh>
#include <tmap/encode.hpp>

#include <cuda/ptx>

#include "device/gpu_fixture.hpp"

namespace tmap::testing::acquire_flush_cases {
namespace {

constexpr std::uint32_t line = 32;   // elements that a map shows
constexpr std::uint32_t lines = 64;  // a block's slot shows each of them in turn
constexpr std::uint32_t warp_lanes = 32;
constexpr std::uint32_t threads = 3 * warp_lanes;

/// Runs the fence of `acquire` without the wait that follows it.
__device__ void acquire_without_flush(const tensor_map* slot) {
  namespace ptx = cuda::ptx;
  ptx::fence_proxy_tensormap_generic(ptx::sem_acquire, ptx::scope_gpu, slot, ptx::n32_t<tensor_map_bytes>{});
}

__device__ void start_load(const tensor_map* slot, device::tile_barrier& barrier, int* tile) {
  namespace ptx = cuda::ptx;
  const std::int32_t at[] = {0};
  barrier.arrive_expect(line * sizeof(int));
  ptx::cp_async_bulk_tensor(ptx::space_shared, ptx::space_global, tile, slot, at, barrier.word());
}

/// Points the map at `shown` and publishes it. All lanes call it.
__device__ void publish(tensor_map& staged, tensor_map* slot, const int* shown) {
  namespace ptx = cuda::ptx;
  if (threadIdx.x % warp_lanes == 0) ptx::tensormap_replace_global_address(ptx::space_shared, &staged, shown);
  __syncwarp();
  ptx::tensormap_cp_fenceproxy(ptx::sem_release, ptx::scope_gpu, slot, &staged, ptx::n32_t<tensor_map_bytes>{});
  __syncwarp();
}

/// Counts the copies of one block that showed something else than their map pointed at.
struct wrong_copies {
  unsigned long long line_before;  ///< copies of the line that the map pointed at in the turn before
  unsigned long long other;
};

/// Fills line i of a block's part of the buffer with i. The tile is wiped after each turn, so that
/// it only shows what this turn copied. A turn takes a microsecond. Slower turns, such as turns
/// with an atomic in the loop, hide the fault.
template <bool Flushes>
__global__ void __launch_bounds__(threads) hand_over(const __grid_constant__ tensor_map map, const int* buffer,
                                                     tensor_map* slots, std::uint32_t turns, wrong_copies* wrong) {
  __shared__ tensor_map staged;
  __shared__ alignas(128) int tile[line];
  __shared__ device::tile_barrier barrier;
  tensor_map* const slot = slots + blockIdx.x;
  const std::uint32_t warp = threadIdx.x / warp_lanes;
  const bool loads = threadIdx.x == 2 * warp_lanes;
  if (threadIdx.x == 0) staged = map, barrier.init(1), device::fence_barrier_init();
  __syncthreads();
  std::uint32_t line_before = 0;
  std::uint32_t other = 0;
  for (std::uint32_t turn = 0; turn < turns; ++turn) {
    const std::uint32_t shown = turn * 7 % lines;
    if (warp == 1) publish(staged, slot, buffer + (blockIdx.x * lines + shown) * line);
    __syncthreads();
    if (threadIdx.x == 0) {
      if constexpr (Flushes) {
        device::acquire(slot);
      } else {
        acquire_without_flush(slot);
      }
    }
    __syncthreads();
    if (loads) start_load(slot, barrier, tile);
    barrier.wait(turn % 2);
    if (loads) {
      const auto seen = static_cast<std::uint32_t>(tile[0]);
      if (seen != shown) ++(seen == (turn - 1) * 7 % lines ? line_before : other);
    }
    if (warp == 2) tile[threadIdx.x % warp_lanes] = -1;
    __syncthreads();
    device::fence_shared_writes();
  }
  if (!loads) return;
  atomicAdd(&wrong->line_before, line_before);
  atomicAdd(&wrong->other, other);
}

using acquire_flush = gpu_test;

TEST_F(acquire_flush, a_copy_by_another_thread_never_overtakes_the_acquire) {
  constexpr std::uint32_t blocks = 528;
  const auto turns = static_cast<std::uint32_t>(scaled(10'000));
  std::vector<int> values(blocks * lines * line);
  for (std::uint32_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i / line % lines);
  const device_array<int> buffer(values);
  const device_array<tensor_map> slots(blocks);
  const std::uint64_t dims[] = {line};
  const std::uint32_t box[] = {line};
  const result<tensor_map> map = encode(packed_spec(element_type::i32, buffer.address(), dims, box));
  TMAP_ASSERT_OK(map);
  const device_array<wrong_copies> wrong(std::vector<wrong_copies>(2));
  hand_over<false><<<blocks, threads>>>(*map, buffer.data(), slots.data(), turns, wrong.data());
  hand_over<true><<<blocks, threads>>>(*map, buffer.data(), slots.data(), turns, wrong.data() + 1);
  TMAP_ASSERT_CUDA(cudaGetLastError());
  const std::vector<wrong_copies> seen = wrong.download();
  RecordProperty("copies", std::to_string(std::uint64_t{blocks} * turns));
  RecordProperty("stale_by_the_fence_alone", std::to_string(seen[0].line_before));
  EXPECT_GT(seen[0].line_before, 0u) << "this GPU did not show the fault";
  EXPECT_EQ(seen[0].other, 0u);
  EXPECT_EQ(seen[1].line_before + seen[1].other, 0u);
}

}  // namespace
}  // namespace tmap::testing::acquire_flush_cases
