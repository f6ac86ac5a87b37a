// SPDX-License-Identifier: Apache-2.0
// Tests what blocks of a cluster write to each other's shared memory: multicast loads, bulk copies,
// stores from registers, and arrivals at each other's barriers.
#include <tmap/device/bulk_copy.cuh>
#include <tmap/device/remote_store.cuh>

#include <type_traits>

#include "device/toolkit_maps.cuh"

namespace tmap::testing::toolkit_cluster_cases {
namespace {

constexpr std::uint32_t cluster = 4;
constexpr std::uint32_t clusters = 3;
constexpr std::uint32_t room = 2048;  // bytes of each block's shared memory

/// Copies a block's shared memory in and out.
__device__ void bring_image(unsigned char* shared, const unsigned char* images) {
  for (std::uint32_t i = threadIdx.x; i < room; i += blockDim.x) shared[i] = images[blockIdx.x * room + i];
  device::fence_shared_writes();
}
__device__ void take_image(const unsigned char* shared, unsigned char* images) {
  for (std::uint32_t i = threadIdx.x; i < room; i += blockDim.x) images[blockIdx.x * room + i] = shared[i];
}

constexpr std::uint32_t box_width = 32;
constexpr std::uint32_t box_height = 4;
constexpr std::uint32_t box_bytes = box_width * box_height * 4;

/// Block `issuer` of cluster i loads tile i into the blocks of the mask.
struct multicast_use {
  std::uint32_t issuer;
  std::uint16_t blocks;
  unsigned char* images;

  __device__ void operator()(device::acquired_map map) const {
    alignas(128) __shared__ unsigned char tile[room];
    __shared__ device::tile_barrier barrier;
    bring_image(tile, images);
    const bool receives = (blocks >> device::block_of_cluster() & 1) != 0;
    if (threadIdx.x == 0) {
      barrier.init(1);
      device::fence_barrier_init();
      if (receives) barrier.arrive_expect(box_bytes);
    }
    device::sync_cluster();
    if (threadIdx.x == 0 && device::block_of_cluster() == issuer) {
      pause();
      const std::int32_t at[] = {0, static_cast<std::int32_t>(blockIdx.x / cluster * box_height)};
      device::load_tile_multicast(tile, map, at, barrier, blocks);
    }
    if (receives) barrier.wait_cluster(0), take_image(tile, images);
    device::sync_cluster();
    if (!receives) take_image(tile, images);
  }
};

class toolkit_cluster : public toolkit {
 protected:
  static constexpr launch_shape shape{clusters * cluster, 64, cluster};
  bytes images_ = random_bytes(clusters * cluster * room, 11);
};

TEST_F(toolkit_cluster, multicast_reaches_the_blocks_of_its_mask_and_no_other) {
  const bytes tensor = random_bytes(clusters * box_bytes, 12);
  const device_array<unsigned char> there(tensor);
  const std::uint64_t dims[] = {box_width, clusters * box_height};
  const std::uint32_t box[] = {box_width, box_height};
  const tensor_spec spec = packed_spec(element_type::u32, there.address(), dims, box);
  for (const map_place place : map_places) {
    for (const std::uint16_t blocks : {1, 2, 8, 6, 11, 15}) {
      SCOPED_TRACE(blocks);
      const device_array<unsigned char> images(images_);
      use_map(place, spec, shape, multicast_use{blocks % cluster, blocks, images.data()});
      bytes expected = images_;
      for (std::uint32_t block = 0; block < clusters * cluster; ++block) {
        if ((blocks >> block % cluster & 1) == 0) continue;
        std::copy_n(tensor.begin() + block / cluster * box_bytes, box_bytes, expected.begin() + block * room);
      }
      EXPECT_TRUE(same_bytes(images.download(), expected));
    }
  }
}

constexpr std::uint32_t sent_from = 96;
constexpr std::uint32_t sent_to = 1040;

/// Every block sends `count` bytes to the block two further on.
__global__ void send(std::uint32_t count, unsigned char* images) {
  alignas(16) __shared__ unsigned char shared[room];
  __shared__ device::tile_barrier barrier;
  bring_image(shared, images);
  if (threadIdx.x == 0) barrier.init(1), device::fence_barrier_init(), barrier.arrive_expect(count);
  device::sync_cluster();
  if (threadIdx.x == 0) {
    if (device::block_of_cluster() == 0) pause();
    const std::uint32_t to = (device::block_of_cluster() + 2) % device::blocks_of_cluster();
    device::send_bytes(device::shared_of_block(to, shared + sent_to), shared + sent_from, count,
                       device::remote_barrier(to, barrier));
  }
  barrier.wait_cluster(0);
  take_image(shared, images);
  device::sync_cluster();
}

TEST_F(toolkit_cluster, bytes_sent_from_block_to_block) {
  for (const std::uint32_t count : {16u, 48u, 928u}) {
    SCOPED_TRACE(count);
    const device_array<unsigned char> images(images_);
    launch(shape, send, count, images.data());
    bytes expected = images_;
    for (std::uint32_t block = 0; block < clusters * cluster; ++block) {
      const std::uint32_t to = block / cluster * cluster + (block + 2) % cluster;
      std::copy_n(images_.begin() + block * room + sent_from, count, expected.begin() + to * room + sent_to);
    }
    EXPECT_TRUE(same_bytes(images.download(), expected));
  }
}

/// Returns a value that names its thread in each byte.
template <class Word>
struct words_of_value;
template <>
struct words_of_value<std::uint32_t> {
  static __host__ __device__ std::uint32_t make(std::uint32_t thread) { return 0x9e3779b9u * (thread + 1); }
};
template <>
struct words_of_value<double> {
  static __host__ __device__ double make(std::uint32_t thread) { return 1.0 / (thread + 3.0); }
};
template <>
struct words_of_value<uint4> {
  static __host__ __device__ uint4 make(std::uint32_t thread) {
    return {thread, ~thread, 0x9e3779b9u * thread, 0x85ebca6bu ^ thread};
  }
};

constexpr std::uint32_t stored_at = 512;

/// Every thread stores a value into the next block.
template <class T>
__global__ void store_values(unsigned char* images) {
  alignas(16) __shared__ unsigned char shared[room];
  __shared__ device::tile_barrier barrier;
  bring_image(shared, images);
  const auto count = static_cast<std::uint32_t>(blockDim.x * sizeof(T));
  if (threadIdx.x == 0) barrier.init(1), device::fence_barrier_init(), barrier.arrive_expect(count);
  device::sync_cluster();
  if (device::block_of_cluster() == 0) pause();
  const std::uint32_t to = (device::block_of_cluster() + 1) % device::blocks_of_cluster();
  T* const mine = reinterpret_cast<T*>(shared + stored_at) + threadIdx.x;
  const T value = words_of_value<T>::make(blockIdx.x * blockDim.x + threadIdx.x);
  device::store_async(device::shared_of_block(to, mine), value, device::remote_barrier(to, barrier));
  barrier.wait_cluster(0);
  take_image(shared, images);
  device::sync_cluster();
}

template <class T>
void expect_stored(const launch_shape& shape, const bytes& before) {
  const device_array<unsigned char> images(before);
  launch(shape, store_values<T>, images.data());
  bytes expected = before;
  for (std::uint32_t i = 0; i < shape.blocks * shape.threads; ++i) {
    const std::uint32_t block = i / shape.threads;
    const std::uint32_t to = block / cluster * cluster + (block + 1) % cluster;
    const T value = words_of_value<T>::make(i);
    std::memcpy(&expected[to * room + stored_at + i % shape.threads * sizeof(T)], &value, sizeof(T));
  }
  EXPECT_TRUE(same_bytes(images.download(), expected)) << sizeof(T);
}

TEST_F(toolkit_cluster, values_stored_from_registers) {
  expect_stored<std::uint32_t>(shape, images_);
  expect_stored<double>(shape, images_);
  expect_stored<uint4>(shape, images_);
}

/// Every thread writes its number into block 0 by an ordinary store and arrives there. Block 0
/// writes out what it received.
__global__ void arrive_remotely(std::uint32_t* result) {
  __shared__ std::uint32_t numbers[cluster * 64];
  __shared__ device::tile_barrier barrier;
  for (std::uint32_t i = threadIdx.x; i < cluster * blockDim.x; i += blockDim.x) numbers[i] = ~0u;
  if (threadIdx.x == 0) barrier.init(cluster * blockDim.x), device::fence_barrier_init();
  device::sync_cluster();
  if (device::block_of_cluster() != 0) pause();
  const std::uint32_t place = device::block_of_cluster() * blockDim.x + threadIdx.x;
  *device::shared_of_block(0, &numbers[place]) = blockIdx.x * blockDim.x + threadIdx.x;
  device::remote_barrier(0, barrier).arrive();
  if (device::block_of_cluster() == 0) {
    barrier.wait_cluster(0);
    for (std::uint32_t i = threadIdx.x; i < cluster * blockDim.x; i += blockDim.x) {
      result[blockIdx.x * blockDim.x + i] = numbers[i];
    }
  }
}

TEST_F(toolkit_cluster, arrivals_from_other_blocks) {
  const device_array<std::uint32_t> result(clusters * cluster * 64);
  launch(shape, arrive_remotely, result.data());
  std::vector<std::uint32_t> expected(result.size());
  for (std::uint32_t i = 0; i < expected.size(); ++i) expected[i] = i;
  EXPECT_EQ(result.download(), expected);
}

/// The last block announces bytes on the first block's barrier and then sends them there.
__global__ void announce_remotely(unsigned char* images) {
  alignas(16) __shared__ unsigned char shared[room];
  __shared__ device::tile_barrier barrier;
  bring_image(shared, images);
  if (threadIdx.x == 0) barrier.init(1), device::fence_barrier_init();
  device::sync_cluster();
  if (threadIdx.x == 0 && device::block_of_cluster() == cluster - 1) {
    pause();
    device::remote_barrier first(0, barrier);
    first.arrive_expect(256);
    device::send_bytes(device::shared_of_block(0, shared + sent_to), shared + sent_from, 256, first);
  }
  if (device::block_of_cluster() == 0) barrier.wait_cluster(0);
  take_image(shared, images);
  device::sync_cluster();
}

TEST_F(toolkit_cluster, bytes_announced_by_the_sender) {
  const device_array<unsigned char> images(images_);
  launch(shape, announce_remotely, images.data());
  bytes expected = images_;
  for (std::uint32_t first = 0; first < clusters * cluster; first += cluster) {
    std::copy_n(images_.begin() + (first + cluster - 1) * room + sent_from, 256,
                expected.begin() + first * room + sent_to);
  }
  EXPECT_TRUE(same_bytes(images.download(), expected));
}

static_assert(!std::is_convertible_v<device::tile_barrier&, device::remote_barrier>, "a rank is always named");

}  // namespace
}  // namespace tmap::testing::toolkit_cluster_cases
