// SPDX-License-Identifier: Apache-2.0
// Every tile of a ragged batch is visited once and in its place, whoever walks and however the
// tiles are shared out.
#include <tmap/device/tile_shares.cuh>
#include <tmap/device/tile_walk.cuh>
#include <tmap/device/work_queue.cuh>

#include "device/gpu_fixture.hpp"
#include "kernels/batch/running_sum.cuh"
#include "support/random_spec.hpp"

namespace tmap::testing::tile_walk_cases {
namespace {

enum class sharing : std::uint32_t { consecutive, interleaved, listed, queued };
constexpr sharing all_sharings[] = {sharing::consecutive, sharing::interleaved, sharing::listed, sharing::queued};

struct tile_shape {
  std::uint32_t rank;
  std::uint32_t box_dim[max_rank];
};

template <std::uint32_t Rank>
struct tile_counter {
  const map_patch* extents;
  tile_shape shape;

  __device__ std::uint64_t operator()(std::uint64_t i) const {
    return device::count_tiles<Rank>(extents[i], shape.box_dim);
  }
};

struct walk_job {
  const map_patch* extents;
  const std::uint64_t* tile_ends;
  std::uint64_t count;
  tile_shape shape;
  std::uint32_t* visits;           // one for each tile
  std::uint32_t* errors;           // tiles that do not exist, or are not the one asked for
  std::uint32_t* list;             // `runs` tensors
  device::queue_counter* counter;  // of the queue
  std::uint32_t runs;
};

/// The place of a tile in the order of the walk, from its tensor and coordinates alone; beyond all
/// tiles for none.
template <std::uint32_t Rank>
__device__ std::uint64_t number_of_tile(const walk_job& job, std::uint64_t tensor,
                                        const std::int32_t (&coordinates)[Rank]) {
  constexpr std::uint64_t nowhere = ~std::uint64_t{0};
  std::uint64_t number = tensor == 0 ? 0 : job.tile_ends[tensor - 1];
  std::uint64_t step = 1;
  for (std::uint32_t axis = 0; axis < Rank; ++axis) {
    const std::uint64_t dim = job.extents[tensor].global_dim[axis];
    const std::uint64_t box = job.shape.box_dim[axis];
    const auto at = static_cast<std::uint64_t>(static_cast<std::int64_t>(coordinates[axis]));
    if (at >= dim || at % box != 0) return nowhere;
    number += at / box * step;
    step *= dim / box + (dim % box != 0);
  }
  return number;
}

template <std::uint32_t Rank>
__device__ void visit(const walk_job& job, const device::tile_walk<Rank>& walk, std::uint64_t g, bool counts) {
  if (number_of_tile<Rank>(job, walk.tensor(), walk.coordinates()) != g || g >= walk.tiles()) {
    atomicAdd(job.errors, 1u);
  } else if (counts) {
    atomicAdd(&job.visits[g], 1u);
  }
}

/// The calls of a thread or of a warp.
template <std::uint32_t Rank, bool ByWarp>
struct walker {
  device::tile_walk<Rank> walk;
  __device__ void seek(std::uint64_t g) {
    if constexpr (ByWarp) {
      walk.seek_warp(g);
    } else {
      walk.seek(g);
    }
  }
  __device__ void seek_ahead(std::uint64_t g) {
    if constexpr (ByWarp) {
      walk.seek_ahead_warp(g);
    } else {
      walk.seek_ahead(g);
    }
  }
  __device__ void advance() {
    if constexpr (ByWarp) {
      walk.advance_warp();
    } else {
      walk.advance();
    }
  }
  static __device__ std::uint32_t take(device::work_queue& queue) {
    if constexpr (ByWarp) {
      return queue.take_warp();
    } else {
      return queue.take();
    }
  }
};

/// From the walk's current tile on, which is the first of `range`.
template <std::uint32_t Rank, bool ByWarp>
__device__ void visit_range(const walk_job& job, walker<Rank, ByWarp>& at, device::tile_range range, bool counts) {
  for (std::uint64_t g = range.first; g < range.last; ++g) {
    if (g != range.first) at.advance();
    visit<Rank>(job, at.walk, g, counts);
  }
}

template <std::uint32_t Rank, bool ByWarp>
__device__ void visit_share(const walk_job& job, sharing how, std::uint32_t worker, std::uint32_t workers,
                            bool counts) {
  walker<Rank, ByWarp> at{{job.extents, job.tile_ends, job.count, job.shape.box_dim}};
  const std::uint64_t tiles = at.walk.tiles();
  const device::tile_shares runs(tiles, job.runs);
  if (how == sharing::consecutive) {
    const device::tile_range range = device::tile_shares(tiles, workers).run(worker);
    if (range.first == range.last) return;
    at.seek(range.first);
    visit_range<Rank, ByWarp>(job, at, range, counts);
  } else if (how == sharing::interleaved) {
    for (std::uint64_t g = worker; g < tiles; g += workers) {
      at.seek_ahead(g);
      visit<Rank>(job, at.walk, g, counts);
    }
  } else if (how == sharing::listed) {
    for (std::uint64_t r = worker; r < runs.used(); r += workers) {
      at.walk.seek_listed(runs.run(r).first, job.list[r]);
      visit_range<Rank, ByWarp>(job, at, runs.run(r), counts);
    }
  } else {
    device::work_queue queue(job.counter, static_cast<std::uint32_t>(runs.used()), worker, workers);
    for (std::uint32_t r = at.take(queue); r != device::no_item; r = at.take(queue)) {
      at.seek(runs.run(r).first);
      visit_range<Rank, ByWarp>(job, at, runs.run(r), counts);
    }
  }
}

template <std::uint32_t Rank, bool ByWarp>
__global__ void visit_kernel(const __grid_constant__ walk_job job, sharing how) {
  if constexpr (ByWarp) {
    const std::uint32_t warps = blockDim.x / 32;
    visit_share<Rank, true>(job, how, blockIdx.x * warps + threadIdx.x / 32, gridDim.x * warps, threadIdx.x % 32 == 7);
  } else if (threadIdx.x == 0) {
    visit_share<Rank, false>(job, how, blockIdx.x, gridDim.x, true);
  }
}

__global__ void list_kernel(const __grid_constant__ walk_job job) {
  const std::uint64_t tiles = job.count == 0 ? 0 : job.tile_ends[job.count - 1];
  device::fill_work_list(device::tile_shares(tiles, job.runs), job.tile_ends, job.count, job.list,
                         blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}

template <std::uint32_t Rank>
void launch_visits(const walk_job& job, sharing how, bool by_warp, cudaStream_t stream) {
  constexpr std::uint32_t blocks = 61;
  list_kernel<<<blocks, 128, 0, stream>>>(job);
  if (by_warp) {
    visit_kernel<Rank, true><<<blocks, 96, 0, stream>>>(job, how);
  } else {
    visit_kernel<Rank, false><<<blocks, 32, 0, stream>>>(job, how);
  }
}

void launch_visits(const walk_job& job, sharing how, bool by_warp, cudaStream_t stream) {
  switch (job.shape.rank) {
    case 1: return launch_visits<1>(job, how, by_warp, stream);
    case 2: return launch_visits<2>(job, how, by_warp, stream);
    case 3: return launch_visits<3>(job, how, by_warp, stream);
    case 4: return launch_visits<4>(job, how, by_warp, stream);
    default: return launch_visits<5>(job, how, by_warp, stream);
  }
}

/// A batch on the device, its tiles counted there.
struct walked_batch {
  walked_batch(const std::vector<map_patch>& tensors, const tile_shape& shape_, std::uint64_t most_tiles,
               std::uint32_t runs_)
      : extents(tensors),
        tile_ends(tensors.size()),
        scratch(kernels::inclusive_sum_scratch(tensors.size())),
        visits(most_tiles),
        errors(std::vector<std::uint32_t>{0}),
        list(runs_),
        counter(std::vector<std::uint32_t>{0}),
        shape(shape_),
        runs(runs_) {}

  walk_job job() const {
    return {extents.data(),
            tile_ends.data(),
            extents.size(),
            shape,
            visits.data(),
            errors.data(),
            list.data(),
            reinterpret_cast<device::queue_counter*>(counter.data()),
            runs};
  }
  cudaError_t count_tiles(cudaStream_t stream) const {
    switch (shape.rank) {
      case 1: return count_tiles<1>(stream);
      case 2: return count_tiles<2>(stream);
      case 3: return count_tiles<3>(stream);
      case 4: return count_tiles<4>(stream);
      default: return count_tiles<5>(stream);
    }
  }
  template <std::uint32_t Rank>
  cudaError_t count_tiles(cudaStream_t stream) const {
    return kernels::launch_inclusive_sum(tile_counter<Rank>{extents.data(), shape}, tile_ends.data(), extents.size(),
                                         scratch.data(), scratch.bytes(), stream);
  }

  device_array<map_patch> extents;
  device_array<std::uint64_t> tile_ends;
  device_array<unsigned char> scratch;
  device_array<std::uint32_t> visits;
  device_array<std::uint32_t> errors;
  device_array<std::uint32_t> list;
  device_array<std::uint32_t> counter;
  tile_shape shape;
  std::uint32_t runs;
};

map_patch tensor_of(std::initializer_list<std::uint64_t> dims) {
  map_patch tensor{};
  std::fill(tensor.global_dim, tensor.global_dim + max_rank, 1);
  std::copy(dims.begin(), dims.end(), tensor.global_dim);
  return tensor;
}

class tile_walk : public gpu_test {
 protected:
  static void expect_one_visit_each(const walked_batch& batch, std::uint64_t tiles) {
    EXPECT_EQ(batch.errors.download()[0], 0u);
    EXPECT_EQ(batch.counter.download()[0], 0u) << "the queue leaves its counter 0";
    const std::vector<std::uint32_t> visits = batch.visits.download();
    const auto wrong = std::find_if(visits.begin(), visits.end(), [](std::uint32_t n) { return n != 1; });
    ASSERT_EQ(wrong, visits.end()) << "tile " << wrong - visits.begin() << " of " << tiles << ": " << *wrong;
  }

  /// `tiles`: what all the tensors have, computed by the test.
  static void expect_walks(const std::vector<map_patch>& tensors, const tile_shape& shape, std::uint64_t tiles) {
    const walked_batch batch(tensors, shape, tiles, 500);
    TMAP_ASSERT_CUDA(batch.count_tiles(nullptr));
    ASSERT_EQ(batch.tile_ends.download().back(), tiles);
    for (const sharing how : all_sharings) {
      for (const bool by_warp : {false, true}) {
        SCOPED_TRACE(::testing::Message() << "sharing " << static_cast<int>(how) << ", by warp " << by_warp);
        TMAP_ASSERT_CUDA(cudaMemset(batch.visits.data(), 0, batch.visits.bytes()));
        launch_visits(batch.job(), how, by_warp, nullptr);
        TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
        expect_one_visit_each(batch, tiles);
        if (HasFailure()) return;
      }
    }
  }
};

constexpr tile_shape lines{1, {16, 1, 1, 1, 1}};
constexpr tile_shape squares{2, {8, 4, 1, 1, 1}};

TEST_F(tile_walk, one_tile) {
  expect_walks({tensor_of({5})}, lines, 1);
  expect_walks({tensor_of({0}), tensor_of({16}), tensor_of({0})}, lines, 1);
}

TEST_F(tile_walk, no_tile) {
  expect_walks({tensor_of({0})}, lines, 0);
  expect_walks(std::vector<map_patch>(1000, tensor_of({0, 7})), squares, 0);
  expect_walks({tensor_of({1ull << 32}), tensor_of({~0ull}), tensor_of({0})}, lines, 0);
}

TEST_F(tile_walk, one_huge_tensor) {
  expect_walks({tensor_of({16 * 3'000'000ull + 1})}, lines, 3'000'001);
  std::vector<map_patch> tensors(5000, tensor_of({0, 0}));
  tensors[4321] = tensor_of({8 * 1500, 4 * 2000 - 3});
  expect_walks(tensors, squares, 1500 * 2000);
}

TEST_F(tile_walk, a_hundred_thousand_tiny_tensors) {
  expect_walks(std::vector<map_patch>(100'000, tensor_of({3, 2})), squares, 100'000);
  random_source random(3);
  std::vector<map_patch> tensors;
  std::uint64_t tiles = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t dim = random.below(40);
    tensors.push_back(tensor_of({dim}));
    tiles += (dim + 15) / 16;
  }
  expect_walks(tensors, lines, tiles);
}

TEST_F(tile_walk, empty_tensors_anywhere) {
  random_source random(9);
  for (const std::uint64_t one_in : {2, 33, 300}) {
    std::vector<map_patch> tensors;
    std::uint64_t tiles = 0;
    for (int i = 0; i < 20'000; ++i) {
      const bool has_tiles = random.one_in(static_cast<std::uint32_t>(one_in));
      tensors.push_back(has_tiles          ? tensor_of({9, 5})
                        : random.one_in(2) ? tensor_of({0, 5})
                                           : tensor_of({1, 1ull << 40}));
      tiles += has_tiles ? 4 : 0;
    }
    expect_walks(tensors, squares, tiles);
  }
}

TEST_F(tile_walk, every_rank) {
  random_source random(5);
  for (std::uint32_t rank = 1; rank <= max_rank; ++rank) {
    SCOPED_TRACE(rank);
    tile_shape shape{rank, {}};
    for (std::uint32_t& box : shape.box_dim) box = 1 + random.below32(9);
    std::vector<map_patch> tensors(300, tensor_of({}));
    std::uint64_t tiles = 0;
    for (map_patch& tensor : tensors) {
      std::uint64_t product = 1;
      for (std::uint32_t axis = 0; axis < rank; ++axis) {
        tensor.global_dim[axis] = random.below(rank == 1 ? 4000 : 30);
        product *= (tensor.global_dim[axis] + shape.box_dim[axis] - 1) / shape.box_dim[axis];
      }
      tiles += product;
    }
    expect_walks(tensors, shape, tiles);
  }
}

/// Other extents at each replay: `round` seeds them, some rounds have only empty tensors, some one
/// huge one.
__global__ void change_extents(map_patch* extents, std::uint64_t count, std::uint32_t* round) {
  const std::uint32_t seed = *round;
  __syncthreads();
  for (std::uint64_t i = threadIdx.x; i < count; i += blockDim.x) {
    std::uint32_t x = seed * 2654435761u + static_cast<std::uint32_t>(i) * 2246822519u;
    x = (x ^ (x >> 15)) * 2246822519u;
    x ^= x >> 13;
    extents[i].global_dim[0] = seed % 7 == 3 ? 0 : x % 50;
    extents[i].global_dim[1] = seed % 5 == 2 && i == seed % count ? 12'000 : (x >> 8) % 20;
  }
  if (threadIdx.x == 0) *round = seed + 1;
}

/// Counts as errors the tiles that were not visited once, and visits beyond them; clears them for
/// the next round.
__global__ void check_visits(const __grid_constant__ walk_job job, std::uint64_t most_tiles) {
  const std::uint64_t tiles = job.tile_ends[job.count - 1];
  for (std::uint64_t g = blockIdx.x * blockDim.x + threadIdx.x; g < most_tiles; g += gridDim.x * blockDim.x) {
    if (job.visits[g] != (g < tiles ? 1 : 0)) atomicAdd(job.errors, 1u);
    job.visits[g] = 0;
  }
  if (job.counter->taken != 0 || tiles > most_tiles) atomicAdd(job.errors, 1u);
}

TEST_F(tile_walk, a_graph_replays_with_other_shapes) {
  constexpr std::uint64_t most_tiles = 100'000;
  constexpr std::uint64_t tensors = 500;
  const walked_batch batch(std::vector<map_patch>(tensors, tensor_of({})), squares, most_tiles, 300);
  const device_array<std::uint32_t> round(std::vector<std::uint32_t>{0});
  TMAP_ASSERT_CUDA(cudaMemset(batch.visits.data(), 0, batch.visits.bytes()));
  cudaStream_t stream = nullptr;
  TMAP_ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (const sharing how : all_sharings) {
    SCOPED_TRACE(static_cast<int>(how));
    TMAP_ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    change_extents<<<1, 256, 0, stream>>>(batch.extents.data(), tensors, round.data());
    EXPECT_EQ(batch.count_tiles(stream), cudaSuccess);
    launch_visits(batch.job(), how, how != sharing::interleaved, stream);
    check_visits<<<32, 256, 0, stream>>>(batch.job(), most_tiles);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    TMAP_ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
    TMAP_ASSERT_CUDA(cudaGraphInstantiate(&replay, graph, 0));
    for (std::uint64_t i = 0; i < scaled(1000); ++i) TMAP_ASSERT_CUDA(cudaGraphLaunch(replay, stream));
    TMAP_ASSERT_CUDA(cudaStreamSynchronize(stream));
    EXPECT_EQ(batch.errors.download()[0], 0u);
    TMAP_ASSERT_CUDA(cudaGraphExecDestroy(replay));
    TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
  }
  EXPECT_EQ(round.download()[0], std::size(all_sharings) * scaled(1000));
  TMAP_ASSERT_CUDA(cudaStreamDestroy(stream));
}

/// As many visits as tiles, but not one each: the check must see it.
TEST_F(tile_walk, the_check_sees_a_tile_visited_twice) {
  const walked_batch batch({tensor_of({64})}, lines, 4, 4);
  TMAP_ASSERT_CUDA(batch.count_tiles(nullptr));
  batch.visits.upload({1, 2, 0, 1});
  check_visits<<<1, 32>>>(batch.job(), 4);
  EXPECT_EQ(batch.errors.download()[0], 2u);
}

}  // namespace
}  // namespace tmap::testing::tile_walk_cases
