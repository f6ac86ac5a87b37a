// SPDX-License-Identifier: Apache-2.0
// Doubles a vector through two rings. One thread loads pieces with bulk copies, four warps double
// each piece together, and one thread stores the results.

#include "apps/samples/kernel_samples/samples.hpp"

#include <tmap/device/bulk_copy.cuh>
#include <tmap/device/stage_ring.cuh>

namespace stage_ring_sample {

constexpr std::uint32_t piece = 512, pieces = 100, stages = 4, workers = 4 * 32;
constexpr std::uint32_t loader = workers, storer = workers + 32;  // one thread each, in separate warps

// [kernel]
__global__ void double_pieces(const float* source, float* target) {
  using namespace tmap::device;
  alignas(16) __shared__ float in[stages][piece], out[stages][piece];
  __shared__ ring_barriers<stages> loads;
  __shared__ ring_barriers<stages, workers> stores;
  if (threadIdx.x == 0) {
    loads.init(stages, workers / 32);  // released by four warps
    stores.init();                     // by the thread that stores
  }
  __syncthreads();
  if (threadIdx.x == loader) {
    ring_producer<stages> producer(loads);
    for (std::uint32_t i = blockIdx.x; i < pieces; i += gridDim.x) {
      const std::uint32_t stage = producer.acquire_stage();
      load_bytes(in[stage], source + i * piece, sizeof(in[stage]), producer.announce(sizeof(in[stage])));
    }
  } else if (threadIdx.x == storer) {
    ring_storer results(stores);
    for (std::uint32_t i = blockIdx.x; i < pieces; i += gridDim.x) {
      const std::uint32_t stage = results.wait_full();
      store_bytes(target + i * piece, out[stage], sizeof(out[stage]));
      results.store_issued();
    }
    results.drain();
  } else if (threadIdx.x < workers) {
    ring_consumer<stages> consumer(loads);
    ring_producer results(stores);
    for (std::uint32_t i = blockIdx.x; i < pieces; i += gridDim.x) {
      const std::uint32_t from = consumer.wait_full(), to = results.acquire_stage();
      for (std::uint32_t k = threadIdx.x; k < piece; k += workers) out[to][k] = 2 * in[from][k];
      consumer.release_warp();
      fence_shared_writes();
      results.publish();
    }
  }
}
// [kernel]

}  // namespace stage_ring_sample

bool samples::stage_ring() {
  using namespace stage_ring_sample;
  auto numbers = counting<float>(piece * pieces);
  const device_array<float> source(numbers), target(std::vector<float>(numbers.size(), -1));
  double_pieces<<<8, workers + 64>>>(source.get(), target.get());
  for (float& number : numbers) number *= 2;
  return target.read() == numbers;
}
