// SPDX-License-Identifier: Apache-2.0
// Passes tiles through a ring. Every element must arrive once, in its place, plus one, for all
// fillers, readers and numbers of stages.
#include <tmap/device/acquire.cuh>
#include <tmap/device/async_copy.cuh>
#include <tmap/device/bulk_copy.cuh>
#include <tmap/device/stage_ring.cuh>
#include <tmap/encode.hpp>

#include <memory>

#include "device/gpu_fixture.hpp"

namespace tmap::testing::stage_ring_cases {
namespace {

constexpr std::uint32_t words = 128;  // of each tile
constexpr std::uint32_t tile_bytes = words * sizeof(std::uint32_t);
constexpr std::uint32_t most_stages = 16;
constexpr std::uint32_t blocks = 3;
constexpr std::uint32_t canary_words = 64;

struct ring_job {
  const std::uint32_t* source;
  std::uint32_t* destination;
  std::uint32_t tiles;
  std::uint32_t stages;
  bool by_warp;  // consumers release a stage by warps, else by threads
};

/// Selects how the producing warp fills: one lane by a tensor map or by bulk copies, or all lanes
/// by LDGSTS or ordinary stores.
enum class filling { tensor_map, bulk, ldgsts, plain, mixed };

template <std::uint32_t Fillers>
struct shared_ring {
  alignas(128) std::uint32_t tiles[most_stages][words];
  device::ring_barriers<most_stages, Fillers> barriers;
};

__device__ std::uint32_t consumers_of_block() {
  return blockDim.x - 32;
}

template <std::uint32_t Fillers>
__device__ void announce_tile(device::ring_producer<most_stages, Fillers>& producer, std::uint32_t* stage, filling how,
                              const tensor_map& map, const std::uint32_t* source, std::uint32_t tile) {
  device::tile_barrier& full = producer.announce(tile_bytes);
  if (how == filling::tensor_map) {
    device::load_tile<2>(stage, device::parameter_map(map), {0, static_cast<std::int32_t>(tile)}, full);
  } else {
    device::load_bytes(stage, source, tile_bytes, full);
  }
}

/// Fills one stage by all lanes of a warp.
__device__ void fill_by_warp(device::ring_producer<most_stages, 32>& producer, std::uint32_t* stage, filling how,
                             const tensor_map& map, const std::uint32_t* source, std::uint32_t tile) {
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t at = lane * 4;
  if (how == filling::ldgsts) {
    device::copy_async<16>(&stage[at], &source[at]);
    producer.publish_after_copies();
  } else if (how == filling::plain) {
    for (std::uint32_t k = 0; k < 4; ++k) stage[at + k] = source[at + k];
    producer.publish();
  } else if (lane == 0) {
    announce_tile<32>(producer, stage, how, map, source, tile);
  } else {
    producer.pass();
  }
}

template <filling How, std::uint32_t Fillers>
__device__ void produce(shared_ring<Fillers>& ring, const tensor_map& map, const ring_job& job) {
  if (Fillers == 1 && threadIdx.x != 0) return;
  device::ring_producer<most_stages, Fillers> producer(ring.barriers, job.stages);
  for (std::uint32_t tile = blockIdx.x; tile < job.tiles; tile += gridDim.x) {
    std::uint32_t* const stage = ring.tiles[producer.acquire_stage()];
    const std::uint32_t* const source = job.source + std::uint64_t{tile} * words;
    if constexpr (Fillers == 1) {
      announce_tile<1>(producer, stage, How, map, source, tile);
    } else {
      fill_by_warp(producer, stage, How == filling::mixed ? static_cast<filling>(tile / gridDim.x % 4) : How, map,
                   source, tile);
    }
  }
}

template <std::uint32_t Fillers>
__device__ void consume(shared_ring<Fillers>& ring, const ring_job& job) {
  device::ring_consumer<most_stages, Fillers> consumer(ring.barriers, job.stages);
  for (std::uint32_t tile = blockIdx.x; tile < job.tiles; tile += gridDim.x) {
    const std::uint32_t* const stage = ring.tiles[consumer.wait_full()];
    std::uint32_t* const destination = job.destination + std::uint64_t{tile} * words;
    for (std::uint32_t k = threadIdx.x - 32; k < words; k += consumers_of_block()) destination[k] = stage[k] + 1;
    if (job.by_warp) {
      consumer.release_warp();
    } else {
      consumer.release();
    }
  }
}

/// Warp 0 fills, and the other warps read.
template <filling How, std::uint32_t Fillers>
__global__ void ring_kernel(const __grid_constant__ tensor_map map, ring_job job) {
  __shared__ shared_ring<Fillers> ring;
  if (threadIdx.x == 0) ring.barriers.init(job.stages, consumers_of_block() / (job.by_warp ? 32 : 1));
  __syncthreads();
  if (threadIdx.x < 32) {
    produce<How, Fillers>(ring, map, job);
  } else {
    consume<Fillers>(ring, job);
  }
}

/// Fills and reads with one warp that issues as far ahead as the ring allows. The number of stages
/// is known at compile time.
template <std::uint32_t Stages>
__global__ void one_warp_kernel(ring_job job) {
  __shared__ alignas(128) std::uint32_t tiles[Stages][words];
  __shared__ device::ring_barriers<Stages> barriers;
  const std::uint32_t lane = threadIdx.x;
  if (lane == 0) barriers.init();
  __syncwarp();
  device::ring_producer<Stages> producer(barriers);
  device::ring_consumer<Stages> consumer(barriers);
  const auto fill = [&](std::uint32_t tile) {
    if (lane != 0 || tile >= job.tiles) return;
    const std::uint32_t stage = producer.acquire_stage();
    device::load_bytes(tiles[stage], job.source + std::uint64_t{tile} * words, tile_bytes,
                       producer.announce(tile_bytes));
  };
  const std::uint32_t ahead = Stages * gridDim.x;
  for (std::uint32_t k = 0; k < Stages; ++k) fill(blockIdx.x + k * gridDim.x);
  for (std::uint32_t tile = blockIdx.x; tile < job.tiles; tile += gridDim.x) {
    const std::uint32_t* const stage = tiles[consumer.wait_full()];
    std::uint32_t* const destination = job.destination + std::uint64_t{tile} * words;
    for (std::uint32_t k = lane; k < words; k += 32) destination[k] = stage[k] + 1;
    consumer.release_warp();
    fill(tile + ahead);
  }
}

/// Loads and stores with one thread, which reuses the shared memory after its drain.
__global__ void one_thread_kernel(ring_job job) {
  __shared__ alignas(128) std::uint32_t tiles[most_stages][words];
  __shared__ device::ring_barriers<most_stages> barriers;
  if (threadIdx.x == 0) {
    barriers.init(job.stages);
    device::ring_producer<most_stages> producer(barriers, job.stages);
    device::ring_storer<most_stages> storer(barriers, job.stages);
    std::uint32_t filled = blockIdx.x;
    const auto fill = [&] {
      if (filled >= job.tiles) return;
      const std::uint32_t stage = producer.acquire_stage();
      device::load_bytes(tiles[stage], job.source + std::uint64_t{filled} * words, tile_bytes,
                         producer.announce(tile_bytes));
      filled += gridDim.x;
    };
    for (std::uint32_t k = 1; k < job.stages; ++k) fill();
    for (std::uint32_t tile = blockIdx.x; tile < job.tiles; tile += gridDim.x) {
      const std::uint32_t stage = storer.wait_full();
      device::store_bytes(job.destination + std::uint64_t{tile} * words, tiles[stage], tile_bytes);
      storer.store_issued();
      fill();
    }
    storer.drain();
  }
  __syncthreads();
  for (std::uint32_t k = threadIdx.x; k < most_stages * words; k += blockDim.x)
    static_cast<volatile std::uint32_t*>(tiles[0])[k] = 0xdeadbeef;
}

/// Uses the ring again after a drain. The second round begins where the first one ended.
__global__ void two_rounds_kernel(ring_job job) {
  __shared__ alignas(128) std::uint32_t tiles[most_stages][words];
  __shared__ device::ring_barriers<most_stages> barriers;
  if (threadIdx.x == 0) barriers.init(job.stages);
  __syncthreads();
  const std::uint32_t half = job.tiles / 2;
  device::ring_producer<most_stages> producer(barriers, job.stages);
  device::ring_storer<most_stages> storer(barriers, job.stages);
  for (std::uint32_t round = 0; round < 2; ++round) {
    const std::uint32_t last = round == 0 ? half : job.tiles;
    for (std::uint32_t tile = round * half + blockIdx.x; tile < last; tile += gridDim.x) {
      if (threadIdx.x == 0) {
        const std::uint32_t stage = producer.acquire_stage();
        device::load_bytes(tiles[stage], job.source + std::uint64_t{tile} * words, tile_bytes,
                           producer.announce(tile_bytes));
      } else if (threadIdx.x == 32) {
        const std::uint32_t stage = storer.wait_full();
        device::store_bytes(job.destination + std::uint64_t{tile} * words, tiles[stage], tile_bytes);
        storer.store_issued();
      }
    }
    if (threadIdx.x == 32) storer.drain();
    __syncthreads();
  }
}

class stage_ring : public gpu_test {
 protected:
  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (std::uint32_t i = 0; i < source_.size(); ++i) source_[i] = i * 2654435761u;
    device_source_ = std::make_unique<device_array<std::uint32_t>>(source_);
    tensor_spec spec;
    spec.global_address = device_source_->address();
    spec.type = element_type::u32;
    spec.rank = 2;
    spec.global_dim[0] = spec.box_dim[0] = words;
    spec.global_dim[1] = most_tiles;
    spec.box_dim[1] = 1;
    spec.global_stride_bytes[0] = tile_bytes;
    const auto map = encode(spec);
    ASSERT_TRUE(map.has_value()) << to_string(map.error());
    map_ = *map;
  }

  /// Runs `launch` on a poisoned destination and expects each element of its tiles to be the
  /// source's plus `added`.
  template <class Launch>
  void expect_tiles(std::uint32_t tiles, std::uint32_t added, const Launch& launch) {
    const device_array<std::uint32_t> out(std::uint64_t{tiles} * words + 2 * canary_words);
    launch(out.data() + canary_words);
    TMAP_ASSERT_CUDA(cudaGetLastError());
    const std::vector<std::uint32_t> got = out.download();
    for (std::uint32_t i = 0; i < tiles * words; ++i) ASSERT_EQ(got[canary_words + i], source_[i] + added) << i;
    for (std::uint32_t i = 0; i < canary_words; ++i) {
      ASSERT_TRUE(is_poison(got[i]) && is_poison(got[got.size() - 1 - i])) << "a canary " << i << " around the tiles";
    }
  }

  template <filling How, std::uint32_t Fillers>
  void expect_ring(std::uint32_t tiles, std::uint32_t stages, std::uint32_t warps, bool by_warp) {
    SCOPED_TRACE(::testing::Message() << "filling " << static_cast<int>(How) << " by " << Fillers << ", " << tiles
                                      << " tiles, " << stages << " stages, " << warps << " warps, by warp " << by_warp);
    expect_tiles(tiles, 1, [&](std::uint32_t* to) {
      ring_kernel<How, Fillers>
          <<<blocks, 32 + 32 * warps>>>(map_, ring_job{device_source_->data(), to, tiles, stages, by_warp});
    });
  }

  template <filling How, std::uint32_t Fillers>
  void expect_every_ring() {
    for (std::uint32_t stages = 1; stages <= most_stages && !HasFatalFailure(); ++stages) {
      for (const std::uint32_t warps : {1, 2, 3, 8}) {
        for (const bool by_warp : {false, true}) expect_ring<How, Fillers>(most_tiles, stages, warps, by_warp);
      }
      for (const std::uint32_t tiles : {0u, 1u, stages, stages * blocks + 1}) {
        expect_ring<How, Fillers>(tiles, stages, 4, true);
      }
    }
  }

  template <std::uint32_t Stages>
  void expect_one_warp() {
    for (const std::uint32_t tiles : {0u, 1u, Stages, most_tiles}) {
      SCOPED_TRACE(::testing::Message() << tiles << " tiles, " << Stages << " stages");
      expect_tiles(tiles, 1, [&](std::uint32_t* to) {
        one_warp_kernel<Stages><<<blocks, 32>>>(ring_job{device_source_->data(), to, tiles, Stages, true});
      });
    }
  }

  static constexpr std::uint32_t most_tiles = 301;
  std::vector<std::uint32_t> source_ = std::vector<std::uint32_t>(most_tiles * words);
  std::unique_ptr<device_array<std::uint32_t>> device_source_;
  tensor_map map_{};
};

TEST_F(stage_ring, one_thread_fills_through_a_map) {
  expect_every_ring<filling::tensor_map, 1>();
}
TEST_F(stage_ring, one_thread_fills_by_bulk_copies) {
  expect_every_ring<filling::bulk, 1>();
}
TEST_F(stage_ring, a_warp_fills_by_ldgsts) {
  expect_every_ring<filling::ldgsts, 32>();
}
TEST_F(stage_ring, a_warp_fills_by_ordinary_stores) {
  expect_every_ring<filling::plain, 32>();
}
TEST_F(stage_ring, a_warp_fills_by_every_route_in_turn) {
  expect_every_ring<filling::mixed, 32>();
}

TEST_F(stage_ring, one_warp_fills_and_reads) {
  expect_one_warp<1>();
  expect_one_warp<2>();
  expect_one_warp<3>();
  expect_one_warp<4>();
  expect_one_warp<16>();
}

TEST_F(stage_ring, one_thread_loads_and_stores) {
  for (std::uint32_t stages = 2; stages <= most_stages; ++stages) {
    for (const std::uint32_t tiles : {0u, 1u, stages, most_tiles}) {
      SCOPED_TRACE(::testing::Message() << tiles << " tiles, " << stages << " stages");
      expect_tiles(tiles, 0, [&](std::uint32_t* to) {
        one_thread_kernel<<<blocks, 64>>>(ring_job{device_source_->data(), to, tiles, stages, false});
      });
    }
  }
}

TEST_F(stage_ring, goes_on_after_a_drain) {
  for (std::uint32_t stages = 2; stages <= most_stages; ++stages) {
    SCOPED_TRACE(stages);
    expect_tiles(most_tiles, 0, [&](std::uint32_t* to) {
      two_rounds_kernel<<<blocks, 64>>>(ring_job{device_source_->data(), to, most_tiles, stages, false});
    });
  }
}

}  // namespace
}  // namespace tmap::testing::stage_ring_cases
