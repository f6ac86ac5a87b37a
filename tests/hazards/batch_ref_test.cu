// SPDX-License-Identifier: Apache-2.0
// Tests that acquire(ref, i) and encode_warp(writer) reach the right slots in every build, checked
// or not, and never one past the end.
#include "hazards/map_users.cuh"

namespace tmap::testing {
namespace {

constexpr std::uint32_t maps = 100;
constexpr slot_lease lease{0, maps, 1};

/// Removes the records, so that the ref or writer reports nothing.
map_batch_ref unchecked(map_batch_ref ref) {
  ref.records = nullptr;
  return ref;
}
map_batch_writer unchecked(map_batch_writer writer) {
  writer.records = nullptr;
  return writer;
}

__global__ void acquire_one(map_batch_ref ref, std::uint32_t i) {
  device::acquire(ref, i);
}

using batch_ref = gpu_test;

TEST_F(batch_ref, map_i_is_in_slot_i) {
  const lent_slots slots(maps);
  const device_array<int> seen(maps);
  slots.encode(lease, 3, nullptr);
  use_maps<<<maps, 1>>>(unchecked(slots.ref(lease)), true, seen.data());
  TMAP_ASSERT_CUDA(cudaGetLastError());
  const std::vector<int> found = seen.download();
  for (std::uint32_t i = 0; i < maps; ++i) ASSERT_EQ(found[i], static_cast<int>((3 + i) % lent_slots::lines)) << i;
}

TEST_F(batch_ref, or_where_the_table_says) {
  const lent_slots slots(maps);
  const device_array<int> seen(maps);
  std::vector<std::uint32_t> table(maps);
  for (std::uint32_t i = 0; i < maps; ++i) table[i] = i * 37 % maps;
  const device_array<std::uint32_t> indices(table);
  slots.encode(lease, 3, nullptr);
  map_batch_ref ref = unchecked(slots.ref(lease));
  ref.indices = indices.data();
  use_maps<<<maps, 1>>>(ref, true, seen.data());
  TMAP_ASSERT_CUDA(cudaGetLastError());
  const std::vector<int> found = seen.download();
  for (std::uint32_t i = 0; i < maps; ++i) {
    ASSERT_EQ(found[i], static_cast<int>((3 + table[i]) % lent_slots::lines)) << i;
  }
}

TEST_F(batch_ref, a_writer_makes_the_same_bytes_and_nothing_beyond) {
  const lent_slots slots(maps + 1);
  slots.encode(lease, 5, nullptr);
  const std::vector<tensor_map> expected = slots.slots().download();
  slots.slots().fill_poison();
  const map_batch_writer writer = unchecked(slots.writer(lease));
  write_maps<<<warps_for(writer), device::warp_lanes>>>(slots.base(), slots.patches() + 5, writer);
  TMAP_ASSERT_CUDA(cudaGetLastError());
  const std::vector<tensor_map> found = slots.slots().download();
  EXPECT_TRUE(found == expected);
  EXPECT_TRUE(is_poison(found.back()));
}

/// Writes two warps' worth of maps into a smaller batch.
__global__ void write_too_many(const __grid_constant__ map_template base, const map_patch* patches,
                               map_batch_writer writer) {
  __shared__ device::warp_stage stage;
  device::encode_warp(base, device::patch_array_reader({patches}, base.fields), writer, 80, 21, stage,
                      device::map_guard{.page = nullptr, .trusted = true});
}

enum outcome : int { nothing_happened = 1, stopped = 2, wild = 3, wrong_reports = 4 };

/// Returns what happened to the context.
outcome outcome_now() {
  const cudaError_t code = cudaDeviceSynchronize();
  if (code == cudaSuccess) return nothing_happened;
  return code == cudaErrorIllegalAddress || code == cudaErrorMisalignedAddress ? wild : stopped;
}

outcome acquire_beyond(std::uint32_t count, std::uint32_t i) {
  const lent_slots slots(maps);
  slots.lend(lease, 0, nullptr);
  map_batch_ref ref = slots.ref(lease);
  ref.count = count;
  acquire_one<<<1, 1>>>(ref, i);
  const outcome what = outcome_now();
  const std::uint64_t due = checks_hazards && what == stopped ? 1 : 0;
  return slots.reports() == due && slots.reports(hazard::index_out_of_batch) == due ? what : wrong_reports;
}

outcome acquire_in_empty() {
  acquire_one<<<1, 1>>>(map_batch_ref{}, 0);
  return outcome_now();
}

outcome write_beyond() {
  const lent_slots slots(2 * maps);
  slots.open(lease, nullptr);
  write_too_many<<<1, device::warp_lanes>>>(slots.base(), slots.patches(), slots.writer(lease));
  return outcome_now();
}

/// A trap ends the context, so each case runs in a process of its own.
class beyond_batch : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

TEST_F(beyond_batch, the_index_behind_the_last_traps) {
  EXPECT_EXIT(std::_Exit(acquire_beyond(maps, maps)), ::testing::ExitedWithCode(stopped), "");
}

TEST_F(beyond_batch, the_last_index_does_not) {
  EXPECT_EXIT(std::_Exit(acquire_beyond(maps, maps - 1)), ::testing::ExitedWithCode(nothing_happened), "");
}

TEST_F(beyond_batch, the_largest_index_traps) {
  EXPECT_EXIT(std::_Exit(acquire_beyond(maps, 0xffffffff)), ::testing::ExitedWithCode(stopped), "");
}

TEST_F(beyond_batch, an_empty_ref_traps) {
  EXPECT_EXIT(std::_Exit(acquire_in_empty()), ::testing::ExitedWithCode(stopped), "");
}

TEST_F(beyond_batch, a_write_past_the_end_traps) {
  EXPECT_EXIT(std::_Exit(write_beyond()), ::testing::ExitedWithCode(stopped), "");
}

}  // namespace
}  // namespace tmap::testing
