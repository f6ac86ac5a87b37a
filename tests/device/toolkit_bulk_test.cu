// SPDX-License-Identifier: Apache-2.0
// Tests one-dimensional copies and reductions by the copy engine. Compares every byte of source,
// target and shared memory.
#include <tmap/device/bulk_copy.cuh>
#include <tmap/device/reduce_copy.cuh>
#include <tmap/simulator.hpp>

#include <type_traits>

#include "device/toolkit_maps.cuh"

namespace tmap::testing::toolkit_bulk_cases {
namespace {

enum class bulk_action { load, load_hinted, load_prefetched, store, store_hinted };

constexpr std::uint32_t room = 16384;        // bytes of shared memory
constexpr std::uint32_t shared_offset = 48;  // of the copied bytes
constexpr std::uint32_t global_offset = 80;

struct bulk_job {
  bulk_action action;
  std::uint32_t bytes;
  unsigned char* global;
  unsigned char* image;  ///< shared memory, in and out
};

__device__ void load(const bulk_job& job, unsigned char* shared, device::tile_barrier& barrier) {
  const unsigned char* const from = job.global + global_offset;
  barrier.arrive_expect(job.bytes);
  if (job.action == bulk_action::load_hinted) {
    device::load_bytes(shared, from, job.bytes, barrier, device::make_cache_hint<device::l2_eviction::last>());
  } else {
    if (job.action == bulk_action::load_prefetched) device::prefetch_bytes(from, job.bytes);
    device::load_bytes(shared, from, job.bytes, barrier);
  }
  barrier.wait(0);
}

__device__ void store(const bulk_job& job, const unsigned char* shared) {
  unsigned char* const to = job.global + global_offset;
  if (job.action == bulk_action::store_hinted) {
    device::store_bytes(to, shared, job.bytes, device::make_cache_hint<device::l2_eviction::first>());
  } else {
    device::store_bytes(to, shared, job.bytes);
  }
  device::commit_stores();
  device::wait_stores_written();
}

__global__ void copy_bulk(const bulk_job job) {
  alignas(16) __shared__ unsigned char shared[room];
  __shared__ device::tile_barrier barrier;
  for (std::uint32_t i = threadIdx.x; i < room; i += blockDim.x) shared[i] = job.image[i];
  device::fence_shared_writes();
  if (threadIdx.x == 0) barrier.init(1), device::fence_barrier_init();
  __syncthreads();
  if (threadIdx.x == 0) {
    if (job.action <= bulk_action::load_prefetched) {
      load(job, shared + shared_offset, barrier);
    } else {
      store(job, shared + shared_offset);
    }
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < room; i += blockDim.x) job.image[i] = shared[i];
}

class toolkit_bulk : public gpu_test {
 protected:
  void expect_right(bulk_action action) {
    for (const std::uint32_t count : {16u, 48u, 1024u, 16000u}) {
      SCOPED_TRACE(count);
      bytes memory = random_bytes(room, count);
      bytes image = random_bytes(room, count + 1);
      const device_array<unsigned char> there(memory);
      const device_array<unsigned char> shared(image);
      copy_bulk<<<1, 128>>>({action, count, there.data(), shared.data()});
      TMAP_ASSERT_CUDA(cudaGetLastError());
      if (action <= bulk_action::load_prefetched) {
        std::copy_n(memory.begin() + global_offset, count, image.begin() + shared_offset);
      } else {
        std::copy_n(image.begin() + shared_offset, count, memory.begin() + global_offset);
      }
      EXPECT_TRUE(same_bytes(there.download(), memory));
      EXPECT_TRUE(same_bytes(shared.download(), image));
    }
  }
};

TEST_F(toolkit_bulk, load) {
  expect_right(bulk_action::load);
}
TEST_F(toolkit_bulk, load_with_a_cache_hint) {
  expect_right(bulk_action::load_hinted);
}
TEST_F(toolkit_bulk, load_after_a_prefetch) {
  expect_right(bulk_action::load_prefetched);
}
TEST_F(toolkit_bulk, store) {
  expect_right(bulk_action::store);
}
TEST_F(toolkit_bulk, store_with_a_cache_hint) {
  expect_right(bulk_action::store_hinted);
}

constexpr std::uint32_t reduced = 32;  // elements

template <reduction Operation, class T>
__global__ void reduce_bulk(T* global, const T* brought) {
  alignas(16) __shared__ T shared[reduced];
  for (std::uint32_t i = threadIdx.x; i < reduced; i += blockDim.x) shared[i] = brought[i];
  device::fence_shared_writes();
  __syncthreads();
  if (threadIdx.x != 0) return;
  device::reduce_bytes<Operation>(global, shared, sizeof(shared));
  device::commit_stores();
  device::wait_stores_written();
}

template <reduction Operation, class T>
struct reduce_function {
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) -> decltype(device::reduce_bytes<Operation>(arguments...));
};
template <reduction Operation, class T>
constexpr bool compiles = std::is_invocable_v<reduce_function<Operation, T>, T*, const T*, std::uint32_t>;

/// Returns numbers that every type can hold and add exactly. Integers get any bits.
template <class T>
std::vector<T> some_values(std::uint32_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values(3 * reduced);
  for (T& value : values) {
    if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(random());
    } else {
      value = static_cast<T>(static_cast<float>(random() % 201) - 100.0f);
    }
  }
  return values;
}

template <class T>
bytes bytes_of(const std::vector<T>& values) {
  bytes copied(values.size() * sizeof(T));
  std::memcpy(copied.data(), values.data(), copied.size());
  return copied;
}

/// The reference is the simulator's tile reduction through a map of one row.
template <reduction Operation, class T>
void expect_reduced(std::uint32_t& tried) {
  if constexpr (compiles<Operation, T>) {
    const std::vector<T> before = some_values<T>(5);
    const std::vector<T> brought = some_values<T>(6);
    const device_array<T> there(before);
    const device_array<T> source(brought);
    const std::uint64_t dims[] = {reduced};
    const std::uint32_t box[] = {reduced};
    const auto map = encode(packed_spec(element_of<T>, there.address() + reduced * sizeof(T), dims, box));
    TMAP_ASSERT_OK(map);
    bytes memory = bytes_of(before);
    const bytes tile = bytes_of(brought);
    const simulator::memory_window windows[] = {
        {there.address(), {reinterpret_cast<std::byte*>(memory.data()), memory.size()}}};
    const std::int32_t at[] = {0};
    TMAP_ASSERT_OK(simulator::copy_engine(windows).reduce(
        Operation, *map, at, {reinterpret_cast<const std::byte*>(tile.data()), reduced * sizeof(T)}));
    reduce_bulk<Operation><<<1, 32>>>(there.data() + reduced, static_cast<const T*>(source.data()));
    TMAP_ASSERT_CUDA(cudaGetLastError());
    EXPECT_TRUE(same_bytes(bytes_of(there.download()), memory)) << static_cast<std::uint32_t>(Operation);
    EXPECT_NE(memory, bytes_of(before));
    ++tried;
  }
}

template <class T>
std::uint32_t expect_all_reductions() {
  std::uint32_t tried = 0;
  expect_reduced<reduction::add, T>(tried);
  expect_reduced<reduction::min, T>(tried);
  expect_reduced<reduction::max, T>(tried);
  expect_reduced<reduction::inc, T>(tried);
  expect_reduced<reduction::dec, T>(tried);
  expect_reduced<reduction::bit_and, T>(tried);
  expect_reduced<reduction::bit_or, T>(tried);
  expect_reduced<reduction::bit_xor, T>(tried);
  return tried;
}

class toolkit_bulk_reduce : public gpu_test {};

TEST_F(toolkit_bulk_reduce, integers) {
  EXPECT_EQ(expect_all_reductions<std::uint32_t>(), 8u);
  EXPECT_EQ(expect_all_reductions<std::int32_t>(), 6u);
  EXPECT_EQ(expect_all_reductions<std::uint64_t>(), 6u);
  EXPECT_EQ(expect_all_reductions<std::int64_t>(), 2u);
}

TEST_F(toolkit_bulk_reduce, floating_point) {
  EXPECT_EQ(expect_all_reductions<__half>(), 3u);
  EXPECT_EQ(expect_all_reductions<__nv_bfloat16>(), 3u);
  EXPECT_EQ(expect_all_reductions<float>(), 1u);
  EXPECT_EQ(expect_all_reductions<double>(), 1u);
}

static_assert(!compiles<reduction::add, unsigned char>);
static_assert(!compiles<reduction::add, std::int64_t>);
static_assert(!compiles<reduction::max, float>);

}  // namespace
}  // namespace tmap::testing::toolkit_bulk_cases
