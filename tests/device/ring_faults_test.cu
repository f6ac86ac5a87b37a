// SPDX-License-Identifier: Apache-2.0
// Seeds the three mistakes that users of a ring can make, and expects to see each in the data.
// Waits have a limit here, so that no fault can hang.
#include <tmap/device/bulk_copy.cuh>
#include <tmap/device/stage_ring.cuh>

#include "device/gpu_fixture.hpp"

namespace tmap::testing::ring_faults_cases {
namespace {

enum class fault : std::uint32_t {
  none,
  wrong_parity,   ///< the consumer waits for the previous phase
  early_release,  ///< the consumer returns a stage before it has read it
  missing_drain,  ///< shared memory is reused while stores still read it
};

constexpr std::uint32_t words = 4096;  // of each tile
constexpr std::uint32_t tile_bytes = words * sizeof(std::uint32_t);
constexpr std::uint32_t stages = 4;
constexpr std::uint32_t tiles_of_block = 12;
constexpr std::uint32_t blocks = 132;

/// Gives up after about a millisecond.
__device__ void bounded_wait(device::tile_barrier& barrier, std::uint32_t parity, std::uint32_t* gave_up) {
  const long long start = clock64();
  while (!cuda::ptx::mbarrier_try_wait_parity(barrier.word(), parity)) {
    if (clock64() - start < 2'000'000) continue;
    atomicAdd(gave_up, 1u);
    return;
  }
}

struct fault_job {
  const std::uint32_t* source;
  std::uint32_t* destination;
  std::uint32_t* gave_up;
};

struct fault_ring {
  device::ring_barriers<stages>& barriers;
  std::uint32_t (&tiles)[stages][words];
};

__device__ std::uint64_t begin_of_tile(std::uint32_t k) {
  return (std::uint64_t{blockIdx.x} * tiles_of_block + k) * words;
}

__device__ void load_tiles(const fault_ring& ring, const fault_job& job) {
  device::ring_position at(stages);
  for (std::uint32_t k = 0; k < tiles_of_block; ++k) {
    bounded_wait(ring.barriers.empty[at.stage()], at.parity() ^ 1, job.gave_up);
    device::tile_barrier& full = ring.barriers.full[at.stage()];
    full.arrive_expect(tile_bytes);
    device::load_bytes(ring.tiles[at.stage()], job.source + begin_of_tile(k), tile_bytes, full);
    at.advance();
  }
}

__device__ void store_tiles(const fault_ring& ring, const fault_job& job, fault seeded) {
  device::ring_position at(stages);
  for (std::uint32_t k = 0; k < tiles_of_block; ++k) {
    device::tile_barrier& empty = ring.barriers.empty[at.stage()];
    bounded_wait(ring.barriers.full[at.stage()], at.parity() ^ (seeded == fault::wrong_parity), job.gave_up);
    if (seeded == fault::early_release) {
      empty.arrive();
      __nanosleep(20'000);
    }
    device::store_bytes(job.destination + begin_of_tile(k), ring.tiles[at.stage()], tile_bytes);
    device::commit_stores();
    const bool is_last_round = k + stages >= tiles_of_block;
    if (seeded != fault::missing_drain || !is_last_round) device::wait_stores_read<0>();
    // Otherwise two loads would share a phase, and the kernel would fail or hang.
    if (seeded == fault::wrong_parity) bounded_wait(ring.barriers.full[at.stage()], at.parity(), job.gave_up);
    if (seeded != fault::early_release) empty.arrive();
    at.advance();
  }
  if (seeded != fault::missing_drain) device::wait_stores_written();
}

__global__ void __launch_bounds__(1024) faulty_kernel(fault_job job, fault seeded) {
  extern __shared__ __align__(128) std::uint32_t dynamic[];
  __shared__ device::ring_barriers<stages> barriers;
  const fault_ring ring{barriers, *reinterpret_cast<std::uint32_t(*)[stages][words]>(dynamic)};
  for (std::uint32_t i = threadIdx.x; i < stages * words; i += blockDim.x) dynamic[i] = 0x5a5a5a5a;
  device::fence_shared_writes();
  if (threadIdx.x == 0) barriers.init();
  __syncthreads();
  if (threadIdx.x == 0) load_tiles(ring, job);
  if (threadIdx.x == 32) store_tiles(ring, job, seeded);
  __syncthreads();
  volatile std::uint32_t* const reused = dynamic;
  for (std::uint32_t i = threadIdx.x; i < stages * words; i += blockDim.x) reused[stages * words - 1 - i] = 0x33333333;
  __syncthreads();
  if (threadIdx.x == 32) device::wait_stores_written();
}

class ring_faults : public gpu_test {
 protected:
  void run(fault seeded) {
    std::vector<std::uint32_t> source(std::uint64_t{blocks} * tiles_of_block * words);
    for (std::uint64_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::uint32_t>(i * 2654435761u);
    const device_array<std::uint32_t> from(source);
    const device_array<std::uint32_t> to(source.size());
    const device_array<std::uint32_t> gave_up(std::vector<std::uint32_t>{0});
    constexpr int shared_bytes = stages * tile_bytes;
    TMAP_ASSERT_CUDA(cudaFuncSetAttribute(faulty_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
    faulty_kernel<<<blocks, 1024, shared_bytes>>>({from.data(), to.data(), gave_up.data()}, seeded);
    TMAP_ASSERT_CUDA(cudaGetLastError());
    const std::vector<std::uint32_t> got = to.download();
    for (std::uint64_t i = 0; i < got.size(); ++i) wrong_ += got[i] != source[i];
    gave_up_ = gave_up.download()[0];
    RecordProperty("wrong_words", static_cast<int>(wrong_));
  }

  std::uint64_t wrong_{};
  std::uint32_t gave_up_{};
};

TEST_F(ring_faults, none) {
  run(fault::none);
  EXPECT_EQ(wrong_, 0u);
  EXPECT_EQ(gave_up_, 0u);
}

TEST_F(ring_faults, a_wrong_parity_is_seen) {
  run(fault::wrong_parity);
  EXPECT_GT(wrong_, 0u);
}

TEST_F(ring_faults, an_early_release_is_seen) {
  run(fault::early_release);
  EXPECT_GT(wrong_, 0u);
}

TEST_F(ring_faults, a_missing_drain_is_seen) {
  run(fault::missing_drain);
  EXPECT_GT(wrong_, 0u);
}

}  // namespace
}  // namespace tmap::testing::ring_faults_cases
