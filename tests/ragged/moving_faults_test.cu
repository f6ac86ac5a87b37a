// SPDX-License-Identifier: Apache-2.0
// Would the tests of the moving operations see a mistake? A small mover of its own, with the mistakes that such kernels
// invite, each seeded once, runs through the batches and the comparison that those tests use. Mistakes of the ring of
// stages, which the data seldom show: tests/device/ring_faults_test.cu.
#include <tmap/device/bulk_copy.cuh>

#include <gtest/gtest-spi.h>

#include "kernels/ragged/granule.cuh"
#include "support/ragged_upload.hpp"

namespace tmap::testing::moving_faults_cases {
namespace {

enum class fault : std::uint32_t {
  none,
  early_store,       ///< a bulk store begins before all threads have written their part
  lost_tail,         ///< the bytes behind the last whole granule are left out
  swapped_edges,     ///< the bytes before the first and behind the last whole granule are exchanged
  whole_granule,     ///< the last bytes are stored as a whole granule, over what lies behind the row
  first_rows_shift,  ///< all rows are shifted as the first one
  other_sides_pitch  ///< the destination's rows are as far apart as the source's (where that is nearer)
};

constexpr std::uint32_t threads = 512;
constexpr std::uint32_t part_bytes = 16384;  // of a row, moved at once
constexpr std::uint32_t granule = kernels::granule_bytes;

struct fault_memory {
  alignas(128) unsigned char loaded[2][part_bytes + granule];
  alignas(128) unsigned char shifted[part_bytes];
  device::tile_barrier full[2];
};

struct fault_job {
  const map_patch* source;
  const map_patch* destination;
  std::uint32_t count;
  std::uint32_t element_bytes;
};

/// Part of a row. All threads make the same calls.
struct row_part {
  std::uint64_t source;
  std::uint64_t destination;
  std::uint32_t bytes;
};

class faulty_mover {
 public:
  __device__ faulty_mover(fault_memory& memory, fault seeded) : memory_(memory), seeded_(seeded) {
    auto* const words = reinterpret_cast<std::uint32_t*>(&memory);
    for (std::uint32_t i = threadIdx.x; i < sizeof(memory) / 4; i += threads) words[i] = 0x5a5a5a5a;
    device::fence_shared_writes();
    __syncthreads();
    if (threadIdx.x == 0) {
      for (device::tile_barrier& barrier : memory_.full) barrier.init(1);
      device::fence_barrier_init();
    }
    __syncthreads();
  }

  __device__ void move_row(const row_part& row, std::uint32_t first_shift) {
    const auto part = [&](std::uint32_t begin) {
      const std::uint32_t left = row.bytes - begin;
      return row_part{row.source + begin, row.destination + begin, left < part_bytes ? left : part_bytes};
    };
    load(part(0));
    for (std::uint32_t begin = 0; begin < row.bytes; begin += part_bytes) {
      if (begin + part_bytes < row.bytes) load(part(begin + part_bytes));
      store(part(begin), first_shift);
    }
  }
  __device__ void drain() const {
    if (threadIdx.x == 0) device::wait_stores_written();
  }

 private:
  __device__ static std::uint64_t granule_of(std::uint64_t address) { return address / granule * granule; }

  /// All granules that the part lies in, which may be more than the part.
  __device__ void load(const row_part& part) {
    const std::uint32_t stage = loaded_++ % 2;
    if (threadIdx.x != 0) return;
    const std::uint64_t first = granule_of(part.source);
    const auto bytes = static_cast<std::uint32_t>(granule_of(part.source + part.bytes + granule - 1) - first);
    memory_.full[stage].arrive_expect(bytes);
    device::load_bytes(memory_.loaded[stage], reinterpret_cast<const void*>(first), bytes, memory_.full[stage]);
  }

  __device__ void store(const row_part& part, std::uint32_t first_shift) {
    const std::uint32_t stage = stored_ % 2;
    const std::uint32_t parity = stored_++ / 2 % 2;
    memory_.full[stage].wait(parity);
    if (threadIdx.x == 0) device::wait_stores_read<0>();
    __syncthreads();
    const kernels::row_cut cut(part.destination, part.source, part.bytes);
    const auto offset = static_cast<std::uint32_t>(part.source + cut.head - cut.shift - granule_of(part.source));
    if (seeded_ == fault::early_store) {
      store_granules(part, cut);
      __nanosleep(20'000);
    }
    shift(memory_.loaded[stage] + offset, cut, seeded_ == fault::first_rows_shift ? first_shift : cut.shift);
    store_edges(part, cut);
    device::fence_shared_writes();
    __syncthreads();
    if (seeded_ != fault::early_store) store_granules(part, cut);
    __syncthreads();
  }

  /// The last granules first, as the copy engine reads the first ones first.
  __device__ void shift(const unsigned char* from, const kernels::row_cut& cut, std::uint32_t by) {
    const auto* const source = reinterpret_cast<const uint4*>(from);
    for (std::uint32_t i = threadIdx.x; i < cut.granules; i += threads) {
      const std::uint32_t at = cut.granules - 1 - i;
      const uint4 high = by == 0 ? source[at] : source[at + 1];
      reinterpret_cast<uint4*>(memory_.shifted)[at] = kernels::shifted(source[at], high, by);
    }
  }

  __device__ void store_granules(const row_part& part, const kernels::row_cut& cut) const {
    if (threadIdx.x != 0) return;
    auto* const to = reinterpret_cast<void*>(part.destination + cut.head);
    if (cut.granules != 0) device::store_bytes(to, memory_.shifted, cut.granules * granule);
    device::commit_stores();
  }

  __device__ void store_edges(const row_part& part, const kernels::row_cut& cut) const {
    const std::uint32_t behind = part.bytes - cut.tail;
    const bool swaps = seeded_ == fault::swapped_edges;
    std::uint32_t tail = cut.tail;
    if (seeded_ == fault::lost_tail) tail = tail / granule * granule;
    if (seeded_ == fault::whole_granule) tail = (tail + granule - 1) / granule * granule;
    if (threadIdx.x < cut.head) move_byte(part, threadIdx.x, swaps ? behind + threadIdx.x : threadIdx.x);
    if (threadIdx.x < tail) move_byte(part, behind + threadIdx.x, swaps ? threadIdx.x : behind + threadIdx.x);
  }
  __device__ static void move_byte(const row_part& part, std::uint32_t to, std::uint32_t from) {
    kernels::store_unit(part.destination + to, kernels::load_unit<std::uint8_t>(part.source + from));
  }

  fault_memory& memory_;
  fault seeded_;
  std::uint32_t loaded_{0};
  std::uint32_t stored_{0};
};

__global__ void __launch_bounds__(threads) faulty_kernel(fault_job job, fault seeded) {
  extern __shared__ __align__(128) unsigned char dynamic[];
  faulty_mover mover(*reinterpret_cast<fault_memory*>(dynamic), seeded);
  for (std::uint32_t t = blockIdx.x; t < job.count; t += gridDim.x) {
    const map_patch& from = job.source[t];
    const map_patch& to = job.destination[t];
    const auto bytes = static_cast<std::uint32_t>(from.global_dim[0]) * job.element_bytes;
    const std::uint64_t source_pitch = from.global_stride_bytes[0];
    std::uint64_t pitch = to.global_stride_bytes[0];
    if (seeded == fault::other_sides_pitch && source_pitch < pitch) pitch = source_pitch;
    const std::uint32_t first_shift =
        kernels::row_cut(to.global_address, from.global_address, bytes < part_bytes ? bytes : part_bytes).shift;
    for (std::uint64_t row = 0; row < from.global_dim[1] && bytes != 0; ++row) {
      mover.move_row({from.global_address + row * source_pitch, to.global_address + row * pitch, bytes}, first_shift);
    }
  }
  mover.drain();
}

/// Whether the comparison of the moving tests fails.
bool is_seen(const std::vector<unsigned char>& expected, const std::vector<unsigned char>& found) {
  ::testing::TestPartResultArray failures;
  const ::testing::ScopedFakeTestPartResultReporter reporter(
      ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
  expect_bytes(expected, found);
  return failures.size() != 0;
}

class moving_faults : public gpu_test {
 protected:
  static constexpr std::uint32_t batches = 8;

  /// In how many batches the fault is seen.
  static std::uint32_t count_seen(fault seeded) {
    constexpr int shared_bytes = sizeof(fault_memory);
    EXPECT_EQ(cudaFuncSetAttribute(faulty_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
              cudaSuccess);
    random_source random(81);
    std::uint32_t seen = 0;
    for (std::uint32_t i = 0; i < batches; ++i) {
      std::vector<extents> shapes;
      for (int t = 0; t < 40; ++t)
        shapes.push_back({{random.below(t % 2 == 0 ? 60000 : 300), random.below(6), 1, 1, 1}});
      const host_batch source = lay_out(random, shapes, 2, 1, source_form::array);
      host_batch destination = lay_out(random, shapes, 2, 1, source_form::array);
      const device_side from(source, source_form::array, array_side::device);
      const device_side to(destination, source_form::array, array_side::device);
      const fault_job job{std::get<patch_array>(from.described().tensors).patches,
                          std::get<patch_array>(to.described().tensors).patches,
                          static_cast<std::uint32_t>(shapes.size()), 1};
      faulty_kernel<<<20, threads, shared_bytes>>>(job, seeded);
      EXPECT_EQ(cudaGetLastError(), cudaSuccess);
      reference::copy(source, destination);
      if (is_seen(destination.bytes, to.memory().download())) ++seen;
    }
    return seen;
  }
};

TEST_F(moving_faults, none) {
  EXPECT_EQ(count_seen(fault::none), 0u);
}
TEST_F(moving_faults, an_early_store_is_seen) {
  EXPECT_GT(count_seen(fault::early_store), 0u);
}
TEST_F(moving_faults, a_lost_tail_is_seen) {
  EXPECT_GT(count_seen(fault::lost_tail), 0u);
}
TEST_F(moving_faults, swapped_edges_are_seen) {
  EXPECT_GT(count_seen(fault::swapped_edges), 0u);
}
TEST_F(moving_faults, a_whole_granule_is_seen) {
  EXPECT_GT(count_seen(fault::whole_granule), 0u);
}
TEST_F(moving_faults, the_shift_of_the_first_row_is_seen) {
  EXPECT_GT(count_seen(fault::first_rows_shift), 0u);
}
TEST_F(moving_faults, the_pitch_of_the_other_side_is_seen) {
  EXPECT_GT(count_seen(fault::other_sides_pitch), 0u);
}

}  // namespace
}  // namespace tmap::testing::moving_faults_cases
