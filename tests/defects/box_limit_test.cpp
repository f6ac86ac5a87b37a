// SPDX-License-Identifier: Apache-2.0
// Reproduces cloudrift-ai/emmy #218: a box of more than 256 elements only failed on the device.
// tmap refuses it on the host and names the rule.
#include <tmap/encode.hpp>
#include <tmap/make_template.hpp>
#include <tmap/validate.hpp>

#include <gtest/gtest.h>

namespace tmap::testing {
namespace {

tensor_spec spec_with_box(std::uint32_t height) {
  const std::uint64_t dims[] = {16, 4096};
  const std::uint32_t box[] = {16, height};
  return packed_spec(element_type::u8, 1 << 20, dims, box);
}

template <class T>
void expect_refused_by_name(const result<T>& answer, std::uint32_t height) {
  ASSERT_FALSE(answer.has_value()) << height;
  EXPECT_EQ(answer.error().code, status::rule_broken);
  EXPECT_EQ(answer.error().first, rule::t17_box_dim_range);
  EXPECT_EQ(answer.error().axis, 1);
  EXPECT_EQ(answer.error().found, height);
  EXPECT_EQ(answer.error().allowed, 256u);
  EXPECT_NE(to_string(answer.error()).find("256"), std::string::npos);
}

TEST(box_limit, emmy_218_a_box_beyond_256_is_refused_on_the_host) {
  for (const std::uint32_t height : {257u, 512u, 4096u, ~0u}) {
    expect_refused_by_name(encode(spec_with_box(height)), height);
    expect_refused_by_name(make_template(spec_with_box(height), patch_address), height);
    expect_refused_by_name(make_zeroed_template(spec_with_box(height), patch_address), height);
  }
  EXPECT_TRUE(broken_rules(spec_with_box(256)).empty());
  EXPECT_TRUE(make_zeroed_template(spec_with_box(256), patch_address).has_value());
}

}  // namespace
}  // namespace tmap::testing
