// SPDX-License-Identifier: Apache-2.0
// Four blocks of a cluster work on the same item, each on its quarter of a row. The leader's warp
// fetches the next item while all work, and sends it to the four with st.async.

#include "apps/samples/kernel_samples/samples.hpp"

#include <tmap/device/cluster_queue.cuh>

namespace cluster_queue_sample {

constexpr std::uint32_t blocks = 4, threads = 64, row = 4 * blocks * threads, rows = 500;

__global__ void __cluster_dims__(blocks) negate_rows(float* numbers, tmap::device::queue_counter* counter) {
  using namespace tmap::device;
  __shared__ cluster_mailbox mailbox;
  if (threadIdx.x == 0) mailbox.init(threads / 32);
  sync_cluster();
  cluster_queue queue(mailbox, counter, rows, threadIdx.x / 32);
  for (std::uint32_t item = queue.take_warp(); item != no_item; item = queue.take_warp()) {
    float* const quarter = numbers + item * row + block_of_cluster() * (row / blocks);
    for (std::uint32_t k = threadIdx.x; k < row / blocks; k += threads) quarter[k] = -quarter[k];
  }
}

}  // namespace cluster_queue_sample

bool samples::cluster_queue() {
  using namespace cluster_queue_sample;
  const auto numbers = counting<float>(rows * row);
  const device_array<float> changed(numbers);
  const device_array<tmap::device::queue_counter> counter(std::vector<tmap::device::queue_counter>(1));
  negate_rows<<<10 * blocks, threads>>>(changed.get(), counter.get());
  const auto found = changed.read();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] != -numbers[i]) return false;
  }
  return !found.empty();
}
