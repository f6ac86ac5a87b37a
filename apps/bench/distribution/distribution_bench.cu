// SPDX-License-Identifier: Apache-2.0
// Compares ways of sharing tiles among persistent blocks, for tiles that take equally long and for
// tiles that do not. Prints the table of docs/measurements/ragged.md, section "Distribution".

#include <tmap/device/bulk_copy.cuh>
#include <tmap/device/stage_ring.cuh>
#include <tmap/device/tile_shares.cuh>
#include <tmap/device/work_queue.cuh>

#include "apps/support/device.hpp"
#include "apps/support/timing.hpp"

namespace {

using namespace tmap;

enum class sharing : std::uint32_t { consecutive, interleaved, queue, queued_runs };
enum class heavy : std::uint32_t { none, scattered, together };  // selects the eighth of the tiles that takes longer

constexpr std::uint32_t most_stages = 16;
constexpr std::uint32_t workers = 128;
constexpr std::uint32_t blocks_per_multiprocessor = 3;
constexpr std::uint32_t ring_bytes = 64 << 10;
constexpr std::uint32_t runs_per_block = 16;
constexpr std::uint64_t total_bytes = std::uint64_t{1} << 29;

struct work {
  const float4* data;
  float* sums;  // four per tile
  device::queue_counter* counter;
  std::uint32_t tiles;
  std::uint32_t tile_vectors;
  std::uint32_t stages;
  std::uint32_t passes;        // of a light tile
  std::uint32_t heavy_factor;  // a heavy tile takes this many times as many
  heavy which;
};

__device__ std::uint32_t passes_over(const work& job, std::uint32_t tile) {
  const bool is_heavy = (job.which == heavy::scattered && tile * 2654435761u >> 29 == 0) ||
                        (job.which == heavy::together && tile >= job.tiles - job.tiles / 8);
  return is_heavy ? job.passes * job.heavy_factor : job.passes;
}

/// Calls `use` for each tile of this block.
template <sharing How, class Use>
__device__ void for_each_tile(const work& job, const Use& use) {
  if constexpr (How == sharing::consecutive) {
    const device::tile_range range = device::tile_shares(job.tiles, gridDim.x).run(blockIdx.x);
    for (std::uint64_t tile = range.first; tile < range.last; ++tile) use(static_cast<std::uint32_t>(tile));
  } else if constexpr (How == sharing::interleaved) {
    for (std::uint32_t tile = blockIdx.x; tile < job.tiles; tile += gridDim.x) use(tile);
  } else if constexpr (How == sharing::queue) {
    device::work_queue queue(job.counter, job.tiles, blockIdx.x, gridDim.x);
    for (std::uint32_t tile = queue.take(); tile != device::no_item; tile = queue.take()) use(tile);
  } else {
    const device::tile_shares runs(job.tiles, gridDim.x * runs_per_block);
    device::work_queue queue(job.counter, static_cast<std::uint32_t>(runs.used()), blockIdx.x, gridDim.x);
    for (std::uint32_t r = queue.take(); r != device::no_item; r = queue.take()) {
      const device::tile_range range = runs.run(r);
      for (std::uint64_t tile = range.first; tile < range.last; ++tile) use(static_cast<std::uint32_t>(tile));
    }
  }
}

template <sharing How>
__global__ void __launch_bounds__(workers + 32) work_kernel(const __grid_constant__ work job) {
  __shared__ device::ring_barriers<most_stages> barriers;
  __shared__ std::uint32_t tile_of_stage[most_stages];
  extern __shared__ __align__(128) float4 dynamic[];
  if (threadIdx.x == 0) barriers.init(job.stages, workers / 32);
  __syncthreads();
  if (threadIdx.x == workers) {
    device::ring_producer producer(barriers, job.stages);
    const std::uint32_t bytes = job.tile_vectors * sizeof(float4);
    for_each_tile<How>(job, [&](std::uint32_t tile) {
      const std::uint32_t stage = producer.acquire_stage();
      tile_of_stage[stage] = tile;
      device::load_bytes(dynamic + stage * job.tile_vectors, job.data + std::uint64_t{tile} * job.tile_vectors, bytes,
                         producer.announce(bytes));
    });
    tile_of_stage[producer.acquire_stage()] = device::no_item;
    producer.publish();
  } else if (threadIdx.x < workers) {
    device::ring_consumer consumer(barriers, job.stages);
    for (;;) {
      const std::uint32_t stage = consumer.wait_full();
      const std::uint32_t tile = tile_of_stage[stage];
      if (tile == device::no_item) return;
      float sum = 0;
      for (std::uint32_t pass = passes_over(job, tile); pass > 0; --pass) {
        for (std::uint32_t k = threadIdx.x; k < job.tile_vectors; k += workers) {
          const float4 v = dynamic[stage * job.tile_vectors + k];
          sum = sum * 0.5f + v.x + v.y + v.z + v.w;
        }
      }
      consumer.release_warp();
      for (std::uint32_t step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
      if (threadIdx.x % 32 == 0) job.sums[tile * 4 + threadIdx.x / 32] = sum;
    }
  }
}

template <sharing How>
double microseconds(const work& job, const apps::timer& timer) {
  apps::require(cudaFuncSetAttribute(work_kernel<How>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(ring_bytes)));
  const std::uint32_t blocks = apps::multiprocessors() * blocks_per_multiprocessor;
  return timer.stream_microseconds([&](cudaStream_t stream) {
    work_kernel<How><<<blocks, workers + 32, ring_bytes, stream>>>(job);
    apps::require(cudaGetLastError());
  });
}

struct measured_case {
  const char* name;
  std::uint32_t tile_bytes;
  std::uint32_t passes;
  std::uint32_t heavy_factor;
  heavy which;
};

constexpr measured_case cases[] = {
    {"16 KiB, equal, memory-bound", 16 << 10, 1, 1, heavy::none},
    {"16 KiB, equal, compute-bound", 16 << 10, 16, 1, heavy::none},
    {"16 KiB, 1 of 8 takes 16x, scattered", 16 << 10, 4, 16, heavy::scattered},
    {"16 KiB, 1 of 8 takes 16x, together", 16 << 10, 4, 16, heavy::together},
    {"4 KiB, equal, memory-bound", 4 << 10, 1, 1, heavy::none},
    {"1 KiB, equal, memory-bound", 1 << 10, 1, 1, heavy::none},
    {"1 KiB, 1 of 8 takes 16x, together", 1 << 10, 4, 16, heavy::together},
};

__global__ void fill_kernel(float* data, std::uint64_t count) {
  for (std::uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    data[i] = static_cast<float>(static_cast<std::uint32_t>(i) * 2654435761u >> 8) * 0x1p-24f;
  }
}

}  // namespace

int main() {
  if (!apps::has_hopper()) return apps::lack_of_hopper("distribution_bench");
  apps::print_device();
  const apps::device_array<float4> data(total_bytes / sizeof(float4));
  const apps::device_array<device::queue_counter> counter(1);
  fill_kernel<<<1024, 256>>>(reinterpret_cast<float*>(data.get()), total_bytes / sizeof(float));
  apps::require(cudaDeviceSynchronize());
  counter.fill(0);
  apps::wake_device();
  const apps::timer timer;
  std::printf("%-38s %12s %12s %12s %12s\n", "microseconds", "consecutive", "interleaved", "queue", "queued runs");
  for (const measured_case& one : cases) {
    const auto tiles = static_cast<std::uint32_t>(total_bytes / one.tile_bytes);
    const apps::device_array<float> sums(std::size_t{tiles} * 4);
    const work job{data.get(),
                   sums.get(),
                   counter.get(),
                   tiles,
                   one.tile_bytes / std::uint32_t{sizeof(float4)},
                   std::min(most_stages, ring_bytes / one.tile_bytes),
                   one.passes,
                   one.heavy_factor,
                   one.which};
    const double consecutive = microseconds<sharing::consecutive>(job, timer);
    const std::vector<float> expected = sums.read();
    const auto checked = [&](double time) {
      apps::require(sums.read() == expected);
      sums.fill(0);
      return time;
    };
    sums.fill(0);
    const double interleaved = checked(microseconds<sharing::interleaved>(job, timer));
    const double queue = checked(microseconds<sharing::queue>(job, timer));
    const double runs = checked(microseconds<sharing::queued_runs>(job, timer));
    std::printf("%-38s %12.1f %12.1f %12.1f %12.1f\n", one.name, consecutive, interleaved, queue, runs);
    std::fflush(stdout);
  }
}
