// SPDX-License-Identifier: Apache-2.0
// Why `acquire` waits for an empty bulk group behind its fence: one thread encodes, another acquires, a third copies,
// each after a barrier. The fence alone lets the copy overtake the invalidation now and then.
#include <tmap/device/acquire.cuh>
#include <tmap/device/encode_warp.cuh>
#include <tmap/device/tile_copy.cuh>
#include <tmap/map_template.hpp>

#include <cuda/ptx>

#include "device/gpu_fixture.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint32_t line = 32;   // elements a map shows
constexpr std::uint32_t lines = 64;  // a block's slot shows in turn
constexpr std::uint32_t threads = 3 * device::warp_lanes;

__device__ device::guard_page safe_page;

/// The fence of `acquire` and nothing behind it.
__device__ void acquire_without_flush(const tensor_map* slot) {
  namespace ptx = cuda::ptx;
  ptx::fence_proxy_tensormap_generic(ptx::sem_acquire, ptx::scope_gpu, slot, ptx::n32_t<tensor_map_bytes>{});
}

__device__ int load_line(const tensor_map* slot, device::tile_barrier& barrier, std::uint32_t parity, int* tile) {
  namespace ptx = cuda::ptx;
  const std::int32_t at[] = {0};
  barrier.arrive_expect(line * sizeof(int));
  ptx::cp_async_bulk_tensor(ptx::space_shared, ptx::space_global, tile, slot, at, barrier.word());
  barrier.wait(parity);
  return *static_cast<volatile int*>(tile);
}

/// Line i of a block's buffer is filled with i. Counts the turns whose copy showed another line than the map's.
__global__ void __launch_bounds__(threads)
    hand_over(const __grid_constant__ map_template base, const int* buffer, tensor_map* slots, std::uint32_t turns,
              bool flushes, unsigned long long* stale) {
  __shared__ device::warp_stage stage;
  __shared__ alignas(128) int tile[line];
  __shared__ device::tile_barrier barrier;
  tensor_map* const slot = slots + blockIdx.x;
  const std::uint32_t warp = threadIdx.x / device::warp_lanes;
  if (threadIdx.x == 0) barrier.init(1), device::fence_barrier_init();
  for (std::uint32_t turn = 0; turn < turns; ++turn) {
    const std::uint32_t shown = turn * 7 % lines;
    const auto source = [&](std::uint64_t) {
      map_patch patch;
      patch.global_address = reinterpret_cast<std::uint64_t>(buffer + shown * line);
      return patch;
    };
    if (warp == 0) device::encode_warp(base, source, slot, 0, 1, stage, device::map_guard{&safe_page});
    __syncthreads();
    if (threadIdx.x == device::warp_lanes) {
      if (flushes) {
        device::acquire(slot);
      } else {
        acquire_without_flush(slot);
      }
    }
    __syncthreads();
    if (threadIdx.x == 2 * device::warp_lanes) {
      if (load_line(slot, barrier, turn % 2, tile) != static_cast<int>(shown)) atomicAdd(stale, 1ull);
    }
    __syncthreads();
  }
}

using acquire_flush = gpu_test;

TEST_F(acquire_flush, a_copy_by_another_thread_never_overtakes_the_acquire) {
  constexpr std::uint32_t blocks = 528;
  const auto turns = static_cast<std::uint32_t>(scaled(10'000));
  std::vector<int> values(lines * line);
  for (std::uint32_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i / line);
  const device_array<int> buffer(values);
  const device_array<tensor_map> slots(blocks);
  const std::uint64_t dims[] = {line};
  const std::uint32_t box[] = {line};
  const result<map_template> base = make_template(packed_spec(element_type::i32, 1 << 20, dims, box), patch_address);
  TMAP_ASSERT_OK(base);
  std::uint64_t stale[2] = {};
  for (const bool flushes : {false, true}) {
    const device_array<unsigned long long> count(std::vector<unsigned long long>{0});
    hand_over<<<blocks, threads>>>(*base, buffer.data(), slots.data(), turns, flushes, count.data());
    TMAP_ASSERT_CUDA(cudaGetLastError());
    stale[flushes] = count.download()[0];
  }
  RecordProperty("copies", std::to_string(std::uint64_t{blocks} * turns));
  RecordProperty("stale_by_the_fence_alone", std::to_string(stale[false]));
  EXPECT_GT(stale[false], 0u) << "this GPU did not show the fault";
  EXPECT_EQ(stale[true], 0u);
}

}  // namespace
}  // namespace tmap::testing
