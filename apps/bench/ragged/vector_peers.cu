// SPDX-License-Identifier: Apache-2.0
#include <tmap/device/async_copy.cuh>
#include <tmap/device/bulk_copy.cuh>
#include <tmap/device/stage_ring.cuh>

#include <cfloat>
#include <cstdint>

#include "apps/bench/ragged/vector_peers.hpp"
#include "apps/support/device.hpp"
#include "apps/support/require.hpp"

namespace tmap::apps::bench {
namespace {

constexpr std::uint32_t threads = 256;
constexpr std::uint32_t tile = 2048;
constexpr std::uint32_t halo = most_peer_radius;  // on each side, a multiple of 4: tiles begin at multiples of 16 bytes

/// Processes one tile in shared memory. `x` points to the tile's first element; the halo lies on
/// both sides of the tile.
struct saxpy_step {
  static constexpr bool reads_y = true;
  static constexpr std::uint32_t reach = 0;
  float a;
  __device__ float operator()(const float* x, const float* y, std::uint32_t i, std::uint64_t, std::uint64_t) const {
    return fmaf(a, x[i], y[i]);
  }
};
struct pool_step {
  static constexpr bool reads_y = false;
  static constexpr std::uint32_t reach = halo;
  std::uint32_t radius;
  __device__ float operator()(const float* x, const float*, std::uint32_t i, std::uint64_t first,
                              std::uint64_t n) const {
    const std::uint64_t at = first + i;
    const int low = at < radius ? -static_cast<int>(at) : -static_cast<int>(radius);
    const int high = n - 1 - at < radius ? static_cast<int>(n - 1 - at) : static_cast<int>(radius);
    float top = -FLT_MAX;
    for (int k = low; k <= high; ++k) top = fmaxf(top, x[static_cast<int>(i) + k]);
    return top;
  }
};

template <class Step>
inline constexpr std::uint32_t x_floats = tile + 2 * Step::reach;
template <class Step>
inline constexpr std::uint32_t stage_floats = x_floats<Step> + (Step::reads_y ? tile : 0);

/// Describes the part of a tile and its halo that is inside the vector.
struct tile_part {
  std::uint64_t first;
  std::uint64_t begin;
  std::uint32_t count;    ///< elements of x to load, from `begin` on
  std::uint32_t columns;  ///< elements of y

  __device__ tile_part(std::uint64_t index, std::uint64_t n, std::uint32_t reach) : first(index * tile) {
    begin = first < reach ? 0 : first - reach;
    const std::uint64_t end = first + tile + reach < n ? first + tile + reach : n;
    count = static_cast<std::uint32_t>(end - begin);
    columns = n - first < tile ? static_cast<std::uint32_t>(n - first) : tile;
  }
};

__global__ void plain_saxpy_kernel(vector_pair v, float a) {
  const std::uint64_t units = v.n / 4;
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  const std::uint64_t begin = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
#pragma unroll 4
  for (std::uint64_t i = begin; i < units; i += step) {
    const float4 x = reinterpret_cast<const float4*>(v.x)[i];
    const float4 y = reinterpret_cast<const float4*>(v.y)[i];
    reinterpret_cast<float4*>(v.y)[i] = {fmaf(a, x.x, y.x), fmaf(a, x.y, y.y), fmaf(a, x.z, y.z), fmaf(a, x.w, y.w)};
  }
}

__global__ void naive_max_pool_kernel(vector_pair v, pool_step step) {
  __shared__ float x[x_floats<pool_step>];
  const tile_part part(blockIdx.x, v.n, halo);
  for (std::uint32_t i = threadIdx.x; i < part.count; i += threads) {
    x[halo - (part.first - part.begin) + i] = v.x[part.begin + i];
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < part.columns; i += threads) {
    v.y[part.first + i] = step(x + halo, nullptr, i, part.first, v.n);
  }
}

template <class Step>
__device__ void load_async(float* stage, const vector_pair& v, const tile_part& part) {
  const auto load = [](float* to, const float* from, std::uint32_t count) {
    for (std::uint32_t i = threadIdx.x; i < count / 4; i += threads) device::copy_async<16>(to + 4 * i, from + 4 * i);
  };
  load(stage + Step::reach - (part.first - part.begin), v.x + part.begin, part.count);
  if (Step::reads_y) load(stage + x_floats<Step>, v.y + part.first, part.columns);
}

template <class Step>
__device__ void use_tile(const float* stage, const vector_pair& v, const tile_part& part, const Step& step) {
  for (std::uint32_t i = threadIdx.x; i < part.columns; i += threads) {
    v.y[part.first + i] = step(stage + Step::reach, stage + x_floats<Step>, i, part.first, v.n);
  }
}

template <class Step>
__global__ void __launch_bounds__(threads) ldgsts_kernel(vector_pair v, Step step) {
  extern __shared__ float4 memory[];
  float* const stages = reinterpret_cast<float*>(memory);
  const std::uint64_t tiles = (v.n + tile - 1) / tile;
  const auto start = [&](std::uint64_t index, std::uint32_t stage) {
    if (index < tiles) load_async<Step>(stages + stage * stage_floats<Step>, v, tile_part(index, v.n, Step::reach));
    device::commit_copies();
  };
  start(blockIdx.x, 0);
  std::uint32_t stage = 0;
  for (std::uint64_t index = blockIdx.x; index < tiles; index += gridDim.x, stage ^= 1) {
    start(index + gridDim.x, stage ^ 1);
    device::wait_copies<1>();
    __syncthreads();
    use_tile(stages + stage * stage_floats<Step>, v, tile_part(index, v.n, Step::reach), step);
    __syncthreads();
  }
}

constexpr std::uint32_t bulk_stages = 3;

/// One thread fills the ring. The threads that use the few elements after the last unit of 16 bytes
/// load them directly.
template <class Step>
__global__ void __launch_bounds__(threads + 32) bulk_kernel(vector_pair v, Step step) {
  extern __shared__ float4 memory[];
  float* const stages = reinterpret_cast<float*>(memory);
  __shared__ device::ring_barriers<bulk_stages> barriers;
  if (threadIdx.x == 0) barriers.init(bulk_stages, threads);
  __syncthreads();
  const std::uint64_t tiles = (v.n + tile - 1) / tile;
  if (threadIdx.x >= threads) {
    if (threadIdx.x != threads) return;
    device::ring_producer<bulk_stages> producer(barriers);
    for (std::uint64_t index = blockIdx.x; index < tiles; index += gridDim.x) {
      const tile_part part(index, v.n, Step::reach);
      float* const stage = stages + producer.acquire_stage() * stage_floats<Step>;
      const std::uint32_t x_bytes = part.count * sizeof(float);
      const std::uint32_t y_bytes = Step::reads_y ? part.columns * sizeof(float) : 0;
      device::tile_barrier& full = producer.announce(x_bytes + y_bytes);
      if (x_bytes != 0) {
        device::load_bytes(stage + Step::reach - (part.first - part.begin), v.x + part.begin, x_bytes, full);
      }
      if (y_bytes != 0) device::load_bytes(stage + x_floats<Step>, v.y + part.first, y_bytes, full);
    }
    return;
  }
  device::ring_consumer<bulk_stages> consumer(barriers);
  for (std::uint64_t index = blockIdx.x; index < tiles; index += gridDim.x) {
    const tile_part part(index, v.n, Step::reach);
    use_tile(stages + consumer.wait_full() * stage_floats<Step>, v, part, step);
    consumer.release();
  }
}

template <class Step, class Kernel>
void launch(Kernel* kernel, std::uint32_t stages, std::uint32_t block, const vector_pair& v, const Step& step,
            cudaStream_t stream) {
  const std::uint32_t bytes = stages * stage_floats<Step> * sizeof(float);
  require(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
  int blocks = 0;
  require(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, static_cast<int>(block), bytes));
  kernel<<<multiprocessors() * static_cast<std::uint32_t>(blocks), block, bytes, stream>>>(v, step);
  require(cudaGetLastError());
}

}  // namespace

void plain_saxpy(const vector_pair& vectors, float a, cudaStream_t stream) {
  plain_saxpy_kernel<<<multiprocessors() * 8, threads, 0, stream>>>(vectors, a);
  require(cudaGetLastError());
}

void ldgsts_saxpy(const vector_pair& vectors, float a, cudaStream_t stream) {
  launch(ldgsts_kernel<saxpy_step>, 2, threads, vectors, saxpy_step{a}, stream);
}

void bulk_saxpy(const vector_pair& vectors, float a, cudaStream_t stream) {
  launch(bulk_kernel<saxpy_step>, bulk_stages, threads + 32, vectors, saxpy_step{a}, stream);
}

void naive_max_pool(const vector_pair& vectors, std::uint32_t radius, cudaStream_t stream) {
  const auto tiles = static_cast<std::uint32_t>((vectors.n + tile - 1) / tile);
  naive_max_pool_kernel<<<tiles, threads, 0, stream>>>(vectors, pool_step{radius});
  require(cudaGetLastError());
}

void ldgsts_max_pool(const vector_pair& vectors, std::uint32_t radius, cudaStream_t stream) {
  launch(ldgsts_kernel<pool_step>, 2, threads, vectors, pool_step{radius}, stream);
}

void bulk_max_pool(const vector_pair& vectors, std::uint32_t radius, cudaStream_t stream) {
  launch(bulk_kernel<pool_step>, bulk_stages, threads + 32, vectors, pool_step{radius}, stream);
}

}  // namespace tmap::apps::bench
