// SPDX-License-Identifier: Apache-2.0
// Tests that a late part of a ring delays tiles but changes none, for all routes and numbers of
// stages. Each filling warp is late once, and so is the reading warp. A spare thread watches, so
// that a hang becomes a failure.
#include <tmap/device/bulk_copy.cuh>
#include <tmap/device/stage_ring.cuh>

#include <cuda/ptx>

#include "device/gpu_fixture.hpp"
#include "support/random_spec.hpp"

namespace tmap::testing::late_filler_cases {
namespace {

constexpr std::uint32_t most_stages = 4;
constexpr std::uint32_t tiles = 14;  // more than three times around four stages
constexpr std::uint32_t filling_warps = 3;
constexpr std::uint32_t warps = filling_warps + 1;  // the last one reads
constexpr std::uint32_t fillers = filling_warps * 32;
constexpr std::uint32_t own_words = 4;  // words that each filler brings if all of them fill
constexpr std::uint32_t words = fillers * own_words;
constexpr std::uint32_t blocks = 3;
constexpr std::uint32_t watching_thread = warps * 32;

constexpr std::uint64_t late_nanoseconds = 500'000;
constexpr std::uint64_t hung_nanoseconds = 5'000'000'000;

enum class filling : std::uint8_t {
  first_loads,  ///< the first filler loads all of the tile by the copy engine; the others pass
  last_loads,   ///< the last filler loads all of the tile
  ldgsts,       ///< all fillers copy by LDGSTS
  plain,        ///< all fillers copy by ordinary stores
  halves,       ///< the first filler loads half of the tile by the copy engine, the last ones copy the rest by LDGSTS
};
constexpr std::uint32_t filling_count = 5;

struct late_job {
  const std::uint32_t* source;
  std::uint32_t* destination;
  std::uint32_t* hung;  // in host memory: whether the watching thread gave up
  std::uint32_t stages;
  std::uint32_t late_warp;
  std::uint32_t late_tile;  // the tile for which the warp is late
  filling routes[tiles];
};

struct late_ring {
  alignas(128) std::uint32_t tiles[most_stages][words];
  device::ring_barriers<most_stages, fillers> barriers;
  std::uint32_t finished;  // counts the threads that have finished
};

__device__ const std::uint32_t* source_of(const late_job& job, std::uint32_t tile) {
  return job.source + std::uint64_t{blockIdx.x * tiles + tile} * words;
}

__device__ void come_late(const late_job& job, std::uint32_t tile) {
  if (threadIdx.x / 32 != job.late_warp || tile != job.late_tile) return;
  const std::uint64_t start = cuda::ptx::get_sreg_globaltimer();
  while (cuda::ptx::get_sreg_globaltimer() - start < late_nanoseconds) __nanosleep(10'000);
}

__device__ void fill_tile(device::ring_producer<most_stages, fillers>& producer, std::uint32_t* stage,
                          const std::uint32_t* source, filling how) {
  const std::uint32_t own = threadIdx.x * own_words;
  const std::uint32_t loading = how == filling::last_loads ? fillers - 1 : 0;
  const std::uint32_t loaded = how == filling::halves ? words / 2 : words;
  const bool copies = how == filling::ldgsts || (how == filling::halves && own >= loaded);
  if (how == filling::plain) {
    for (std::uint32_t k = 0; k < own_words; ++k) stage[own + k] = source[own + k];
    producer.publish();
  } else if (copies) {
    device::copy_async<own_words * 4>(&stage[own], &source[own]);
    producer.publish_after_copies();
  } else if (threadIdx.x == loading) {
    device::load_bytes(stage, source, loaded * 4, producer.announce(loaded * 4));
  } else {
    producer.pass();
  }
}

__device__ void fill_tiles(late_ring& ring, const late_job& job) {
  device::ring_producer<most_stages, fillers> producer(ring.barriers, job.stages);
  for (std::uint32_t tile = 0; tile < tiles; ++tile) {
    come_late(job, tile);
    std::uint32_t* const stage = ring.tiles[producer.acquire_stage()];
    fill_tile(producer, stage, source_of(job, tile), job.routes[tile]);
  }
}

__device__ void read_tiles(late_ring& ring, const late_job& job) {
  device::ring_consumer<most_stages, fillers> consumer(ring.barriers, job.stages);
  for (std::uint32_t tile = 0; tile < tiles; ++tile) {
    come_late(job, tile);
    const std::uint32_t* const stage = ring.tiles[consumer.wait_full()];
    std::uint32_t* const destination = job.destination + (source_of(job, tile) - job.source);
    for (std::uint32_t k = device::lane_index(); k < words; k += 32) destination[k] = stage[k] + 1;
    consumer.release_warp();
  }
}

__device__ void watch(const volatile std::uint32_t& finished, const late_job& job) {
  const std::uint64_t start = cuda::ptx::get_sreg_globaltimer();
  while (finished != warps * 32) {
    __nanosleep(10'000);
    if (cuda::ptx::get_sreg_globaltimer() - start < hung_nanoseconds) continue;
    *job.hung = 1;
    __threadfence_system();
    __trap();
  }
}

__global__ void __launch_bounds__(watching_thread + 1) late_kernel(const __grid_constant__ late_job job) {
  __shared__ late_ring ring;
  if (threadIdx.x == 0) {
    ring.barriers.init(job.stages);
    ring.finished = 0;
  }
  __syncthreads();
  if (threadIdx.x == watching_thread) return watch(ring.finished, job);
  if (threadIdx.x < fillers) {
    fill_tiles(ring, job);
  } else {
    read_tiles(ring, job);
  }
  atomicAdd(&ring.finished, 1u);
}

class late_filler : public gpu_test {
 protected:
  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    TMAP_ASSERT_CUDA(cudaHostAlloc(reinterpret_cast<void**>(&hung_), sizeof(*hung_), cudaHostAllocDefault));
    *hung_ = 0;
    for (std::uint32_t i = 0; i < source_.size(); ++i) source_[i] = i * 2654435761u;
  }
  void TearDown() override {
    if (hung_ != nullptr) cudaFreeHost(hung_);
    gpu_test::TearDown();
  }

  /// Makes each warp late in turn, for the first tile and for a later one.
  void expect_tiles(std::uint32_t stages, const std::vector<filling>& routes) {
    const device_array<std::uint32_t> from(source_);
    const device_array<std::uint32_t> to(source_.size());
    late_job job{from.data(), to.data(), hung_, stages, 0, 0, {}};
    std::copy(routes.begin(), routes.end(), job.routes);
    for (job.late_warp = 0; job.late_warp < warps; ++job.late_warp) {
      for (const std::uint32_t tile : {0u, stages + 1}) {
        SCOPED_TRACE(::testing::Message()
                     << "warp " << job.late_warp << " late for tile " << tile << ", " << stages << " stages");
        job.late_tile = tile;
        to.fill_poison();
        late_kernel<<<blocks, watching_thread + 1>>>(job);
        const cudaError_t ended = cudaDeviceSynchronize();
        ASSERT_EQ(*hung_, 0u) << "the kernel hangs";
        ASSERT_EQ(ended, cudaSuccess) << cudaGetErrorString(ended);
        const std::vector<std::uint32_t> got = to.download();
        for (std::uint32_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], source_[i] + 1) << "tile " << i / words;
      }
    }
  }

  std::vector<std::uint32_t> source_ = std::vector<std::uint32_t>(blocks * tiles * words);
  std::uint32_t* hung_{};
};

/// Fills by the copy engine, except for one LDGSTS tile, which needs every filler.
TEST_F(late_filler, delays_the_last_tile_which_needs_it) {
  for (std::uint32_t stages = 1; stages <= most_stages && !HasFatalFailure(); ++stages) {
    for (const filling engine : {filling::first_loads, filling::last_loads}) {
      std::vector<filling> routes(tiles, engine);
      routes.back() = filling::ldgsts;
      expect_tiles(stages, routes);
    }
  }
}

TEST_F(late_filler, delays_tiles_of_the_copy_engine_alone) {
  for (std::uint32_t stages = 1; stages <= most_stages && !HasFatalFailure(); ++stages) {
    expect_tiles(stages, std::vector<filling>(tiles, filling::first_loads));
    expect_tiles(stages, std::vector<filling>(tiles, filling::last_loads));
  }
}

TEST_F(late_filler, delays_tiles_of_every_route) {
  random_source random(61);
  for (std::uint32_t stages = 1; stages <= most_stages; ++stages) {
    for (std::uint32_t trial = 0; trial < 8 && !HasFatalFailure(); ++trial) {
      std::vector<filling> routes(tiles);
      for (filling& route : routes) route = static_cast<filling>(random.below32(filling_count));
      expect_tiles(stages, routes);
    }
  }
}

TEST_F(late_filler, delays_tiles_that_the_routes_share) {
  for (std::uint32_t stages = 1; stages <= most_stages && !HasFatalFailure(); ++stages) {
    expect_tiles(stages, std::vector<filling>(tiles, filling::halves));
  }
}

}  // namespace
}  // namespace tmap::testing::late_filler_cases
