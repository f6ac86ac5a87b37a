// SPDX-License-Identifier: Apache-2.0
// Compares conversions between the value types with CUDA's own host functions.
#include "lib/simulator/ragged_values.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "support/random_spec.hpp"

namespace tmap::simulator {
namespace {

using ragged::value_type;

std::uint8_t to_small(value_type type, float value) {
  std::byte stored{};
  store_value(type, value, &stored);
  return std::to_integer<std::uint8_t>(stored);
}

/// Calls `use` with every bit pattern of the upper 16 bits and random lower ones, and with the
/// neighbours of every tie.
template <class Use>
void for_each_float(const Use& use) {
  testing::random_source random{3};
  for (std::uint32_t upper = 0; upper < 1u << 16; ++upper) {
    for (const std::uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu, random.below32(1u << 16)}) {
      use(std::bit_cast<float>(upper << 16 | lower));
    }
  }
}

TEST(ragged_values, eight_bit_floats_as_cuda_rounds_them) {
  for (const auto& [type, cuda] :
       {std::pair{value_type::f8_e4m3, __NV_E4M3}, std::pair{value_type::f8_e5m2, __NV_E5M2}}) {
    for_each_float([type = type, cuda = cuda](float value) {
      const std::uint8_t expected = __nv_cvt_float_to_fp8(value, __NV_SATFINITE, cuda);
      ASSERT_EQ(to_small(type, value), expected) << value << " in " << static_cast<int>(cuda);
    });
  }
}

TEST(ragged_values, eight_bit_floats_as_cuda_reads_them) {
  for (const auto& [type, cuda] :
       {std::pair{value_type::f8_e4m3, __NV_E4M3}, std::pair{value_type::f8_e5m2, __NV_E5M2}}) {
    for (std::uint32_t bits = 0; bits < 256; ++bits) {
      const auto stored = static_cast<std::byte>(bits);
      const float expected = __half2float(__nv_cvt_fp8_to_halfraw(static_cast<std::uint8_t>(bits), cuda));
      const float found = load_value(type, &stored);
      ASSERT_EQ(std::isnan(found), std::isnan(expected)) << bits;
      if (!std::isnan(found)) {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(found), std::bit_cast<std::uint32_t>(expected)) << bits;
      }
    }
  }
}

TEST(ragged_values, sixteen_bit_floats_as_cuda_rounds_them) {
  for_each_float([](float value) {
    std::uint16_t found;
    std::byte stored[2];
    store_value(value_type::f16, value, stored);
    std::memcpy(&found, stored, 2);
    ASSERT_EQ(found, __half_as_ushort(__float2half_rn(value))) << value;
    store_value(value_type::bf16, value, stored);
    std::memcpy(&found, stored, 2);
    ASSERT_EQ(found, __bfloat16_as_ushort(__float2bfloat16_rn(value))) << value;
  });
}

TEST(ragged_values, bytes_saturate_and_round_to_even) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::pair<float, std::uint8_t> cases[] = {{-1, 0},         {0.5f, 0},          {1.5f, 2},  {2.5f, 2},
                                                  {254.5f, 254},   {255.5f, 255},      {300, 255}, {-infinity, 0},
                                                  {infinity, 255}, {std::nanf(""), 0}, {-0.4f, 0}, {0.500001f, 1}};
  for (const auto& [value, expected] : cases) EXPECT_EQ(to_small(value_type::u8, value), expected) << value;
}

TEST(ragged_values, larger_knows_nans_and_zeros) {
  EXPECT_TRUE(std::isnan(larger(std::nanf(""), 1)) && std::isnan(larger(1, std::nanf(""))));
  EXPECT_FALSE(std::signbit(larger(-0.0f, 0.0f)) || std::signbit(larger(0.0f, -0.0f)));
  EXPECT_EQ(larger(-2, -3), -2);
}

}  // namespace
}  // namespace tmap::simulator
