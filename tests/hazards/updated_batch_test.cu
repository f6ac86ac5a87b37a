// SPDX-License-Identifier: Apache-2.0
// Tests batches with an index table, as `map_service::update` makes them. Most maps lie in slots of
// an earlier lease. The changed ones and the table lie in slots of the batch's own.
#include "hazards/map_users.cuh"

namespace tmap::testing::updated_batch_cases {
namespace {

constexpr std::uint32_t maps = 64;
constexpr std::uint32_t table_slots = maps * sizeof(std::uint32_t) / tensor_map_bytes;

/// Holds a lease whose first slots contain the `changed` maps, and the last ones the table.
struct update {
  std::vector<std::uint32_t> changed;
  slot_lease lease;

  std::uint32_t count() const { return static_cast<std::uint32_t>(changed.size()); }
};

constexpr slot_lease base_lease{0, maps, 1};
const update first_update{{3, 10, 20, 21, 40, 63}, {64, 6 + table_slots, 2}};
const update second_update{{3, 5}, {72, 2 + table_slots, 3}};
constexpr std::uint32_t all_slots = 76;

class updated_batch : public gpu_test {
 protected:
  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped()) return;
    slots_ = std::make_unique<lent_slots>(all_slots);
    seen_ = std::make_unique<device_array<int>>(maps);
    for (std::uint32_t i = 0; i < maps; ++i) table_.push_back(i), lines_.push_back(static_cast<int>(i));
    slots_->lend(base_lease, 0, nullptr);
  }

  std::uint32_t* table_of(const update& of) const {
    return reinterpret_cast<std::uint32_t*>(slots_->slots().data() + of.lease.first + of.count());
  }
  map_batch_ref ref_of(const update& of) const {
    map_batch_ref ref = slots_->ref({0, maps, of.lease.generation});
    ref.indices = table_of(of);
    return ref;
  }

  /// Makes the changed maps lead to `line` and the following lines.
  void apply(const update& what, std::uint32_t line) {
    for (std::uint32_t k = 0; k < what.count(); ++k) {
      table_[what.changed[k]] = static_cast<std::uint32_t>(what.lease.first) + k;
      lines_[what.changed[k]] = static_cast<int>(line + k);
    }
    slots_->open(what.lease, nullptr);
    slots_->encode({what.lease.first, what.count(), what.lease.generation}, line, nullptr);
    EXPECT_EQ(cudaMemcpy(table_of(what), table_.data(), maps * sizeof(std::uint32_t), cudaMemcpyHostToDevice),
              cudaSuccess);
    slots_->publish(what.lease, nullptr);
  }

  void use(const map_batch_ref& ref, bool loads = true) const {
    use_maps<<<maps, 1>>>(ref, loads, seen_->data());
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  }

  void expect_reports(hazard kind, std::uint64_t count) const {
    EXPECT_EQ(slots_->reports(kind), count) << name(kind);
    EXPECT_EQ(slots_->reports(), count);
  }

  std::unique_ptr<lent_slots> slots_;
  std::unique_ptr<device_array<int>> seen_;
  std::vector<std::uint32_t> table_;
  std::vector<int> lines_;
};

TEST_F(updated_batch, the_new_batch_and_the_old_one_are_silent) {
  const std::vector<int> base_lines = lines_;
  apply(first_update, 30);
  use(ref_of(first_update));
  EXPECT_EQ(seen_->download(), lines_);
  use(slots_->ref(base_lease));
  EXPECT_EQ(seen_->download(), base_lines);
  EXPECT_EQ(slots_->reports(), 0u);
}

TEST_F(updated_batch, a_chain_of_updates_is_silent) {
  apply(first_update, 30);
  const std::vector<int> first_lines = lines_;
  apply(second_update, 50);
  use(ref_of(second_update));
  EXPECT_EQ(seen_->download(), lines_);
  use(ref_of(first_update));
  EXPECT_EQ(seen_->download(), first_lines);
  EXPECT_EQ(slots_->reports(), 0u);
}

TEST_F(updated_batch, a_consumer_that_overtakes_the_update_is_reported) {
  // The contents of the unwritten table must not matter. They are zeroed, because indices out of
  // range would make the acquires reach wild slots.
  TMAP_ASSERT_CUDA(cudaMemset(table_of(first_update), 0, maps * sizeof(std::uint32_t)));
  use(ref_of(first_update), false);
  expect_reports(hazard::unpublished_slot, maps);
  slots_->open(first_update.lease, nullptr);
  use(ref_of(first_update), false);
  expect_reports(hazard::unpublished_slot, 2 * maps);
}

TEST_F(updated_batch, a_ref_kept_after_the_updates_slots_were_lent_again_is_reported) {
  apply(first_update, 30);
  slots_->open({first_update.lease.first, first_update.lease.count, 9}, nullptr);
  use(ref_of(first_update), false);
  expect_reports(hazard::stale_generation, maps);
}

TEST_F(updated_batch, shared_slots_that_were_lent_again_are_reported) {
  apply(first_update, 30);
  slots_->lend({0, 32, 9}, 0, nullptr);
  use(ref_of(first_update));
  expect_reports(hazard::stale_generation, 28);  // the first 32 maps, of which the update moved 4 elsewhere
  EXPECT_EQ(slots_->log().first.found_generation, 9u);
}

TEST_F(updated_batch, fresh_slots_that_were_not_published_are_reported) {
  apply(first_update, 30);
  slots_->open({first_update.lease.first, first_update.count(), 2}, nullptr);  // without the table
  use(ref_of(first_update));
  expect_reports(hazard::unpublished_slot, first_update.count());
}

}  // namespace
}  // namespace tmap::testing::updated_batch_cases
