// SPDX-License-Identifier: Apache-2.0
#include "lib/simulator/float_formats.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace tmap::simulator {
namespace {

TEST(f16, survives_the_way_to_float_and_back) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const bool is_nan = (bits & 0x7fff) > 0x7c00;
    EXPECT_EQ(float_to_f16(f16_to_float(half)), is_nan ? canonical_nan_16 : half);
  }
}

TEST(f16, has_the_value_its_bits_say) {
  EXPECT_EQ(f16_to_float(0x3c00), 1.0f);
  EXPECT_EQ(f16_to_float(0xc248), -3.140625f);
  EXPECT_EQ(f16_to_float(0x0001), std::ldexp(1.0f, -24));
  EXPECT_EQ(f16_to_float(0x7bff), 65504.0f);
}

TEST(f16, rounds_to_nearest_even_at_every_edge) {
  EXPECT_EQ(float_to_f16(65519.0f), 0x7bffu);
  EXPECT_EQ(float_to_f16(65520.0f), 0x7c00u);
  EXPECT_EQ(float_to_f16(std::ldexp(1.0f, -25)), 0u) << "half of the smallest rounds to even";
  EXPECT_EQ(float_to_f16(std::ldexp(1.5f, -25)), 1u);
  EXPECT_EQ(float_to_f16(-std::ldexp(1.5f, -24)), 0x8002u);
  EXPECT_EQ(float_to_f16(std::ldexp(2047.0f, -25)), 0x0400u) << "the largest denormal rounds up to a normal number";
}

TEST(bf16, survives_the_way_to_float_and_back) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto brain = static_cast<std::uint16_t>(bits);
    const bool is_nan = (bits & 0x7fff) > 0x7f80;
    EXPECT_EQ(float_to_bf16(bf16_to_float(brain)), is_nan ? canonical_nan_16 : brain);
  }
}

TEST(bf16, rounds_to_nearest_even) {
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80u);
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82u);
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x7f7fffffu)), 0x7f80u);
}

TEST(tf32, rounds_as_measured) {
  EXPECT_EQ(round_to_tf32(0x3f801000), 0x3f800000u) << "a tie";
  EXPECT_EQ(round_to_tf32(0x3f803000), 0x3f804000u) << "a tie";
  EXPECT_EQ(round_to_tf32(0x3f801001), 0x3f802000u);
  EXPECT_EQ(round_to_tf32(0x3fffffff), 0x40000000u);
  EXPECT_EQ(round_to_tf32(0x007fffff), 0x00800000u);
  EXPECT_EQ(round_to_tf32(0x80000001), 0x80000000u);
  EXPECT_EQ(round_to_tf32(0x7f7fffff), 0x7f800000u);
  EXPECT_EQ(round_to_tf32(0xff7fefff), 0xff7fe000u);
  EXPECT_EQ(round_to_tf32(0xff800000), 0xff800000u);
  EXPECT_EQ(round_to_tf32(0xffffffff), 0x7fffe000u) << "the sign of a NaN is lost";
}

TEST(flush, keeps_the_sign) {
  EXPECT_EQ(flush_denormal(0x807fffff), 0x80000000u);
  EXPECT_EQ(flush_denormal(0x00800000), 0x00800000u);
}

}  // namespace
}  // namespace tmap::simulator
