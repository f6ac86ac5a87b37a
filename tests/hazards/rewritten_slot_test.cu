// SPDX-License-Identifier: Apache-2.0
// Seeds faults in the use of slots that change: an acquired map is kept while its slot is encoded
// again, and reserved batches are encoded twice, too early or too late.
#include "hazards/map_users.cuh"

namespace tmap::testing::rewritten_slot_cases {
namespace {

constexpr std::uint32_t maps = 100;
constexpr slot_lease first_lease{0, maps, 1};
constexpr slot_lease second_lease{0, maps, 2};

/// Uses map 0 of `before` now, and a map again once `rewritten` is set. The second use goes through
/// the map that it has, or through map 0 of `after` if that has slots.
__global__ void use_for_long(map_batch_ref before, map_batch_ref after, std::uint32_t* used, std::uint32_t* rewritten,
                             int* seen) {
  __shared__ line_stage stage;
  init(stage);
  device::acquired_map map = device::acquire(before, 0);
  device::prefetch(map);
  seen[0] = load_line(map, stage, 0);
  set_flag(used, 1);
  await_flag(rewritten, 1);
  if (after.slots != nullptr) map = device::acquire(after, 0);
  seen[1] = load_line(map, stage, 1);
}

/// Stores through the old map 0 after it has seen the rewrite.
__global__ void store_late(map_batch_ref ref, std::uint32_t* used, std::uint32_t* rewritten) {
  __shared__ line_stage stage;
  init(stage);
  const device::acquired_map map = device::acquire(ref, 0);
  const int value = load_line(map, stage, 0);
  set_flag(used, 1);
  await_flag(rewritten, 1);
  stage.line[0] = value;
  device::fence_shared_writes();
  const std::int32_t beyond[] = {lent_slots::line_elements};
  device::store_tile<1>(map, beyond, stage.line);
  device::commit_stores();
  device::wait_stores_written();
}

class rewritten_slot : public gpu_test {
 protected:
  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped()) return;
    slots_ = std::make_unique<lent_slots>(maps);
    seen_ = std::make_unique<device_array<int>>(maps);
    producer_ = std::make_unique<cuda_stream>();
    consumer_ = std::make_unique<cuda_stream>();
    // Loads all kernels now, because loading one later would wait for a kernel that is running.
    slots_->lend(first_lease, 0, *producer_);
    write(first_lease);
    use_maps<<<maps, 1, 0, *producer_>>>(slots_->ref(first_lease), true, seen_->data());
    slots_->lend(first_lease, 0, *producer_);
    producer_->finish();
    slots_->clear_log();
  }

  void write(const slot_lease& lease) const {
    const map_batch_writer writer = slots_->writer(lease);
    write_maps<<<warps_for(writer), device::warp_lanes, 0, *producer_>>>(slots_->base(), slots_->patches() + 5, writer);
    TMAP_ASSERT_CUDA(cudaGetLastError());
  }

  /// Runs `rewrite` on the producer's stream after the kernel that `use` launched has acquired map
  /// 0 of the first lease.
  template <class Use, class Rewrite>
  void rewrite_in_use(const Use& use, const Rewrite& rewrite) const {
    const flag used;
    const flag rewritten;
    use(used.word(), rewritten.word());
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    EXPECT_TRUE(used.wait_for(1));
    rewrite();
    producer_->finish();
    rewritten.set(1);
    consumer_->finish();
  }

  auto long_use(const map_batch_ref& after) const {
    return [this, after](std::uint32_t* used, std::uint32_t* rewritten) {
      use_for_long<<<1, 1, 0, *consumer_>>>(slots_->ref(first_lease), after, used, rewritten, seen_->data());
    };
  }

  void expect_reports(hazard kind, std::uint64_t count, std::uint32_t expected, std::uint32_t found) const {
    EXPECT_EQ(slots_->reports(kind), count) << name(kind);
    EXPECT_EQ(slots_->reports(), count);
    EXPECT_EQ(slots_->log().first_complete, 1u);
    EXPECT_EQ(slots_->log().first.kind, kind);
    EXPECT_LT(slots_->log().first.map, maps);
    EXPECT_EQ(slots_->log().first.expected_generation, expected);
    EXPECT_EQ(slots_->log().first.found_generation, found);
  }

  /// Expects the bytes that the library's own encode makes from the same patches.
  void expect_written() const {
    const std::vector<tensor_map> found = slots_->slots().download();
    slots_->encode(first_lease, 5, *producer_);
    const std::vector<tensor_map> expected = slots_->slots().download();
    EXPECT_TRUE(found == expected);
  }

  std::unique_ptr<lent_slots> slots_;
  std::unique_ptr<device_array<int>> seen_;
  std::unique_ptr<cuda_stream> producer_;
  std::unique_ptr<cuda_stream> consumer_;
};

TEST_F(rewritten_slot, a_map_acquired_again_after_its_slots_were_lent_again_is_silent) {
  rewrite_in_use(long_use(slots_->ref(second_lease)), [&] { slots_->lend(second_lease, 9, *producer_); });
  EXPECT_EQ(slots_->reports(), 0u);
  const std::vector<int> seen = seen_->download();
  EXPECT_EQ(seen[0], 0);
  EXPECT_EQ(seen[1], 9);
}

TEST_F(rewritten_slot, a_map_kept_while_nothing_happens_is_silent) {
  rewrite_in_use(long_use({}), [] {});
  EXPECT_EQ(slots_->reports(), 0u);
}

TEST_F(rewritten_slot, a_map_kept_while_its_slots_are_lent_again_is_reported) {
  rewrite_in_use(long_use({}), [&] { slots_->lend(second_lease, 9, *producer_); });
  expect_reports(hazard::acquire_missing, 1, 1, 2);
}

// Encodes the same lease again, as a graph does when it is replayed.
TEST_F(rewritten_slot, a_map_kept_while_the_same_lease_is_encoded_again_is_reported) {
  rewrite_in_use(long_use({}), [&] { slots_->lend(first_lease, 9, *producer_); });
  expect_reports(hazard::acquire_missing, 1, 1, 1);
}

TEST_F(rewritten_slot, a_store_through_a_map_that_was_rewritten_is_reported) {
  const auto use = [&](std::uint32_t* used, std::uint32_t* rewritten) {
    store_late<<<1, 1, 0, *consumer_>>>(slots_->ref(first_lease), used, rewritten);
  };
  rewrite_in_use(use, [] {});
  EXPECT_EQ(slots_->reports(), 0u);
  rewrite_in_use(use, [&] { slots_->open(second_lease, *producer_); });
  expect_reports(hazard::acquire_missing, 1, 1, 2);
}

TEST_F(rewritten_slot, a_reserved_batch_encoded_once_and_then_used_is_silent) {
  slots_->open(second_lease, *producer_);
  write(second_lease);
  use_maps<<<maps, 1, 0, *producer_>>>(slots_->ref(second_lease), true, seen_->data());
  const std::vector<int> seen = seen_->download();
  for (std::uint32_t i = 0; i < maps; ++i) ASSERT_EQ(seen[i], static_cast<int>((5 + i) % lent_slots::lines)) << i;
  EXPECT_EQ(slots_->reports(), 0u);
  expect_written();
}

TEST_F(rewritten_slot, a_reserved_batch_used_before_it_was_encoded_is_reported) {
  slots_->open(second_lease, *producer_);
  use_maps<<<maps, 1, 0, *producer_>>>(slots_->ref(second_lease), true, seen_->data());
  producer_->finish();
  expect_reports(hazard::unpublished_slot, maps, 2, 2);
}

TEST_F(rewritten_slot, a_reserved_batch_encoded_a_second_time_is_reported) {
  slots_->open(second_lease, *producer_);
  write(second_lease);
  write(second_lease);
  producer_->finish();
  expect_reports(hazard::rewritten_while_leased, maps, 2, 2);
  expect_written();
}

TEST_F(rewritten_slot, a_batch_that_the_library_encoded_is_not_to_be_encoded_again) {
  write(first_lease);
  producer_->finish();
  expect_reports(hazard::rewritten_while_leased, maps, 1, 1);
}

TEST_F(rewritten_slot, a_map_kept_while_a_kernel_encodes_its_slot_again_is_reported) {
  rewrite_in_use(long_use({}), [&] { write(first_lease); });
  EXPECT_EQ(slots_->reports(hazard::rewritten_while_leased), maps);
  EXPECT_EQ(slots_->reports(hazard::acquire_missing), 1u);
  EXPECT_EQ(slots_->reports(), maps + 1);
}

TEST_F(rewritten_slot, a_writer_kept_after_its_slots_were_lent_again_is_reported) {
  slots_->lend(second_lease, 9, *producer_);
  const std::vector<slot_record> before = slots_->records().download();
  write(first_lease);
  producer_->finish();
  expect_reports(hazard::stale_generation, maps, 1, 2);
  const std::vector<slot_record> after = slots_->records().download();
  for (std::uint32_t i = 0; i < maps; ++i) ASSERT_EQ(before[i].edition, after[i].edition) << i;
}

TEST_F(rewritten_slot, a_writer_that_overtakes_the_reserve_is_reported) {
  write(second_lease);
  producer_->finish();
  expect_reports(hazard::slot_not_open, maps, 2, 1);
}

}  // namespace
}  // namespace tmap::testing::rewritten_slot_cases
