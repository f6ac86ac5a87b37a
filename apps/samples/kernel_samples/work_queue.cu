// SPDX-License-Identifier: Apache-2.0
// Processes items of very different lengths: each free warp takes one from a queue. Item i adds up
// the numbers below lengths[i]. The second launch finds the counter at 0, as the first one left it.

#include "apps/samples/kernel_samples/samples.hpp"

#include <tmap/device/work_queue.cuh>

namespace work_queue_sample {

__global__ void add_up(const std::uint32_t* lengths, std::uint32_t items, std::uint32_t* sums,
                       tmap::device::queue_counter* counter) {
  using namespace tmap::device;
  const std::uint32_t warps = blockDim.x / 32;
  work_queue queue(counter, items, blockIdx.x * warps + threadIdx.x / 32, gridDim.x * warps);
  for (std::uint32_t item = queue.take_warp(); item != no_item; item = queue.take_warp()) {
    std::uint32_t sum = 0;
    for (std::uint32_t k = threadIdx.x % 32; k < lengths[item]; k += 32) sum += k;
    atomicAdd(&sums[item], sum);
  }
}

}  // namespace work_queue_sample

bool samples::work_queue() {
  using namespace work_queue_sample;
  constexpr std::uint32_t items = 1000;
  std::vector<std::uint32_t> lengths, expected;
  for (std::uint32_t i = 0; i < items; ++i) {
    lengths.push_back(i % 16 == 3 ? 20'000 : i % 50);
    expected.push_back(2 * static_cast<std::uint32_t>(std::uint64_t{lengths[i]} * (lengths[i] - 1ull) / 2));
  }
  const device_array<std::uint32_t> all(lengths), sums(std::vector<std::uint32_t>(items, 0));
  const device_array<tmap::device::queue_counter> counter(std::vector<tmap::device::queue_counter>(1));
  for (int launch = 0; launch < 2; ++launch) add_up<<<20, 128>>>(all.get(), items, sums.get(), counter.get());
  return sums.read() == expected;
}
