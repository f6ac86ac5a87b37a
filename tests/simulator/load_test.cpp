// SPDX-License-Identifier: Apache-2.0
#include "simulator/small_tensor.hpp"

#include <limits>

namespace tmap::testing {
namespace {

using word_tensor = small_tensor<std::uint32_t>;

TEST(load, copies_a_box_row_by_row) {
  word_tensor m{element_type::u32, {16, 8}, {4, 2}};
  EXPECT_EQ(m.load({4, 3}), 4u * 2 * 4);
  EXPECT_EQ(m.tile[0], 3u * 16 + 4 + 1);
  EXPECT_EQ(m.tile[3], 3u * 16 + 7 + 1);
  EXPECT_EQ(m.tile[4], 4u * 16 + 4 + 1);
  EXPECT_EQ(m.tile[8], 0xeeeeeeeeu) << "past the tile";
}

TEST(load, follows_the_strides_of_five_dimensions) {
  word_tensor m{element_type::u32, {4, 2, 3, 2, 5}, {4, 1, 2, 1, 2}};
  ASSERT_EQ(m.load({0, 1, 1, 1, 3}), 64u);
  // The axes' steps are 4, 8, 24 and 48 elements.
  const std::uint32_t first = 4 + 8 + 24 + 3 * 48 + 1;
  EXPECT_EQ(m.tile[0], first);
  EXPECT_EQ(m.tile[4], first + 8);
  EXPECT_EQ(m.tile[8], first + 48);
  EXPECT_EQ(m.tile[12], first + 56);
}

TEST(load, fills_what_lies_outside_on_either_side) {
  word_tensor m{element_type::u32, {8, 4}, {8, 3}};
  ASSERT_EQ(m.load({-4, -1}), 96u) << "the barrier receives the whole box";
  for (std::size_t x = 0; x < 8; ++x) EXPECT_EQ(m.tile[x], 0u) << "the row above";
  EXPECT_EQ(m.tile[8 + 3], 0u);
  EXPECT_EQ(m.tile[8 + 4], 1u);
  ASSERT_EQ(m.load({4, 2}), 96u);
  EXPECT_EQ(m.tile[3], 2u * 8 + 8);
  EXPECT_EQ(m.tile[4], 0u);
  EXPECT_EQ(m.tile[16], 0u) << "the row below";
}

TEST(load, ends_at_the_element_in_a_ragged_row) {
  word_tensor m{element_type::u32, {5, 2}, {8, 2}};
  m.spec.global_stride_bytes[0] = 32;
  ASSERT_EQ(m.load({0, 0}), 64u);
  EXPECT_EQ(m.tile[4], 5u);
  EXPECT_EQ(m.tile[5], 0u);
  EXPECT_EQ(m.tile[8], 9u);
}

TEST(load, takes_any_coordinate) {
  constexpr std::int32_t lowest = std::numeric_limits<std::int32_t>::min();
  constexpr std::int32_t highest = std::numeric_limits<std::int32_t>::max();
  word_tensor m{element_type::u32, {8, 4}, {8, 3}};
  m.spec.element_stride[1] = 2;
  for (const std::int32_t x : {lowest, -8, 0, 8, highest - 3}) {
    for (const std::int32_t y : {lowest, -4, 4, highest}) {
      m.tile[0] = 1;
      ASSERT_EQ(m.load({x, y}), 64u);
      EXPECT_EQ(m.tile[0], 0u) << x << ' ' << y;
    }
  }
}

TEST(load, reaches_the_last_of_2_to_the_31_rows) {
  word_tensor m{element_type::u32, {4, 1}, {4, 4}};
  m.spec.global_dim[1] = std::uint64_t{1} << 31;
  m.spec.global_stride_bytes[0] = 0;
  ASSERT_EQ(m.load({0, std::numeric_limits<std::int32_t>::max() - 1}), 64u);
  EXPECT_EQ(m.tile[4], 1u) << "row 2^31 - 1";
  EXPECT_EQ(m.tile[8], 0u) << "row 2^31";
}

TEST(load, steps_over_rows_and_rounds_their_number_up) {
  word_tensor m{element_type::u32, {4, 16}, {4, 7}};
  m.spec.element_stride[0] = 3;  // without effect
  m.spec.element_stride[1] = 3;
  ASSERT_EQ(m.load({0, -1}), 3u * 16) << "ceil(7 / 3) rows";
  EXPECT_EQ(m.tile[0], 0u) << "row -1";
  for (std::size_t x = 0; x < 4; ++x) {
    EXPECT_EQ(m.tile[4 + x], 2u * 4 + x + 1);
    EXPECT_EQ(m.tile[8 + x], 5u * 4 + x + 1);
  }
  m.spec.box_dim[1] = 4;
  m.spec.element_stride[1] = 5;
  EXPECT_EQ(m.load({0, 0}), 16u) << "one row, not none";
}

TEST(load, reads_rows_that_share_memory) {
  word_tensor m{element_type::u32, {8, 4}, {8, 4}};
  m.spec.global_stride_bytes[0] = 16;
  ASSERT_EQ(m.load({0, 0}), 128u);
  EXPECT_EQ(m.tile[8], 5u);
  EXPECT_EQ(m.tile[16], 9u);
  m.spec.global_stride_bytes[0] = 0;
  ASSERT_EQ(m.load({0, 0}), 128u);
  EXPECT_EQ(m.tile[8], 1u);
}

TEST(load, fills_with_the_nan_of_each_width) {
  small_tensor<std::uint16_t> half{element_type::f16, {9, 2}, {16, 2}};
  half.spec.global_stride_bytes[0] = 32;
  half.spec.oob_fill = oob_fill::nan;
  ASSERT_NE(half.load({0, 0}), 0u);
  EXPECT_EQ(half.tile[8], 9u);
  EXPECT_EQ(half.tile[9], 0x7ff7u);
  small_tensor<std::uint64_t> whole{element_type::f64, {3, 2}, {4, 2}};
  whole.spec.global_stride_bytes[0] = 32;
  whole.spec.oob_fill = oob_fill::nan;
  ASSERT_NE(whole.load({0, 0}), 0u);
  EXPECT_EQ(whole.tile[3], 0x7ff77ff77ff77ff7u);
}

TEST(load, rounds_tf32_but_not_its_fill) {
  word_tensor m{element_type::tf32, {3, 1}, {4, 1}};
  m.spec.global_stride_bytes[0] = 16;
  m.spec.oob_fill = oob_fill::nan;
  m.memory[0] = 0x3f801001;
  m.memory[1] = 0x7f800001;
  m.memory[2] = 0x00001001;
  ASSERT_NE(m.load({0, 0}), 0u);
  EXPECT_EQ(m.tile[0], 0x3f802000u);
  EXPECT_EQ(m.tile[1], 0x7fffe000u);
  EXPECT_EQ(m.tile[2], 0x00002000u) << "a denormal is rounded, not flushed";
  EXPECT_EQ(m.tile[3], 0x7ff77ff7u);
  m.spec.type = element_type::f32_ftz;
  ASSERT_NE(m.load({0, 0}), 0u);
  EXPECT_EQ(m.tile[2], 0x00001001u) << "FTZ does not apply to loads";
}

}  // namespace
}  // namespace tmap::testing
