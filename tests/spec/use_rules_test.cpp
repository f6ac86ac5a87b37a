// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <type_traits>

#include "support/rule_cases.hpp"

namespace tmap::testing {
namespace {

static_assert(!std::is_convertible_v<std::uint32_t, reduction_mask> && !std::is_convertible_v<reduction_mask, bool>);

rule_set load_at(element_type type, std::int32_t inner, interleave layout = interleave::none) {
  tensor_spec spec = plain_spec();
  spec.type = type;
  spec.interleave = layout;
  const std::int32_t corner[] = {inner, -7, 5};
  return check_load_corner(spec, corner);
}

TEST(use_rules, innermost_coordinate_is_a_multiple_of16_bytes) {
  for (std::uint32_t type = 0; type < hopper_element_type_count; ++type) {
    const auto id = static_cast<element_type>(type);
    const auto unit = static_cast<std::int32_t>(16 / element_bytes(id));
    for (const std::int32_t legal : {0, unit, -unit, 5 * unit, std::numeric_limits<std::int32_t>::min()}) {
      EXPECT_TRUE(load_at(id, legal).empty()) << name(id) << " " << legal;
    }
    for (const std::int32_t broken : {1, -1, unit - 1, unit + 1, std::numeric_limits<std::int32_t>::max()}) {
      EXPECT_TRUE(load_at(id, broken).contains(rule::u09_innermost_coordinate)) << name(id) << " " << broken;
    }
  }
}

TEST(use_rules, an_interleaved_map_takes_any_coordinate) {
  EXPECT_TRUE(load_at(element_type::f16, 3, interleave::bytes_16).empty());
  EXPECT_TRUE(load_at(element_type::f16, -1, interleave::bytes_32).empty());
}

TEST(use_rules, stores_take_no_negative_coordinate) {
  for (std::uint32_t axis = 0; axis < 3; ++axis) {
    std::int32_t corner[] = {0, 0, 0};
    EXPECT_TRUE(check_store_corner(plain_spec(), corner).empty());
    corner[axis] = -4;
    EXPECT_TRUE(check_store_corner(plain_spec(), corner).contains(rule::u03_store_corner)) << axis;
    EXPECT_TRUE(check_load_corner(plain_spec(), corner).empty()) << "a load may begin outside";
  }
}

TEST(use_rules, shared_address_by_swizzle) {
  const std::pair<swizzle, std::uint64_t> repeats[] = {
      {swizzle::none, 128}, {swizzle::bytes_32, 256}, {swizzle::bytes_64, 512}, {swizzle::bytes_128, 1024}};
  for (const auto& [mode, repeat] : repeats) {
    tensor_spec spec = plain_spec();
    spec.swizzle = mode;
    EXPECT_TRUE(check_shared_address(spec, 0).empty());
    EXPECT_TRUE(check_shared_address(spec, 3 * repeat).empty()) << repeat;
    EXPECT_FALSE(check_shared_address(spec, repeat / 2).empty()) << repeat;
    EXPECT_FALSE(check_shared_address(spec, repeat + 16).empty()) << repeat;
  }
}

TEST(use_rules, thirty_three_reductions_exist) {
  const std::uint32_t counts[] = {0, 0, 8, 6, 6, 2, 3, 1, 1, 3, 1, 1, 1};
  std::uint32_t all = 0;
  for (std::uint32_t type = 0; type < hopper_element_type_count; ++type) {
    tensor_spec spec = plain_spec();
    spec.type = static_cast<element_type>(type);
    std::uint32_t count = 0;
    for (std::uint32_t op = 0; op < 8; ++op) count += check_reduction(spec, static_cast<reduction>(op)).empty();
    EXPECT_EQ(count, counts[type]) << name(spec.type);
    all += count;
  }
  EXPECT_EQ(all, 33u);
}

TEST(use_rules, instruction_rank) {
  for (std::uint32_t rank = 1; rank <= 5; ++rank) {
    EXPECT_EQ(check_instruction_rank(plain_spec(), rank).empty(), rank == 3);
  }
}

}  // namespace
}  // namespace tmap::testing
