// SPDX-License-Identifier: Apache-2.0
#include "simulator/small_tensor.hpp"

#include "lib/simulator/reduction_kernels.hpp"

namespace tmap::testing {
namespace {

/// Returns the element in memory after the reduction.
template <class T>
T reduced(reduction operation, element_type type, T memory, T tile) {
  const auto kernel = simulator::kernel_for(operation, type);
  EXPECT_NE(kernel, nullptr);
  if (kernel != nullptr) {
    kernel(reinterpret_cast<std::byte*>(&memory), reinterpret_cast<const std::byte*>(&tile), sizeof memory);
  }
  return memory;
}

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

TEST(reduction, of_integers_wraps) {
  EXPECT_EQ(reduced<u32>(reduction::add, element_type::u32, 0xffffffff, 2), 1u);
  EXPECT_EQ(reduced<u32>(reduction::add, element_type::i32, 0x7fffffff, 1), 0x80000000u);
  EXPECT_EQ(reduced<u64>(reduction::add, element_type::u64, ~0ull, 1), 0u);
}

TEST(reduction, min_and_max_look_at_the_sign) {
  EXPECT_EQ(reduced<u32>(reduction::min, element_type::u32, 0xffffffff, 1), 1u);
  EXPECT_EQ(reduced<u32>(reduction::min, element_type::i32, 0xffffffff, 1), 0xffffffffu);
  EXPECT_EQ(reduced<u32>(reduction::max, element_type::i32, 0xffffffff, 1), 1u);
  EXPECT_EQ(reduced<u64>(reduction::max, element_type::i64, ~0ull, 1), 1u);
  EXPECT_EQ(reduced<u64>(reduction::max, element_type::u64, ~0ull, 1), ~0ull);
}

TEST(reduction, inc_and_dec_wrap_at_the_tile_value) {
  EXPECT_EQ(reduced<u32>(reduction::inc, element_type::u32, 4, 5), 5u);
  EXPECT_EQ(reduced<u32>(reduction::inc, element_type::u32, 5, 5), 0u);
  EXPECT_EQ(reduced<u32>(reduction::inc, element_type::u32, 6, 5), 0u);
  EXPECT_EQ(reduced<u32>(reduction::dec, element_type::u32, 3, 5), 2u);
  EXPECT_EQ(reduced<u32>(reduction::dec, element_type::u32, 5, 5), 4u);
  EXPECT_EQ(reduced<u32>(reduction::dec, element_type::u32, 0, 5), 5u);
  EXPECT_EQ(reduced<u32>(reduction::dec, element_type::u32, 6, 5), 5u);
}

TEST(reduction, of_bits) {
  EXPECT_EQ(reduced<u32>(reduction::bit_and, element_type::i32, 0xff00, 0x0ff0), 0x0f00u);
  EXPECT_EQ(reduced<u32>(reduction::bit_or, element_type::u32, 0xff00, 0x0ff0), 0xfff0u);
  EXPECT_EQ(reduced<u64>(reduction::bit_xor, element_type::u64, 0xff00, 0x0ff0), 0xf0f0u);
}

TEST(reduction, add_keeps_denormals_unless_the_type_flushes) {
  EXPECT_EQ(reduced<u32>(reduction::add, element_type::f32, 1, 1), 2u);
  EXPECT_EQ(reduced<u32>(reduction::add, element_type::f32_ftz, 1, 0x3f800000), 0x3f800000u);
  EXPECT_EQ(reduced<u32>(reduction::add, element_type::f32_ftz, 0x80000001, 0x80000001), 0x80000000u);
  EXPECT_EQ(reduced<u32>(reduction::add, element_type::f32, 0x00400000, 0x00400000), 0x00800000u);
  EXPECT_EQ(reduced<u32>(reduction::add, element_type::f32_ftz, 0x00400000, 0x00400000), 0u) << "before they add up";
  EXPECT_EQ(reduced<u32>(reduction::add, element_type::tf32_ftz, 0x00800001, 0x80800000), 0u) << "the sum is denormal";
  EXPECT_EQ(reduced<u32>(reduction::add, element_type::tf32, 0x3f800001, 0), 0x3f800001u) << "not rounded to TF32";
  EXPECT_EQ(reduced<u16>(reduction::add, element_type::f16, 1, 0x8002), 0x8001u);
  EXPECT_EQ(reduced<u16>(reduction::add, element_type::bf16, 1, 1), 2u);
}

TEST(reduction, add_rounds_to_nearest_even) {
  EXPECT_EQ(reduced<u16>(reduction::add, element_type::f16, 0x3c00, 0x1000), 0x3c00u) << "1 + 2^-11, a tie";
  EXPECT_EQ(reduced<u16>(reduction::add, element_type::f16, 0x3c01, 0x1000), 0x3c02u);
  EXPECT_EQ(reduced<u16>(reduction::add, element_type::f16, 0x7bff, 0x7bff), 0x7c00u);
  EXPECT_EQ(reduced<u16>(reduction::add, element_type::bf16, 0x3f80, 0x3b80), 0x3f80u) << "1 + 2^-8, a tie";
  EXPECT_EQ(reduced<u16>(reduction::add, element_type::bf16, 0x3f81, 0x3b80), 0x3f82u);
}

TEST(reduction, add_answers_with_one_nan) {
  EXPECT_EQ(reduced<u16>(reduction::add, element_type::f16, 0xfe01, 0x3c00), 0x7fffu);
  EXPECT_EQ(reduced<u16>(reduction::add, element_type::bf16, 0x7f80, 0xff80), 0x7fffu);
  EXPECT_EQ(reduced<u32>(reduction::add, element_type::f32, 0x7f800001, 0), 0x7fffffffu);
  EXPECT_EQ(reduced<u64>(reduction::add, element_type::f64, 0x7ff0000000000001, 0xfff0000000000002),
            0xfff0000000000002u);
  EXPECT_EQ(reduced<u64>(reduction::add, element_type::f64, 0x7ff0000000000001, 0), 0x7ff0000000000001u);
  EXPECT_EQ(reduced<u64>(reduction::add, element_type::f64, 0x7ff0000000000000, 0xfff0000000000000),
            0xfff8000000000000u);
}

TEST(reduction, min_and_max_of_small_floats_prefer_numbers) {
  EXPECT_EQ(reduced<u16>(reduction::min, element_type::f16, 0x7e00, 0x3c00), 0x3c00u);
  EXPECT_EQ(reduced<u16>(reduction::max, element_type::f16, 0x3c00, 0xfe00), 0x3c00u);
  EXPECT_EQ(reduced<u16>(reduction::max, element_type::f16, 0x7e00, 0xfe00), 0x7fffu);
  EXPECT_EQ(reduced<u16>(reduction::min, element_type::f16, 0, 0x8000), 0x8000u);
  EXPECT_EQ(reduced<u16>(reduction::max, element_type::f16, 0x8000, 0), 0u);
  EXPECT_EQ(reduced<u16>(reduction::min, element_type::bf16, 0xbf80, 0xc000), 0xc000u);
  EXPECT_EQ(reduced<u16>(reduction::max, element_type::bf16, 0x7f80, 0x7f7f), 0x7f80u) << "infinity is a number";
}

TEST(reduction, exists_for_33_pairs) {
  int pairs = 0;
  for (u32 type = 0; type < hopper_element_type_count; ++type) {
    for (u32 op = 0; op < 8; ++op) {
      pairs += simulator::kernel_for(static_cast<reduction>(op), static_cast<element_type>(type)) != nullptr;
    }
  }
  EXPECT_EQ(pairs, 33);
}

TEST(reduction, touches_the_box_and_clips_like_a_store) {
  small_tensor<u32> m{element_type::u32, {5, 4}, {8, 2}};
  m.spec.global_stride_bytes[0] = 64;
  std::fill(m.tile.begin(), m.tile.end(), 100);
  ASSERT_TRUE(m.reduce(reduction::add, {0, 3}));
  EXPECT_EQ(m.memory[48], 149u);
  EXPECT_EQ(m.memory[55], 156u) << "to the next 16 bytes of the row";
  EXPECT_EQ(m.memory[56], 57u);
  EXPECT_EQ(m.memory[64], 65u) << "row 4 is outside";
}

TEST(reduction, adds_every_row_that_shares_an_address) {
  small_tensor<u32> m{element_type::u32, {4, 4}, {4, 4}};
  m.spec.global_stride_bytes[0] = 0;
  std::fill(m.tile.begin(), m.tile.end(), 100);
  ASSERT_TRUE(m.reduce(reduction::add, {0, 0}));
  EXPECT_EQ(m.memory[0], 401u);
}

}  // namespace
}  // namespace tmap::testing
