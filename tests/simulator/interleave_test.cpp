// SPDX-License-Identifier: Apache-2.0
#include "simulator/small_tensor.hpp"

namespace tmap::testing {
namespace {

/// Returns a tensor of rank 3: 4 units per row, 3 slices of 64 or 128 bytes, 2 images.
small_tensor<std::uint32_t> image(interleave layout) {
  small_tensor<std::uint32_t> m{element_type::u32, {4, 3, 2}, {4, 1, 2}};
  const std::uint64_t unit = layout == interleave::bytes_16 ? 16 : 32;
  m.spec.interleave = layout;
  if (layout == interleave::bytes_32) m.spec.swizzle = swizzle::bytes_32;
  m.spec.global_stride_bytes[0] = 4 * unit;
  m.spec.global_stride_bytes[1] = 12 * unit;
  return m;
}

TEST(interleave, counts_dimension_zero_in_units_of_16_bytes) {
  auto m = image(interleave::bytes_16);
  ASSERT_EQ(m.load({1, 0, 0}), 2u * 64);
  EXPECT_EQ(m.tile[0], 4u + 1) << "unit 1 begins after four words";
  EXPECT_EQ(m.tile[11], 15u + 1);
  EXPECT_EQ(m.tile[12], 0u) << "unit 4 is entirely outside";
  EXPECT_EQ(m.tile[15], 0u);
  EXPECT_EQ(m.tile[16], 48u + 4 + 1) << "the next image, not the next slice";
}

TEST(interleave, copies_one_slice_whatever_the_box_says) {
  auto m = image(interleave::bytes_16);
  m.spec.box_dim[1] = 3;
  m.spec.element_stride[1] = 2;
  ASSERT_EQ(m.load({0, 2, 0}), 2u * 64);
  EXPECT_EQ(m.tile[0], 2u * 16 + 1);
  ASSERT_EQ(m.load({0, 3, 0}), 2u * 64);
  EXPECT_EQ(m.tile[0], 0u) << "slice 3 is outside";
}

TEST(interleave, steps_over_units) {
  auto m = image(interleave::bytes_16);
  m.spec.element_stride[0] = 3;
  ASSERT_EQ(m.load({0, 0, 0}), 2u * 2 * 16) << "ceil(4 / 3) units";
  EXPECT_EQ(m.tile[0], 1u);
  EXPECT_EQ(m.tile[4], 3u * 4 + 1);
  EXPECT_EQ(m.tile[8], 48u + 1);
}

TEST(interleave, of_32_bytes_swaps_chunks_in_every_other_line) {
  auto m = image(interleave::bytes_32);
  ASSERT_EQ(m.load({0, 1, 0}), 2u * 128);
  EXPECT_EQ(m.tile[0], 32u + 1);
  EXPECT_EQ(m.tile[31], 32u + 31 + 1) << "four units of 32 bytes";
  EXPECT_EQ(m.tile[32 + 4], 96u + 32 + 1) << "image 1, its chunk 0 in place 1";
  EXPECT_EQ(m.tile[32], 96u + 32 + 4 + 1);
  ASSERT_EQ(m.load({1, 1, 0}), 2u * 128);
  EXPECT_EQ(m.tile[0], 32u + 8 + 1) << "unit 1 begins after eight words";
}

TEST(interleave, lays_rows_without_gaps_under_a_swizzle) {
  auto m = image(interleave::bytes_16);
  m.spec.swizzle = swizzle::bytes_128;
  ASSERT_EQ(m.load({0, 0, 0}), 128u);
  EXPECT_EQ(m.tile[16], 48u + 1) << "64 bytes on, not 128";
}

TEST(interleave, clips_stores_at_the_unit) {
  auto m = image(interleave::bytes_16);
  ASSERT_TRUE(m.store({3, 2, 1}));
  EXPECT_EQ(m.memory[48 + 2 * 16 + 12], 0xeeeeeeeeu);
  EXPECT_EQ(m.memory[48 + 2 * 16 + 11], 48u + 2 * 16 + 12);
  EXPECT_EQ(m.memory[96], 97u);
}

}  // namespace
}  // namespace tmap::testing
