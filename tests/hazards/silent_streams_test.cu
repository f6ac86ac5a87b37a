// SPDX-License-Identifier: Apache-2.0
// Runs programs without a fault. Many batches in several streams reuse slots over and over, and no
// report may appear.
#include <array>

#include "hazards/map_users.cuh"

namespace tmap::testing::silent_streams_cases {
namespace {

constexpr std::uint32_t maps = 32;
constexpr std::uint32_t regions = 32;
constexpr std::uint32_t streams = 4;

/// Counts the maps of the batch that lead to the wrong place. One warp runs it.
__global__ void check_lines(map_batch_ref ref, std::uint32_t line, std::uint32_t* wrong) {
  __shared__ line_stage stages[maps];
  line_stage& stage = stages[threadIdx.x];
  init(stage);
  const int found = load_line(device::acquire(ref, threadIdx.x), stage, 0);
  if (found != static_cast<int>((line + threadIdx.x) % lent_slots::lines)) atomicAdd(wrong, 1);
}

/// Lends regions in turn. The library or a kernel encodes each batch on one stream, and a kernel
/// uses it there or on the next stream. Only events order the streams: the use after the encode,
/// and a region's next batch after it.
class lender {
 public:
  explicit lender(const lent_slots& slots) : slots_(slots), wrong_(std::vector<std::uint32_t>(1)) {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }

  void batch(std::uint32_t number) {
    const std::uint32_t region = number % regions;
    const slot_lease lease{std::uint64_t{region} * maps, maps, number + 1};
    const cuda_stream& home = streams_[number % streams];
    const cuda_stream& user = streams_[(number + number / regions) % streams];
    used_[region].hold(home);
    encode(lease, number, home);
    encoded_.record(home);
    encoded_.hold(user);
    check_lines<<<1, maps, 0, user>>>(slots_.ref(lease), number % lent_slots::lines, wrong_.data());
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    used_[region].record(user);
  }

  std::uint32_t wrong() const { return wrong_.download()[0]; }

 private:
  void encode(const slot_lease& lease, std::uint32_t number, const cuda_stream& stream) const {
    const std::uint32_t line = number % lent_slots::lines;
    if (number % 3 != 0) return slots_.lend(lease, line, stream);
    slots_.open(lease, stream);
    write_maps<<<1, maps, 0, stream>>>(slots_.base(), slots_.patches() + line, slots_.writer(lease));
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }

  const lent_slots& slots_;
  device_array<std::uint32_t> wrong_;
  std::array<cuda_stream, streams> streams_;
  std::array<cuda_event, regions> used_;
  cuda_event encoded_;
};

using silent_streams = gpu_test;

TEST_F(silent_streams, many_batches_in_four_streams) {
  const lent_slots slots(regions * maps);
  lender program(slots);
  const auto batches = static_cast<std::uint32_t>(scaled(100'000));
  for (std::uint32_t number = 0; number < batches && !HasFailure(); ++number) program.batch(number);
  EXPECT_EQ(program.wrong(), 0u);
  EXPECT_EQ(slots.reports(), 0u);
  RecordProperty("batches", static_cast<int>(batches));
}

/// A block of two warps encodes its maps and uses them in one kernel. Its barrier orders the two
/// steps.
__global__ void encode_then_use(const __grid_constant__ map_template base, const map_patch* patches,
                                map_batch_writer writer, map_batch_ref ref, std::uint32_t* wrong) {
  __shared__ device::warp_stage warp_stage;
  __shared__ line_stage stage;
  const std::uint32_t first = blockIdx.x * device::warp_lanes;
  if (threadIdx.x < device::warp_lanes) {
    device::encode_warp(base, device::patch_array_reader({patches}, base.fields), writer, first, device::warp_lanes,
                        warp_stage, device::map_guard{.page = nullptr, .trusted = true});
  }
  __syncthreads();
  if (threadIdx.x != device::warp_lanes) return;
  init(stage);
  for (std::uint32_t i = 0; i < device::warp_lanes; ++i) {
    const int found = load_line(device::acquire(ref, first + i), stage, i % 2);
    if (found != static_cast<int>((first + i) % lent_slots::lines)) atomicAdd(wrong, 1);
  }
}

TEST_F(silent_streams, maps_encoded_and_used_in_one_kernel) {
  constexpr std::uint32_t blocks = 264;
  const lent_slots slots(blocks * device::warp_lanes);
  const device_array<std::uint32_t> wrong(std::vector<std::uint32_t>(1));
  for (std::uint32_t generation = 1; generation <= scaled(200); ++generation) {
    const slot_lease lease{0, blocks * device::warp_lanes, generation};
    slots.open(lease, nullptr);
    encode_then_use<<<blocks, 2 * device::warp_lanes>>>(slots.base(), slots.patches(), slots.writer(lease),
                                                        slots.ref(lease), wrong.data());
    TMAP_ASSERT_CUDA(cudaGetLastError());
  }
  EXPECT_EQ(wrong.download()[0], 0u);
  EXPECT_EQ(slots.reports(), 0u);
}

}  // namespace
}  // namespace tmap::testing::silent_streams_cases
