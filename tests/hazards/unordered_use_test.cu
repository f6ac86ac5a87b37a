// SPDX-License-Identifier: Apache-2.0
// Seeds faults in the time of a ref's use: before its batch was encoded, and after its slots were
// lent again.
#include "hazards/map_users.cuh"

namespace tmap::testing::unordered_use_cases {
namespace {

static_assert(checks_hazards);

constexpr std::uint32_t maps = 528;
constexpr slot_lease first_lease{0, maps, 7};
constexpr slot_lease second_lease{0, maps, 8};

/// Each thread of the grid acquires one map.
__global__ void acquire_once(map_batch_ref ref, std::uint32_t map, dim3 block, dim3 thread) {
  const bool mine = blockIdx.x == block.x && blockIdx.y == block.y && blockIdx.z == block.z &&
                    threadIdx.x == thread.x && threadIdx.y == thread.y && threadIdx.z == thread.z;
  if (mine) device::acquire(ref, map);
}

class unordered_use : public gpu_test {
 protected:
  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped()) return;
    slots_ = std::make_unique<lent_slots>(maps);
    seen_ = std::make_unique<device_array<int>>(maps);
    producer_ = std::make_unique<cuda_stream>();
    consumer_ = std::make_unique<cuda_stream>();
    encoded_ = std::make_unique<cuda_event>();
  }

  void use(const slot_lease& lease, bool loads = true) const {
    use_maps<<<lease.count, 1, 0, *consumer_>>>(slots_->ref(lease), loads, seen_->data());
    TMAP_ASSERT_CUDA(cudaGetLastError());
  }

  /// Also loads every kernel that a test launches while another one waits.
  void lend_and_use_in_order(const slot_lease& lease, std::uint32_t line) const {
    slots_->lend(lease, line, *producer_);
    encoded_->record(*producer_);
    encoded_->hold(*consumer_);
    use(lease);
    consumer_->finish();
    expect_lines(line);
    EXPECT_EQ(slots_->reports(), 0u);
  }

  void expect_lines(std::uint32_t line) const {
    const std::vector<int> found = seen_->download();
    std::uint32_t wrong = 0;
    for (std::uint32_t i = 0; i < maps; ++i) {
      wrong += found[i] != static_cast<int>((line + i) % lent_slots::lines) ? 1 : 0;
    }
    EXPECT_EQ(wrong, 0u);
  }

  /// Expects exactly these reports, and checks all of the first one. Block i used map i.
  void expect_reports(hazard kind, std::uint64_t count, std::uint32_t expected, std::uint32_t found) const {
    EXPECT_EQ(slots_->reports(kind), count) << name(kind);
    EXPECT_EQ(slots_->reports(), count);
    const hazard_report first = slots_->log().first;
    ASSERT_EQ(slots_->log().first_complete, 1u);
    EXPECT_EQ(first.kind, kind);
    EXPECT_LT(first.map, maps);
    EXPECT_EQ(first.block, first.map);
    EXPECT_EQ(first.thread, 0u);
    EXPECT_EQ(first.expected_generation, expected);
    EXPECT_EQ(first.found_generation, found);
  }

  std::unique_ptr<lent_slots> slots_;
  std::unique_ptr<device_array<int>> seen_;
  std::unique_ptr<cuda_stream> producer_;
  std::unique_ptr<cuda_stream> consumer_;
  std::unique_ptr<cuda_event> encoded_;
};

TEST_F(unordered_use, a_consumer_ordered_after_each_encode_is_silent) {
  for (std::uint32_t generation = 1; generation <= 100; ++generation) {
    lend_and_use_in_order({0, maps, generation}, generation % lent_slots::lines);
  }
}

TEST_F(unordered_use, a_consumer_that_overtakes_the_encode_is_reported) {
  lend_and_use_in_order(first_lease, 0);
  const flag gate;
  hold_back<<<1, 1, 0, *producer_>>>(gate.word());
  slots_->lend(second_lease, 1, *producer_);
  use(second_lease);
  consumer_->finish();
  expect_reports(hazard::unpublished_slot, maps, 8, 7);
  gate.set(1);
  expect_lines(0);  // the maps of the previous batch
}

TEST_F(unordered_use, a_consumer_between_the_opening_and_the_encode_is_reported) {
  lend_and_use_in_order(first_lease, 0);
  const flag gate;
  slots_->open(second_lease, *producer_);
  producer_->finish();
  hold_back<<<1, 1, 0, *producer_>>>(gate.word());
  slots_->encode(second_lease, 1, *producer_);
  slots_->publish(second_lease, *producer_);
  use(second_lease);
  consumer_->finish();
  expect_reports(hazard::unpublished_slot, maps, 8, 8);
  gate.set(1);
}

TEST_F(unordered_use, a_slot_that_was_never_lent_is_reported) {
  use({0, maps, 0x90000000}, false);
  consumer_->finish();
  expect_reports(hazard::unpublished_slot, maps, 0x90000000, 0);
}

TEST_F(unordered_use, a_ref_kept_after_its_slots_were_lent_again_is_reported) {
  lend_and_use_in_order(first_lease, 0);
  lend_and_use_in_order(second_lease, 1);
  use(first_lease);
  consumer_->finish();
  expect_reports(hazard::stale_generation, maps, 7, 8);
  expect_lines(1);  // the maps of another batch
}

TEST_F(unordered_use, generations_wrap_round) {
  const slot_lease last{0, maps, 0xffffffff};
  const slot_lease next{0, maps, 1};
  lend_and_use_in_order(last, 0);
  use(next);
  consumer_->finish();
  expect_reports(hazard::unpublished_slot, maps, 1, 0xffffffff);
  slots_->clear_log();
  lend_and_use_in_order(next, 1);
  use(last);
  consumer_->finish();
  expect_reports(hazard::stale_generation, maps, 0xffffffff, 1);
}

TEST_F(unordered_use, the_first_report_is_kept_and_names_its_thread) {
  lend_and_use_in_order(second_lease, 0);
  const auto acquire_in = [&](const slot_lease& lease, std::uint32_t map, dim3 block, dim3 thread) {
    acquire_once<<<dim3(3, 4, 2), dim3(8, 2, 4), 0, *consumer_>>>(slots_->ref(lease), map, block, thread);
    consumer_->finish();
  };
  acquire_in(second_lease, 100, dim3(2, 3, 1), dim3(7, 1, 3));
  EXPECT_EQ(slots_->reports(), 0u);
  acquire_in(first_lease, 11, dim3(1, 2, 1), dim3(5, 1, 3));
  acquire_in({0, maps, 9}, 12, dim3(2, 3, 1), dim3(7, 1, 3));
  EXPECT_EQ(slots_->reports(hazard::stale_generation), 1u);
  EXPECT_EQ(slots_->reports(hazard::unpublished_slot), 1u);
  const hazard_report first = slots_->log().first;
  EXPECT_EQ(first.kind, hazard::stale_generation);
  EXPECT_EQ(first.map, 11u);
  EXPECT_EQ(first.block, 1u + 3 * (2 + 4 * 1));
  EXPECT_EQ(first.thread, 5u + 8 * (1 + 2 * 3));
}

TEST_F(unordered_use, a_ref_without_records_is_not_checked) {
  lend_and_use_in_order(second_lease, 3);
  map_batch_ref ref = slots_->ref(first_lease);
  ref.records = nullptr;
  use_maps<<<maps, 1, 0, *consumer_>>>(ref, true, seen_->data());
  TMAP_ASSERT_CUDA(cudaGetLastError());
  expect_lines(3);
  EXPECT_EQ(slots_->reports(), 0u);
}

TEST_F(unordered_use, without_a_log_the_kernel_prints) {
  const device_array<slot_record> zeroed{std::vector<slot_record>(maps)};
  map_batch_ref ref = slots_->ref(first_lease);
  ref.records = zeroed.data();
  ::testing::internal::CaptureStdout();
  acquire_once<<<1, 1, 0, *consumer_>>>(ref, 5, dim3(0, 0, 0), dim3(0, 0, 0));
  const cudaError_t done = cudaDeviceSynchronize();
  const std::string printed = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(done, cudaSuccess);
  EXPECT_EQ(printed, "tmap: hazard unpublished_slot: map 5, generation 7, found 0\n");
}

}  // namespace
}  // namespace tmap::testing::unordered_use_cases
