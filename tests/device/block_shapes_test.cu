// SPDX-License-Identifier: Apache-2.0
// Tests that calls by a warp do the same in blocks of every shape. A thread's lane is not always
// its position along x.
#include <tmap/device/batch_writer.cuh>
#include <tmap/device/cluster_queue.cuh>
#include <tmap/device/patch_source.cuh>
#include <tmap/device/stage_ring.cuh>
#include <tmap/device/tensor_search.cuh>
#include <tmap/device/work_queue.cuh>
#include <tmap/encode_batch.hpp>

#include <cuda/ptx>

#include <optional>

#include "device/gpu_fixture.hpp"
#include "support/random_patch.hpp"
#include "support/random_spec.hpp"

namespace tmap::testing::block_shapes_cases {
namespace {

const dim3 tried_shapes[] = {dim3(96), dim3(48, 2), dim3(8, 8), dim3(16, 2, 3), dim3(1, 64), dim3(24, 4)};
constexpr std::uint32_t most_warps = 3;

std::uint32_t warps_of(const dim3& block) {
  return block.x * block.y * block.z / 32;
}

__device__ std::uint32_t thread_of_block() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
__device__ std::uint32_t warp_of_block() {
  return thread_of_block() / 32;
}
__device__ std::uint32_t warps_of_block() {
  return blockDim.x * blockDim.y * blockDim.z / 32;
}

__global__ void compare_lanes(std::uint32_t* wrong) {
  if (device::lane_index() != thread_of_block() % 32) atomicAdd(wrong, 1u);
}

/// Each warp releases a stage that one more release would empty, and then thread 0 releases it.
__global__ void release_once(std::uint32_t* wrong) {
  __shared__ device::ring_barriers<1> barriers;
  if (thread_of_block() == 0) barriers.init(1, warps_of_block() + 1);
  __syncthreads();
  device::ring_consumer<1>(barriers).release_warp();
  __syncthreads();
  if (thread_of_block() != 0) return;
  const auto is_empty = [&] { return cuda::ptx::mbarrier_test_wait_parity(barriers.empty[0].word(), 0); };
  if (is_empty()) atomicAdd(wrong, 1u);
  barriers.empty[0].arrive();
  if (!is_empty()) atomicAdd(wrong, 1u);
}

struct queue_job {
  device::queue_counter* counter;
  std::uint32_t items;
  std::uint32_t* taken;  // counts how often each item was taken
  std::uint32_t* wrong;
};

/// Takes as many items as there are, and once more to see the end.
template <class Queue>
__device__ void take_all(Queue& queue, const queue_job& job) {
  std::uint32_t item = 0;
  for (std::uint32_t turn = 0; turn <= job.items && item != device::no_item; ++turn) {
    item = queue.take_warp();
    if (item != __shfl_sync(~0u, item, 31)) atomicAdd(job.wrong, 1u);
    if (item < job.items && device::lane_index() == 13) atomicAdd(&job.taken[item], 1u);
  }
  if (item != device::no_item) atomicAdd(job.wrong, 1u);
}

template <device::asks When>
__global__ void take_from_queue(queue_job job) {
  const std::uint32_t worker = blockIdx.x * warps_of_block() + warp_of_block();
  device::work_queue queue(job.counter, job.items, worker, gridDim.x * warps_of_block(), When);
  take_all(queue, job);
}

template <device::asks When>
__global__ void __cluster_dims__(2) take_from_cluster_queue(queue_job job) {
  __shared__ device::cluster_mailbox mailbox;
  if (thread_of_block() == 0) mailbox.init(warps_of_block());
  device::sync_cluster();
  device::cluster_queue queue(mailbox, job.counter, job.items, warp_of_block(), When);
  take_all(queue, job);
}

/// Looks for the tensors of the tiles. Tensor `i` ends before tile `ends[i]`, and the warps share
/// the tiles.
__global__ void find_tensors(const std::uint64_t* ends, std::uint64_t tensors, std::uint32_t* wrong) {
  const std::uint64_t last = tensors - 1;
  for (std::uint64_t g = warp_of_block(); g < ends[last]; g += warps_of_block()) {
    const std::uint64_t expected = device::find_tensor(ends, g, 0, last);
    const bool is_right = device::find_tensor_warp(ends, g, 0, last) == expected &&
                          device::find_tensor_near_warp(ends, g, 0, last) == expected &&
                          device::find_tensor_near_warp(ends, g, expected, last) == expected;
    if (!is_right) atomicAdd(wrong, 1u);
  }
}

__device__ device::guard_page page;

/// Encodes 32 maps per warp, and fewer in the last warp.
__global__ void encode_maps(const __grid_constant__ map_template base, const map_patch* patches,
                            map_batch_writer writer, batch_header* header) {
  __shared__ device::warp_stage stages[most_warps];
  const std::uint32_t first = warp_of_block() * 32;
  const std::uint32_t left = writer.count - first;
  const device::map_guard guard{.page = &page, .statuses = writer.statuses, .header = header};
  device::encode_warp(base, device::patch_array_reader({patches}, base.fields), writer, first, left < 32 ? left : 32,
                      stages[warp_of_block()], guard);
}

struct encoded_maps {
  std::vector<tensor_map> slots;
  std::vector<map_status> statuses;
  batch_header header;
};

encoded_maps encoded(const map_template& base, const std::vector<map_patch>& patches, const dim3& block) {
  const device_array<map_patch> sources(patches);
  const device_array<tensor_map> slots(patches.size());
  const device_array<map_status> statuses(patches.size());
  const device_array<batch_header> header(std::vector<batch_header>(1));
  const map_batch_writer writer{slots.data(), statuses.data(), static_cast<std::uint32_t>(patches.size())};
  encode_maps<<<1, block>>>(base, sources.data(), writer, header.data());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  return {slots.download(), statuses.download(), header.download()[0]};
}

/// Makes maps of one tensor, some of them empty and some bad.
std::vector<map_patch> mixed_patches(const tensor_spec& spec, std::uint32_t count) {
  std::vector<map_patch> patches(count, patch_of(spec));
  for (std::uint32_t i = 0; i < count; ++i) {
    patches[i].global_address += std::uint64_t{4096} * i;
    if (i % 7 == 3) patches[i].global_dim[1] = 0;
    if (i % 5 == 2) patches[i].global_address += 8;
  }
  return patches;
}

class block_shapes : public gpu_test {
 protected:
  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    wrong_.emplace(std::vector<std::uint32_t>{0});
  }

  /// Calls `check(block)` for each shape. No thread of the block may have found a fault.
  template <class Check>
  void for_each_shape(const Check& check) {
    for (const dim3& block : tried_shapes) {
      SCOPED_TRACE(::testing::Message() << "blocks of " << block.x << " x " << block.y << " x " << block.z);
      check(block);
      TMAP_ASSERT_CUDA(cudaGetLastError());
      ASSERT_EQ(wrong_->download()[0], 0u);
    }
  }

  /// Expects each item to go to `expected(block)` warps.
  template <class Expected>
  void expect_all_taken(void (*kernel)(queue_job), const Expected& expected) {
    constexpr std::uint32_t items = 500;
    const device_array<std::uint32_t> counter(std::vector<std::uint32_t>{0});
    for_each_shape([&](const dim3& block) {
      const device_array<std::uint32_t> taken(std::vector<std::uint32_t>(items, 0));
      kernel<<<4, block>>>(
          {reinterpret_cast<device::queue_counter*>(counter.data()), items, taken.data(), wrong_->data()});
      EXPECT_EQ(taken.download(), std::vector<std::uint32_t>(items, expected(block)));
      EXPECT_EQ(counter.download()[0], 0u);
    });
  }

  std::optional<device_array<std::uint32_t>> wrong_;
};

TEST_F(block_shapes, lanes_are_counted_along_x_then_y_then_z) {
  for_each_shape([&](const dim3& block) { compare_lanes<<<2, block>>>(wrong_->data()); });
}

TEST_F(block_shapes, a_warp_releases_a_stage_once) {
  for_each_shape([&](const dim3& block) { release_once<<<1, block>>>(wrong_->data()); });
}

TEST_F(block_shapes, warps_take_each_item_once) {
  expect_all_taken(take_from_queue<device::asks::early>, [](const dim3&) { return 1u; });
  expect_all_taken(take_from_queue<device::asks::late>, [](const dim3&) { return 1u; });
}

TEST_F(block_shapes, every_warp_of_a_cluster_gets_each_item_once) {
  const auto warps_of_cluster = [](const dim3& block) { return 2 * warps_of(block); };
  expect_all_taken(take_from_cluster_queue<device::asks::early>, warps_of_cluster);
  expect_all_taken(take_from_cluster_queue<device::asks::late>, warps_of_cluster);
}

TEST_F(block_shapes, warps_find_tensors) {
  random_source random(67);
  std::vector<std::uint64_t> ends;
  for (std::uint64_t end = 0; ends.size() < 3'000;) ends.push_back(end += random.one_in(3) ? random.below(5) : 0);
  ends.push_back(ends.back() + 1);
  const device_array<std::uint64_t> of_tensors(ends);
  for_each_shape(
      [&](const dim3& block) { find_tensors<<<1, block>>>(of_tensors.data(), ends.size(), wrong_->data()); });
}

TEST_F(block_shapes, warps_encode_the_same_maps) {
  const std::uint64_t dims[] = {64, 32};
  const std::uint32_t box[] = {16, 8};
  const tensor_spec spec = packed_spec(element_type::f32, 1 << 20, dims, box);
  const result<map_template> zeroed = make_zeroed_template(spec, patch_extents(2));
  const result<map_template> made = make_template(spec, patch_extents(2));
  TMAP_ASSERT_OK(zeroed);
  TMAP_ASSERT_OK(made);
  for (const map_template& base : {*zeroed, *made}) {
    for_each_shape([&](const dim3& block) {
      const std::vector<map_patch> patches = mixed_patches(spec, warps_of(block) * 32 - 5);
      const encoded_maps expected = encoded(base, patches, dim3(warps_of(block) * 32));
      const encoded_maps got = encoded(base, patches, block);
      EXPECT_TRUE(got.slots == expected.slots);
      EXPECT_EQ(std::memcmp(got.statuses.data(), expected.statuses.data(), patches.size() * sizeof(map_status)), 0);
      EXPECT_EQ(std::memcmp(&got.header, &expected.header, sizeof(batch_header)), 0);
      EXPECT_GT(got.header.bad_count, 0u);
      EXPECT_GT(got.header.empty_count, 0u);
    });
  }
}

}  // namespace
}  // namespace tmap::testing::block_shapes_cases
