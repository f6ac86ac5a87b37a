// SPDX-License-Identifier: Apache-2.0
// Each block of a cluster sends its row to the next block, as one copy from shared memory to shared
// memory. The next block stores the row, so rows are shifted by one.

#include "apps/samples/kernel_samples/samples.hpp"

#include <tmap/device/bulk_copy.cuh>

namespace send_to_block_sample {

constexpr std::uint32_t row = 128, blocks = 4;

__global__ void __cluster_dims__(blocks) pass_on(const float* source, float* target) {
  using namespace tmap::device;
  alignas(16) __shared__ float mine[row];
  alignas(16) __shared__ float received[row];
  __shared__ tile_barrier barrier;
  if (threadIdx.x == 0) {
    barrier.init(1);
    fence_barrier_init();
    barrier.arrive_expect(sizeof(received));
  }
  mine[threadIdx.x] = source[blockIdx.x * row + threadIdx.x];
  fence_shared_writes();
  sync_cluster();  // the receiver's barrier is ready, and so is this block's row
  if (threadIdx.x == 0) {
    const std::uint32_t next = (block_of_cluster() + 1) % blocks_of_cluster();
    send_bytes(shared_of_block(next, received), mine, sizeof(mine), remote_barrier(next, barrier));
  }
  barrier.wait_cluster(0);
  target[blockIdx.x * row + threadIdx.x] = received[threadIdx.x];
  sync_cluster();  // no block ends while its row is still being read
}

}  // namespace send_to_block_sample

bool samples::send_to_block() {
  using namespace send_to_block_sample;
  const auto numbers = counting<float>(blocks * row);
  const device_array<float> source(numbers);
  const device_array<float> target(std::vector<float>(blocks * row, -1));
  pass_on<<<blocks, row>>>(source.get(), target.get());
  const auto found = target.read();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[(i + row) % found.size()] != numbers[i]) return false;
  }
  return !found.empty();
}
