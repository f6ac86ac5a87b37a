// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "support/rule_cases.hpp"

namespace tmap::testing {
namespace {

std::string first_broken(const tensor_spec& spec) {
  const violations found = validate(spec, blackwell_limits());
  return found.empty() ? "legal" : info(found[0].id).name;
}

TEST(packed_types, swizzles) {
  const auto refused = [](element_type type, rule id) {
    std::string modes;
    for (std::uint32_t mode = 0; mode <= 6; ++mode) {
      tensor_spec spec = packed_type_spec(type);
      spec.swizzle = swizzle{mode};
      if (broken_rules(spec, blackwell_limits()).contains(id)) modes += std::to_string(mode);
    }
    return modes;
  };
  EXPECT_EQ(refused(element_type::u4_align8, rule::t26_swizzle_u6), "");
  EXPECT_EQ(refused(element_type::u4_align8, rule::t27_swizzle_u4), "");
  EXPECT_EQ(refused(element_type::u4_align16, rule::t26_swizzle_u6), "");
  EXPECT_EQ(refused(element_type::u4_align16, rule::t27_swizzle_u4), "1256");
  EXPECT_EQ(refused(element_type::u6_align16, rule::t26_swizzle_u6), "125");
  EXPECT_EQ(refused(element_type::u6_align16, rule::t27_swizzle_u4), "");
}

TEST(packed_types, extents) {
  const auto inner = [](element_type type, std::uint64_t dim) {
    tensor_spec spec = packed_type_spec(type);
    spec.global_dim[0] = dim;
    return first_broken(spec);
  };
  EXPECT_EQ(inner(element_type::u4_align8, 128), "legal");
  EXPECT_EQ(inner(element_type::u4_align8, 126), "legal");
  EXPECT_EQ(inner(element_type::u4_align8, 127), "T11");
  for (const element_type type : {element_type::u4_align16, element_type::u6_align16}) {
    EXPECT_EQ(inner(type, 256), "legal") << name(type);
    EXPECT_EQ(inner(type, 192), "T10") << name(type);
    tensor_spec wide = packed_type_spec(type);
    wide.box_dim[0] = 256;
    EXPECT_EQ(first_broken(wide), "T19") << name(type);
  }
}

TEST(packed_types, units) {
  EXPECT_EQ(detail::elements_per_16_bytes(element_type::u4_align8), 32u);
  for (const element_type type : {element_type::u4_align16, element_type::u6_align16}) {
    tensor_spec spec = packed_type_spec(type);
    const std::int32_t between[] = {64, 0, 0};
    EXPECT_TRUE(check_load_corner(spec, between).contains(rule::u09_innermost_coordinate)) << name(type);
    const std::int32_t at_a_group[] = {128, 0, 0};
    EXPECT_TRUE(check_load_corner(spec, at_a_group).empty()) << name(type);
    spec.box_dim[0] = 8;
    for (const violation& found : validate(spec, blackwell_limits())) {
      if (found.id == rule::t18_inner_box_multiple_of_16) {
        EXPECT_EQ(found.allowed, 128u) << name(type);
      }
    }
  }
}

TEST(packed_types, of_rank1) {
  for (const element_type type : {element_type::u4_align8, element_type::u4_align16, element_type::u6_align16}) {
    tensor_spec spec = testing::packed_type_spec(type);
    spec.rank = 1;
    EXPECT_TRUE(broken_rules(spec, blackwell_limits()).empty());
    spec.global_dim[0] = 127;
    const rule expected =
        type == element_type::u4_align8 ? rule::t11_global_dim_even : rule::t10_global_dim_packed_type;
    EXPECT_TRUE(broken_rules(spec, blackwell_limits()).contains(expected)) << name(type);
  }
}

}  // namespace
}  // namespace tmap::testing
