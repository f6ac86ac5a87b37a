// SPDX-License-Identifier: Apache-2.0
// Runs the host's operations on spoilt tensors among good ones. Statuses, headers and places in a
// packed buffer equal those of a slow planner, which follows the documentation of ragged.hpp.
#include <tmap/ragged.hpp>

#include <gtest/gtest.h>

#include "ragged/packed_reference.hpp"
#include "ragged/plan_reference.hpp"
#include "simulator/spoilt_tensors.hpp"

namespace tmap::testing {
namespace {

using kernels::shape_relation;
using ragged::fault;
using ragged::tensor_status;
using spoilt::slot_bytes;
using spoilt::slot_count;

constexpr std::uint32_t trials = 40;

class ragged_judged : public ::testing::Test {
 protected:
  ragged_judged() {
    spoilt::set_windows(where_, windows_.data());
    for (std::uint64_t i = 0; i < slot_count; ++i) {
      const std::uint64_t scales = scale_memory() + i * slot_bytes;
      windows_[2 * slot_count + i] = {scales, scales + slot_bytes};
    }
  }
  std::uint64_t scale_memory() const { return reinterpret_cast<std::uint64_t>(scale_bytes_.data()); }

  void draw(const spoilt::drawn_from& from) {
    spoilt::draw(random_, where_, from);
    rules_ = {};
    rules_.source_element = from.source_item;
    rules_.destination_element = from.destination_item;
    rules_.rule.piece_elements = 1024;
    rules_.routes.allowed = {};
    rank_ = from.rank;
    with_ = {on_host{}};
    with_.statuses = statuses_.data();
    with_.header = &header_;
    rules_.windows = windows_;  // without windows, spoilt tensors with valid extents would be moved
    with_.windows = {windows_.data(), windows_.size()};
  }

  tensor_batch described(const std::vector<map_patch>& patches, std::uint32_t item) const {
    return {patch_array{patches.data()}, slot_count, item, rank_, {}, array_side::host};
  }
  tensor_batch source() const { return described(source_patches_, rules_.source_element); }
  tensor_batch destination() const { return described(destination_patches_, rules_.destination_element); }

  plain_side side_of(const map_patch& patch) const {
    return {patch.global_address,
            {patch.global_dim, patch.global_dim + rank_},
            {patch.global_stride_bytes, patch.global_stride_bytes + rank_ - 1}};
  }
  plain_side source_of(std::uint64_t i) const { return side_of(source_patches_[i]); }
  plain_side destination_of(std::uint64_t i) const { return side_of(destination_patches_[i]); }

  plain_side dense_of(const dense_batch& dense, std::uint64_t i) const {
    const plain_side side{0, {dense.dim, dense.dim + rank_}, std::vector<std::uint64_t>(rank_ - 1)};
    return packed_side(side, dense.address + i * dense.tensor_pitch_bytes, rules_.source_element);
  }

  void expect_planned(std::uint64_t i, const expected_plan& plan) {
    ASSERT_EQ(statuses_[i].bits, plan.status) << "tensor " << i << " of rank " << rank_;
    const tensor_status status{plan.status};
    if (status.is_bad() && wanted_.bad_count++ == 0) wanted_.first_bad = static_cast<std::uint32_t>(i);
    wanted_.empty_count += status.is_empty() ? 1 : 0;
    met_ |= plan.status;
  }
  void expect_header() {
    EXPECT_EQ(header_.bad_count, wanted_.bad_count);
    EXPECT_EQ(header_.first_bad, wanted_.first_bad);
    EXPECT_EQ(header_.empty_count, wanted_.empty_count);
    wanted_ = {};
  }
  void expect_met(std::initializer_list<fault> faults) const {
    for (const fault f : faults) EXPECT_NE(met_ & static_cast<std::uint32_t>(f), 0u) << static_cast<std::uint32_t>(f);
    EXPECT_NE(met_ & tensor_status::empty_bit, 0u);
  }

  void compare_pairs(const result<void>& done) {
    ASSERT_TRUE(done) << to_string(done.error());
    for (std::uint64_t i = 0; i < slot_count; ++i) {
      expect_planned(i, plan_slowly(source_of(i), destination_of(i), rules_, i));
      if (HasFatalFailure()) return;
    }
    expect_header();
  }

  void compare_packed(const result<void>& done, const ragged::packed_buffer& packed, bool unpacks) {
    ASSERT_TRUE(done) << to_string(done.error());
    const auto memory = reinterpret_cast<std::uint64_t>(packed.memory);
    std::uint64_t begin = 0;
    for (std::uint64_t i = 0; i < slot_count; ++i) {
      const plain_side shape = unpacks ? destination_of(i) : source_of(i);
      const plain_side place = packed_side(shape, memory + begin, rules_.source_element);
      ASSERT_EQ(begins_[i], static_cast<std::int64_t>(begin)) << "tensor " << i << " of rank " << rank_;
      expect_planned(i, plan_slowly(unpacks ? place : shape, unpacks ? shape : place, rules_, i, begin, packed.bytes));
      if (HasFatalFailure()) return;
      begin += packed_step(shape, rules_, unpacks, packed.alignment);
    }
    ASSERT_EQ(begins_[slot_count], static_cast<std::int64_t>(begin));
    expect_header();
  }

  random_source random_{77};
  std::vector<unsigned char> source_bytes_ = std::vector<unsigned char>(slot_count * slot_bytes);
  std::vector<unsigned char> destination_bytes_ = std::vector<unsigned char>(slot_count * slot_bytes);
  std::vector<map_patch> source_patches_ = std::vector<map_patch>(slot_count);
  std::vector<map_patch> destination_patches_ = std::vector<map_patch>(slot_count);
  spoilt::slots where_{reinterpret_cast<std::uint64_t>(source_bytes_.data()),
                       reinterpret_cast<std::uint64_t>(destination_bytes_.data()), source_patches_.data(),
                       destination_patches_.data()};
  std::vector<unsigned char> scale_bytes_ = std::vector<unsigned char>(slot_count * slot_bytes);
  std::vector<map_patch> scale_patches_ = std::vector<map_patch>(slot_count);
  std::vector<address_window> windows_ = std::vector<address_window>(3 * slot_count);
  std::vector<tensor_status> statuses_ = std::vector<tensor_status>(slot_count);
  std::vector<std::int64_t> begins_ = std::vector<std::int64_t>(slot_count + 1);
  batch_header header_;
  batch_header wanted_;
  planning_rules rules_;
  ragged::run with_{on_host{}};
  std::uint32_t rank_{};
  std::uint32_t met_{};
};

TEST_F(ragged_judged, pairs_of_tensors) {
  for (std::uint32_t trial = 0; trial < trials; ++trial) {
    const std::uint32_t rank = 1 + trial % max_rank;
    const std::uint32_t item = random_.pick<std::uint32_t>({1, 2, 3, 4, 8, 16});
    draw({rank, item, item});
    compare_pairs(ragged::copy(source(), destination(), with_));
    draw({rank, 2, 4, spoilt::reduced});
    rules_.relation = shape_relation::reduced;
    compare_pairs(
        ragged::reduce_rows(source(), ragged::value_type::f16, ragged::row_reduction::sum, destination(), with_));
    if (rank == 1) continue;
    if (rank == 2) {
      draw({rank, 2, 4, spoilt::summed});
      rules_.relation = shape_relation::summed;
      compare_pairs(
          ragged::column_sums(source(), ragged::value_type::f16, destination(), ragged::value_type::f32, with_));
    }
    draw({rank, item, item, spoilt::swapped});
    rules_.relation = shape_relation::swapped;
    compare_pairs(ragged::transpose(source(), destination(), with_));
  }
  expect_met({fault::dim, fault::stride, fault::address, fault::window, fault::mismatch, fault::overlap});
}

/// A third side has faults of its own, in addition to those of the pair.
TEST_F(ragged_judged, tensors_with_scales) {
  const ragged::quantize_values values{ragged::value_type::f16, ragged::value_type::f8_e5m2,
                                       ragged::scale_block::block_1x128};
  for (std::uint32_t trial = 0; trial < trials; ++trial) {
    draw({1 + trial % max_rank, 2, 1});
    source_patches_[trial].global_dim[0] = destination_patches_[trial].global_dim[0] = 0;  // empty, if not spoilt
    spoilt::draw_scales(random_, source_patches_.data(), rank_, scale_memory(), scale_patches_.data());
    const tensor_batch scales = described(scale_patches_, sizeof(float));
    ASSERT_TRUE(ragged::quantize(source(), destination(), scales, values, with_));
    for (std::uint64_t i = 0; i < slot_count; ++i) {
      expected_plan plan = plan_slowly(source_of(i), destination_of(i), rules_, i);
      const plain_side third = side_of(scale_patches_[i]);
      std::vector<std::uint64_t> wanted = source_of(i).dim;
      wanted[0] = spoilt::blocks_of(wanted[0]);
      if (!tensor_status{plan.status}.is_empty()) {
        if (!slow::has_zero(third)) plan.status |= slow::faults(third, sizeof(float), true, rules_);
        if (third.dim != wanted) plan.status |= static_cast<std::uint32_t>(fault::mismatch);
      }
      expect_planned(i, plan);
      if (HasFatalFailure()) return;
    }
    expect_header();
  }
  expect_met({fault::dim, fault::stride, fault::address, fault::window, fault::mismatch, fault::overlap});
}

TEST_F(ragged_judged, packed_tensors) {
  for (std::uint32_t trial = 0; trial < trials; ++trial) {
    const std::uint64_t alignment = trial % 2 == 0 ? 2 : 16;
    // Has a third of the room that all tensors need, so some are truncated.
    draw({1 + trial % max_rank, 2, 2});
    const ragged::packed_buffer packed{destination_bytes_.data(), slot_bytes / 3, alignment, begins_.data()};
    compare_packed(ragged::pack(source(), packed, with_), packed, false);
    draw({1 + trial % max_rank, 2, 2});
    const ragged::packed_buffer read{source_bytes_.data(), slot_bytes / 3, alignment, begins_.data()};
    compare_packed(ragged::unpack(read, destination(), with_), read, true);
  }
  expect_met({fault::dim, fault::stride, fault::address, fault::window, fault::overlap, fault::truncated});
}

TEST_F(ragged_judged, dense_tensors) {
  for (std::uint32_t trial = 0; trial < trials; ++trial) {
    const std::uint32_t rank = 1 + trial % max_rank;
    draw({rank, 2, 2});
    dense_batch dense{where_.destination, {3, 4, 5, 6, 7}, {}, slot_bytes};
    rules_.relation = shape_relation::clipped;
    ASSERT_TRUE(ragged::pad(source(), dense, {}, with_));
    for (std::uint64_t i = 0; i < slot_count; ++i) {
      ASSERT_NO_FATAL_FAILURE(expect_planned(i, plan_slowly(source_of(i), dense_of(dense, i), rules_, i)));
    }
    expect_header();
    draw({rank, 2, 2});
    dense = {where_.source, {6, 6, 6, 6, 6}, {}, slot_bytes};
    rules_.source_is_dense = true;
    ASSERT_TRUE(ragged::unpad(dense, destination(), with_));
    for (std::uint64_t i = 0; i < slot_count; ++i) {
      ASSERT_NO_FATAL_FAILURE(expect_planned(i, plan_slowly(dense_of(dense, i), destination_of(i), rules_, i)));
    }
    expect_header();
  }
  expect_met(
      {fault::dim, fault::stride, fault::address, fault::window, fault::mismatch, fault::overlap, fault::truncated});
}

}  // namespace
}  // namespace tmap::testing
