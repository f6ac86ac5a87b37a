// SPDX-License-Identifier: Apache-2.0
// Tests that threads, warps and clusters that work at different speeds take every item of a queue
// once. Every block of a cluster must get the same items. The counter must be 0 again at the end.
#include <tmap/device/cluster_queue.cuh>
#include <tmap/device/work_queue.cuh>

#include <optional>

#include "device/gpu_fixture.hpp"

namespace tmap::testing::work_queue_cases {
namespace {

struct queue_job {
  device::queue_counter* counter;
  const std::uint32_t* items;  // the number of items, in device memory
  std::uint32_t* taken;        // counts how often each item was taken
  std::uint32_t* errors;
};

/// Makes some items take a hundred times as long as others.
__device__ void work_on(std::uint32_t item) {
  const std::uint32_t mixed = item * 2654435761u;
  __nanosleep(mixed % 16 == 0 ? 4000 : mixed % 40);
}

__device__ void count(const queue_job& job, std::uint32_t item) {
  if (item < *job.items) {
    atomicAdd(&job.taken[item], 1u);
  } else {
    atomicAdd(job.errors, 1u);
  }
}

template <device::asks When>
__global__ void thread_kernel(queue_job job) {
  const std::uint32_t worker = blockIdx.x * blockDim.x + threadIdx.x;
  device::work_queue queue(job.counter, *job.items, worker, gridDim.x * blockDim.x, When);
  for (std::uint32_t item = queue.take(); item != device::no_item; item = queue.take()) {
    count(job, item);
    work_on(item);
  }
}

template <device::asks When>
__global__ void warp_kernel(queue_job job) {
  const std::uint32_t warps = blockDim.x / 32;
  device::work_queue queue(job.counter, *job.items, blockIdx.x * warps + threadIdx.x / 32, gridDim.x * warps, When);
  for (std::uint32_t item = queue.take_warp(); item != device::no_item; item = queue.take_warp()) {
    if (item != __shfl_sync(~0u, item, 31)) atomicAdd(job.errors, 1u);
    if (threadIdx.x % 32 == 13) count(job, item);
    work_on(item);
  }
}

/// Each warp of each block of a cluster takes every item of the cluster, at its own speed.
template <device::asks When>
__global__ void cluster_kernel(queue_job job) {
  __shared__ device::cluster_mailbox mailbox;
  const std::uint32_t warps = blockDim.x / 32;
  if (threadIdx.x == 0) mailbox.init(warps);
  device::sync_cluster();
  device::cluster_queue queue(mailbox, job.counter, *job.items, threadIdx.x / 32, When);
  for (std::uint32_t item = queue.take_warp(); item != device::no_item; item = queue.take_warp()) {
    if (item != __shfl_sync(~0u, item, 31)) atomicAdd(job.errors, 1u);
    if (threadIdx.x % 32 == 5) count(job, item);
    work_on(item * 7 + blockIdx.x * 31 + threadIdx.x / 32);
  }
}

/// Checks and clears the counts of one round, and chooses the number of items of the next one.
__global__ void next_round(queue_job job, std::uint32_t* items, std::uint32_t most, std::uint32_t expected,
                           std::uint32_t* round) {
  const std::uint32_t had = *items;
  for (std::uint32_t i = threadIdx.x; i < most; i += blockDim.x) {
    if (job.taken[i] != (i < had ? expected : 0)) atomicAdd(job.errors, 1u);
    job.taken[i] = 0;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (job.counter->taken != 0) atomicAdd(job.errors, 1u);
  *round += 1;
  *items = *round % 9 == 0 ? 0 : (*round * 2654435761u >> 8) % (most + 1);
}

struct launch_shape {
  std::uint32_t blocks;
  std::uint32_t threads;
  std::uint32_t cluster;
};

cudaError_t launch(void (*kernel)(queue_job), const launch_shape& shape, const queue_job& job, cudaStream_t stream) {
  cudaLaunchConfig_t config{};
  config.gridDim = shape.blocks;
  config.blockDim = shape.threads;
  config.stream = stream;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = shape.cluster;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  config.attrs = &cluster;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, job);
}

class work_queue : public gpu_test {
 protected:
  queue_job job() const {
    return {reinterpret_cast<device::queue_counter*>(counter_->data()), items_->data(), taken_->data(),
            errors_->data()};
  }

  /// Expects each item to be taken `expected` times, in two runs on the same counter.
  void expect_all_taken(void (*kernel)(queue_job), const launch_shape& shape, std::uint32_t expected) {
    for (const std::uint32_t items : {0u, 1u, 2u, shape.blocks - 1, shape.blocks, shape.blocks + 1, 777u, most_items}) {
      SCOPED_TRACE(::testing::Message() << items << " items, " << shape.blocks << " blocks of " << shape.threads
                                        << " in clusters of " << shape.cluster);
      items_->upload({items});
      for (int round = 0; round < 2; ++round) {
        TMAP_ASSERT_CUDA(cudaMemset(taken_->data(), 0, taken_->bytes()));
        TMAP_ASSERT_CUDA(launch(kernel, shape, job(), nullptr));
        const std::vector<std::uint32_t> taken = taken_->download();
        for (std::uint32_t i = 0; i < most_items; ++i) ASSERT_EQ(taken[i], i < items ? expected : 0) << "item " << i;
        ASSERT_EQ(counter_->download()[0], 0u);
        ASSERT_EQ(errors_->download()[0], 0u);
      }
    }
  }

  /// Replays one graph 1,000 times, each time with another number of items.
  void expect_replays(void (*kernel)(queue_job), const launch_shape& shape, std::uint32_t expected) {
    TMAP_ASSERT_CUDA(cudaMemset(taken_->data(), 0, taken_->bytes()));
    items_->upload({0});
    const device_array<std::uint32_t> round(std::vector<std::uint32_t>{0});
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    TMAP_ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    TMAP_ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    EXPECT_EQ(launch(kernel, shape, job(), stream), cudaSuccess);
    next_round<<<1, 512, 0, stream>>>(job(), items_->data(), most_items, expected, round.data());
    TMAP_ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
    TMAP_ASSERT_CUDA(cudaGraphInstantiate(&replay, graph, 0));
    for (std::uint64_t i = 0; i < scaled(1000); ++i) TMAP_ASSERT_CUDA(cudaGraphLaunch(replay, stream));
    TMAP_ASSERT_CUDA(cudaStreamSynchronize(stream));
    EXPECT_EQ(errors_->download()[0], 0u);
    EXPECT_EQ(round.download()[0], scaled(1000));
    TMAP_ASSERT_CUDA(cudaGraphExecDestroy(replay));
    TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
    TMAP_ASSERT_CUDA(cudaStreamDestroy(stream));
  }

  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    counter_.emplace(std::vector<std::uint32_t>{0});
    errors_.emplace(std::vector<std::uint32_t>{0});
    items_.emplace(1);
    taken_.emplace(most_items);
  }

  static constexpr std::uint32_t most_items = 5'000;
  std::optional<device_array<std::uint32_t>> counter_;
  std::optional<device_array<std::uint32_t>> items_;
  std::optional<device_array<std::uint32_t>> taken_;
  std::optional<device_array<std::uint32_t>> errors_;
};

using device::asks;

TEST_F(work_queue, threads_take_each_item_once) {
  expect_all_taken(thread_kernel<asks::early>, {40, 1, 1}, 1);
  expect_all_taken(thread_kernel<asks::early>, {13, 64, 1}, 1);
  expect_all_taken(thread_kernel<asks::late>, {40, 1, 1}, 1);
  expect_all_taken(thread_kernel<asks::late>, {13, 64, 1}, 1);
}

TEST_F(work_queue, warps_take_each_item_once) {
  expect_all_taken(warp_kernel<asks::early>, {132, 32, 1}, 1);
  expect_all_taken(warp_kernel<asks::early>, {17, 256, 1}, 1);
  expect_all_taken(warp_kernel<asks::late>, {132, 32, 1}, 1);
  expect_all_taken(warp_kernel<asks::late>, {17, 256, 1}, 1);
}

TEST_F(work_queue, every_block_of_a_cluster_gets_each_item_once) {
  for (const std::uint32_t cluster : {1u, 2u, 4u, 8u}) {
    for (const std::uint32_t warps : {1u, 3u, 8u}) {
      expect_all_taken(cluster_kernel<asks::early>, {8 * cluster, 32 * warps, cluster}, cluster * warps);
      expect_all_taken(cluster_kernel<asks::late>, {8 * cluster, 32 * warps, cluster}, cluster * warps);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(work_queue, graphs_replay) {
  expect_replays(thread_kernel<asks::early>, {40, 32, 1}, 1);
  expect_replays(warp_kernel<asks::early>, {132, 64, 1}, 1);
  expect_replays(thread_kernel<asks::late>, {40, 32, 1}, 1);
  expect_replays(warp_kernel<asks::late>, {132, 64, 1}, 1);
  for (const std::uint32_t cluster : {1u, 2u, 4u, 8u}) {
    expect_replays(cluster_kernel<asks::early>, {64, 64, cluster}, cluster * 2);
    expect_replays(cluster_kernel<asks::late>, {64, 64, cluster}, cluster * 2);
  }
}

}  // namespace
}  // namespace tmap::testing::work_queue_cases
