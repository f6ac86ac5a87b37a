// SPDX-License-Identifier: Apache-2.0
#include "simulator/small_tensor.hpp"

namespace tmap::testing {
namespace {

using word_tensor = small_tensor<std::uint32_t>;

TEST(store, writes_the_box_and_nothing_else) {
  word_tensor m{element_type::u32, {16, 8}, {4, 2}};
  const auto before = m.memory;
  for (std::uint32_t i = 0; i < 8; ++i) m.tile[i] = 1000 + i;
  ASSERT_TRUE(m.store({8, 3}));
  for (std::uint32_t i = 0; i < m.memory.size(); ++i) {
    const bool in_box = i / 16 >= 3 && i / 16 < 5 && i % 16 >= 8 && i % 16 < 12;
    EXPECT_EQ(m.memory[i], in_box ? 1000 + (i / 16 - 3) * 4 + i % 4 : before[i]) << i;
  }
}

TEST(store, drops_rows_outside) {
  word_tensor m{element_type::u32, {4, 4}, {4, 4}};
  ASSERT_TRUE(m.store({0, 3}));
  EXPECT_EQ(m.memory[3 * 4], 0xeeeeeeeeu);
  EXPECT_EQ(m.memory[4 * 4], 17u);
  const auto before = m.memory;
  ASSERT_TRUE(m.store({0, 4}));
  ASSERT_TRUE(m.store({4, 0}));
  ASSERT_TRUE(m.store({0, 0x7fffffff}));
  EXPECT_EQ(m.memory, before);
}

TEST(store, goes_on_to_the_next_16_bytes_of_a_ragged_row) {
  word_tensor m{element_type::u32, {5, 2}, {12, 1}};
  m.spec.global_stride_bytes[0] = 64;
  ASSERT_TRUE(m.store({0, 0}));
  EXPECT_EQ(m.memory[7], 0xeeeeeeeeu) << "three elements past the tensor";
  EXPECT_EQ(m.memory[8], 9u);
  small_tensor<std::uint8_t> bytes{element_type::u8, {1, 1}, {32, 1}};
  bytes.spec.global_stride_bytes[0] = 64;
  ASSERT_TRUE(bytes.store({0, 0}));
  EXPECT_EQ(bytes.memory[15], 0xeeu);
  EXPECT_EQ(bytes.memory[16], 17u);
}

TEST(store, leaves_the_rows_between_element_strides_alone) {
  word_tensor m{element_type::u32, {4, 8}, {4, 5}};
  m.spec.element_stride[1] = 2;
  ASSERT_TRUE(m.store({0, 1}));
  for (std::uint32_t y = 0; y < 8; ++y) {
    const bool written = y == 1 || y == 3 || y == 5;
    EXPECT_EQ(m.memory[y * 4], written ? 0xeeeeeeeeu : y * 4 + 1) << y;
  }
}

TEST(store, undoes_the_swizzle_of_a_load) {
  word_tensor m{element_type::u32, {32, 16}, {32, 16}};
  m.spec.swizzle = swizzle::bytes_128;
  const auto before = m.memory;
  ASSERT_NE(m.load({0, 0}, 384), 0u);
  std::fill(m.memory.begin(), m.memory.begin() + 512, 0);
  ASSERT_TRUE(m.store({0, 0}, 384));
  EXPECT_EQ(m.memory, before);
}

TEST(store, copies_tf32_bits_unrounded) {
  word_tensor m{element_type::tf32, {4, 1}, {4, 1}};
  m.tile[0] = 0x3f801001;
  ASSERT_TRUE(m.store({0, 0}));
  EXPECT_EQ(m.memory[0], 0x3f801001u);
}

}  // namespace
}  // namespace tmap::testing
