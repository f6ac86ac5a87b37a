// SPDX-License-Identifier: Apache-2.0
// Computes a sum over a cluster. Each warp stores its sum from a register into the first block's
// shared memory. That block's barrier counts the bytes; no other block waits.

#include "apps/samples/kernel_samples/samples.hpp"

#include <tmap/device/remote_store.cuh>

namespace store_to_block_sample {

constexpr std::uint32_t blocks = 4, threads = 128, warps = blocks * threads / 32;

__global__ void __cluster_dims__(blocks) sum_of_cluster(const std::uint32_t* numbers, std::uint32_t* result) {
  using namespace tmap::device;
  __shared__ std::uint32_t sums[warps];
  __shared__ tile_barrier barrier;
  const bool collects = block_of_cluster() == 0;
  if (collects && threadIdx.x == 0) {
    barrier.init(1);
    fence_barrier_init();
    barrier.arrive_expect(sizeof(sums));
  }
  sync_cluster();
  const std::uint32_t sum = __reduce_add_sync(~0u, numbers[blockIdx.x * threads + threadIdx.x]);
  const std::uint32_t warp = block_of_cluster() * (threads / 32) + threadIdx.x / 32;
  if (threadIdx.x % 32 == 0) store_async(shared_of_block(0, &sums[warp]), sum, remote_barrier(0, barrier));
  if (!collects || threadIdx.x != 0) return;
  barrier.wait_cluster(0);
  std::uint32_t total = 0;
  for (const std::uint32_t part : sums) total += part;
  result[blockIdx.x / blocks] = total;
}

}  // namespace store_to_block_sample

bool samples::store_to_block() {
  using namespace store_to_block_sample;
  const device_array<std::uint32_t> numbers(counting<std::uint32_t>(2 * blocks * threads));
  const device_array<std::uint32_t> sums(std::vector<std::uint32_t>(2, 0));
  sum_of_cluster<<<2 * blocks, threads>>>(numbers.get(), sums.get());
  constexpr std::uint32_t count = blocks * threads;
  return sums.read() == std::vector<std::uint32_t>{count * (count - 1) / 2, count * (3 * count - 1) / 2};
}
