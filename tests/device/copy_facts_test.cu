// SPDX-License-Identifier: Apache-2.0
#include "conformance/contents.hpp"
#include "conformance/gpu_tiles.cuh"
#include "device/gpu_fixture.hpp"

#include <tmap/encode.hpp>

#include <cuda/ptx>

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

// Tests facts about single copies. The expected bytes are written out by hand.

namespace tmap::conformance::copy_facts_cases {
namespace {

constexpr std::uint32_t rows = 8;
constexpr std::uint32_t columns = 64;
constexpr std::int32_t lowest = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t highest = std::numeric_limits<std::int32_t>::max();

/// Holds an 8 x 64 FLOAT32 matrix whose words count from 1, and the shared memory of one copy.
class copy_facts : public testing::gpu_test {
 protected:
  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped()) return;
    for (std::uint32_t i = 0; i < words_.size(); ++i) words_[i] = i + 1;
    memory_ = std::make_unique<testing::device_array<std::uint32_t>>(words_);
    const std::uint64_t dims[] = {columns, rows};
    const std::uint32_t box[] = {16, 4};
    spec_ = packed_spec(element_type::f32, memory_->address(), dims, box);
  }

  /// Copies one tile. Returns true if the barrier received its bytes in time.
  bool copy(copy_kind kind, std::int32_t x, std::int32_t y) {
    const auto map = encode(spec_);
    EXPECT_TRUE(map.has_value()) << to_string(map.error());
    return map.has_value() && copy(*map, kind, x, y);
  }

  bool copy(const tensor_map& map, copy_kind kind, std::int32_t x, std::int32_t y) {
    const tile_job job{.kind = kind,
                       .instruction_rank = 2,
                       .coordinates = {x, y},
                       .expected_bytes = static_cast<std::uint32_t>(tile_bytes(spec_))};
    const testing::device_array<tile_job> jobs{std::vector<tile_job>{job}};
    const testing::device_array<tensor_map> maps{std::vector<tensor_map>{map}};
    const testing::device_array<std::byte> image{std::vector<std::byte>(shared_bytes, poison)};
    const testing::device_array<std::uint8_t> in_time{1};
    run_tiles<<<1, threads_of_tile_block, shared_bytes>>>(jobs.data(), maps.data(), image.data(), in_time.data());
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    const auto bytes = image.download();
    shared_.resize(shared_bytes / 4);
    std::memcpy(shared_.data(), bytes.data(), shared_bytes);
    return in_time.download()[0] == 1;
  }

  std::uint32_t tile(std::uint32_t x, std::uint32_t y) const { return shared_[y * 16 + x]; }

  std::vector<std::uint32_t> words_ = std::vector<std::uint32_t>(columns * rows);
  std::unique_ptr<testing::device_array<std::uint32_t>> memory_;
  tensor_spec spec_;
  std::vector<std::uint32_t> shared_;
};

TEST_F(copy_facts, a_box_inside_brings_its_elements) {
  ASSERT_TRUE(copy(copy_kind::load, 4, 2));
  EXPECT_EQ(tile(0, 0), 2 * columns + 4 + 1);
  EXPECT_EQ(tile(15, 3), 5 * columns + 19 + 1);
}

TEST_F(copy_facts, a_box_outside_fills_with_zeros_at_any_coordinate_and_completes_the_barrier) {
  for (const std::int32_t y : {lowest, -100, -4, 8, 1000, highest}) {
    ASSERT_TRUE(copy(copy_kind::load, 0, y)) << y;
    for (std::uint32_t i = 0; i < 64; ++i) ASSERT_EQ(shared_[i], 0u) << y;
  }
  for (const std::int32_t x : {lowest, -16, 64, highest - 15}) {
    ASSERT_TRUE(copy(copy_kind::load, x, 0)) << x;
    for (std::uint32_t i = 0; i < 64; ++i) ASSERT_EQ(shared_[i], 0u) << x;
  }
}

TEST_F(copy_facts, a_box_across_the_corner_fills_only_what_is_outside) {
  ASSERT_TRUE(copy(copy_kind::load, -4, -1));
  EXPECT_EQ(tile(15, 0), 0u);
  EXPECT_EQ(tile(3, 1), 0u);
  EXPECT_EQ(tile(4, 1), 1u);
  EXPECT_EQ(tile(15, 3), 2 * columns + 11 + 1);
}

TEST_F(copy_facts, nan_fill_is_7ff77ff7) {
  spec_.oob_fill = oob_fill::nan;
  ASSERT_TRUE(copy(copy_kind::load, 56, 0));
  EXPECT_EQ(tile(7, 0), 64u);
  EXPECT_EQ(tile(8, 0), 0x7ff77ff7u);
  EXPECT_EQ(tile(15, 3), 0x7ff77ff7u);
}

TEST_F(copy_facts, stride_zero_repeats_row_zero) {
  spec_.global_stride_bytes[0] = 0;
  ASSERT_TRUE(copy(copy_kind::load, 0, 3));
  for (std::uint32_t y = 0; y < 4; ++y) EXPECT_EQ(tile(5, y), 6u);
}

TEST_F(copy_facts, stride_16_slides_a_window) {
  spec_.global_stride_bytes[0] = 16;
  ASSERT_TRUE(copy(copy_kind::load, 0, 1));
  for (std::uint32_t y = 0; y < 4; ++y) EXPECT_EQ(tile(0, y), 4 * (y + 1) + 1);
}

TEST_F(copy_facts, the_safe_empty_map_reads_one_element_and_zeros) {
  spec_.global_dim[0] = spec_.global_dim[1] = 1;
  ASSERT_TRUE(copy(copy_kind::load, 0, 0));
  EXPECT_EQ(shared_[0], 1u);
  for (std::uint32_t i = 1; i < 64; ++i) ASSERT_EQ(shared_[i], 0u);
  ASSERT_TRUE(copy(copy_kind::store, 4, 0));
  EXPECT_EQ(memory_->download(), words_);
}

TEST_F(copy_facts, a_store_outside_writes_nothing) {
  for (const std::int32_t y : {8, 1000, highest}) ASSERT_TRUE(copy(copy_kind::store, 0, y));
  ASSERT_TRUE(copy(copy_kind::store, 64, 0));
  EXPECT_EQ(memory_->download(), words_);
}

TEST_F(copy_facts, a_store_goes_on_to_the_next_16_bytes_of_a_row) {
  spec_.global_dim[0] = 13;
  ASSERT_TRUE(copy(copy_kind::store, 0, 0));
  const auto after = memory_->download();
  for (std::uint32_t x = 0; x < columns; ++x) {
    EXPECT_EQ(after[x], x < 16 ? 0xeeeeeeeeu : words_[x]) << x;
  }
  ASSERT_TRUE(copy(copy_kind::load, 0, 4));
  EXPECT_EQ(tile(12, 0), 4 * columns + 13);
  EXPECT_EQ(tile(13, 0), 0u) << "a load ends at the element";
}

TEST_F(copy_facts, box_4_with_stride_5_brings_one_row) {
  spec_.element_stride[1] = 5;
  ASSERT_TRUE(copy(copy_kind::load, 0, 2));
  EXPECT_EQ(tile(0, 0), 2 * columns + 1);
  EXPECT_EQ(tile(0, 1), 0xeeeeeeeeu);
}

__global__ void replace_stride(tensor_map* map, std::uint64_t stride) {
  cuda::ptx::tensormap_replace_global_stride(cuda::ptx::space_global, map, cuda::ptx::n32_t<0>{}, stride);
}

TEST_F(copy_facts, a_stride_replaced_by_264_becomes_256) {
  spec_.global_stride_bytes[0] = 16;
  const auto map = encode(spec_);
  ASSERT_TRUE(map.has_value());
  const testing::device_array<tensor_map> slot{std::vector<tensor_map>{*map}};
  replace_stride<<<1, 1>>>(slot.data(), 264);
  spec_.global_stride_bytes[0] = 256;
  const auto expected = encode(spec_);
  ASSERT_TRUE(expected.has_value());
  EXPECT_EQ(slot.download()[0], *expected);
}

}  // namespace
}  // namespace tmap::conformance::copy_facts_cases
