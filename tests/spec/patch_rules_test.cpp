// SPDX-License-Identifier: Apache-2.0
// Tests on the host what the device encoder decides about patches.
#include <tmap/patch_rules.hpp>
#include <tmap/validate.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "support/patch_cases.hpp"
#include "support/spec_text.hpp"

namespace tmap::testing {
namespace {

/// Returns the spec of the patched map, built field by field from the meaning of the fields' names.
tensor_spec asked(const map_template& base, const map_patch& patch) {
  const auto names = [&](patch_fields field) { return has_any(base.fields, field); };
  tensor_spec spec = base.spec;
  if (names(patch_address)) spec.global_address = patch.global_address;
  for (std::uint32_t axis = 0; axis < spec.rank; ++axis) {
    if (names(patch_dim(axis))) spec.global_dim[axis] = patch.global_dim[axis];
    if (names(patch_box(axis))) spec.box_dim[axis] = patch.box_dim[axis];
    if (names(patch_element_stride(axis))) spec.element_stride[axis] = patch.element_stride[axis];
  }
  for (std::uint32_t index = 0; index + 1 < spec.rank; ++index) {
    if (names(patch_stride(index))) spec.global_stride_bytes[index] = patch.global_stride_bytes[index];
  }
  return spec;
}

map_status judge(const map_template& base, const map_patch& patch) {
  return judge_patched(patched_spec(base, patch), base.fields, nullptr, 0);
}

TEST(patch_rules, verdict_equals_broken_rules_of_the_patched_spec) {
  random_patch_source source{11};
  std::uint64_t broken = 0;
  constexpr std::uint64_t count = 2'000'000;
  map_template base;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (i % 16 == 0) base = source.base();
    const map_patch patch = source.any(base);
    const tensor_spec spec = asked(base, patch);
    const rule_set expected = broken_rules(spec);
    ASSERT_EQ(broken_patch_rules(patched_spec(base, patch), base.fields), expected) << to_text(spec);
    broken += !expected.empty();
  }
  EXPECT_GT(broken, count / 4);
  EXPECT_LT(broken, count * 3 / 4);
}

TEST(patch_rules, each_broken_alone) {
  std::vector<rule> seen;
  for (const patch_case& each : all_patch_cases()) {
    const map_template base = make_zeroed_template(each.base, patch_everything(each.base.rank)).value();
    rule_set expected;
    expected.insert(each.id);
    const bool is_empty = each.what == "dim 0";
    EXPECT_TRUE(judge(base, each.good).is_good()) << info(each.id).name << ": " << each.what;
    EXPECT_EQ(judge(base, each.bad).is_empty(), is_empty) << info(each.id).name << ": " << each.what;
    EXPECT_EQ(broken_patch_rules(patched_spec(base, each.bad), base.fields), expected) << each.what;
    seen.push_back(each.id);
  }
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  EXPECT_TRUE(std::equal(seen.begin(), seen.end(), std::begin(patchable_rules), std::end(patchable_rules)));
}

TEST(patch_rules, fields_the_template_does_not_name_are_not_looked_at) {
  map_patch garbage{};
  std::fill(std::begin(garbage.global_dim), std::end(garbage.global_dim), ~0ull);
  std::fill(std::begin(garbage.box_dim), std::end(garbage.box_dim), ~0u);
  const map_template base = make_zeroed_template(plain_spec(), patch_address).value();
  garbage.global_address = 4096;
  EXPECT_TRUE(judge(base, garbage).is_good());
  garbage.global_address = 4097;
  EXPECT_TRUE(rules_of(judge(base, garbage)).contains(rule::t06_address_multiple_of_16));
}

TEST(patch_rules, empty_wins_over_every_rule) {
  const map_template base = make_zeroed_template(plain_spec(), patch_everything(3)).value();
  map_patch patch{};
  patch.global_address = 3;
  for (std::uint32_t axis = 0; axis < 3; ++axis) {
    std::fill(std::begin(patch.global_dim), std::end(patch.global_dim), ~0ull);
    patch.global_dim[axis] = 0;
    EXPECT_TRUE(judge(base, patch).is_empty()) << axis;
    EXPECT_FALSE(judge(base, patch).is_bad()) << axis;
  }
}

TEST(patch_rules, warnings_never_refuse) {
  const map_template base = make_zeroed_template(plain_spec(), patch_everything(3)).value();
  map_patch patch = patch_of(plain_spec());
  patch.global_stride_bytes[0] = 0;
  ASSERT_TRUE(validate(patched_spec(base, patch)).rules().contains(rule::t16_stride_overlap));
  EXPECT_TRUE(judge(base, patch).is_good());
}

TEST(patch_rules, the_empty_map_is_legal_for_every_template_and_fits_one_page) {
  constexpr address_window page{0x7f0000000080, 0x7f0000000100};
  random_patch_source source{5};
  for (int i = 0; i < 100'000; ++i) {
    const map_template base = source.base();
    const tensor_spec spec = empty_spec(base.spec, page.begin);
    ASSERT_TRUE(broken_rules(spec).empty()) << to_text(spec);
    ASSERT_TRUE(check_address_windows(spec, &page, 1).empty());
  }
}

TEST(patch_rules, the_empty_map_is_legal_for_every_type) {
  for (std::uint32_t number = 0; number < element_type_count; ++number) {
    const tensor_spec spec = testing::packed_type_spec(static_cast<element_type>(number));
    const rule_set broken = broken_rules(empty_spec(spec, 4096), blackwell_limits());
    EXPECT_TRUE(broken.empty()) << name(spec.type);
  }
}

class address_windows : public ::testing::Test {
 protected:
  /// Describes 3 rows of 13 floats, 64 bytes apart, from 4096: 180 bytes, of which stores may touch
  /// 192.
  address_windows() {
    spec_.global_address = 4096;
    spec_.type = element_type::f32;
    spec_.rank = 2;
    spec_.global_dim[0] = 13;
    spec_.global_dim[1] = 3;
    spec_.global_stride_bytes[0] = 64;
  }
  bool inside(std::vector<address_window> windows) const {
    const rule_set broken = check_address_windows(spec_, windows.data(), static_cast<std::uint32_t>(windows.size()));
    EXPECT_TRUE(broken.empty() || broken.contains(rule::t38_address_window));
    return broken.empty();
  }
  tensor_spec spec_;
};

TEST_F(address_windows, hold_every_byte_a_store_may_touch) {
  EXPECT_TRUE(inside({}));
  EXPECT_TRUE(inside({{4096, 4096 + 192}}));
  EXPECT_FALSE(inside({{4096, 4096 + 191}}));
  EXPECT_FALSE(inside({{4097, 8192}}));
  EXPECT_FALSE(inside({{0, 4096}}));
}

TEST_F(address_windows, one_of_them_holds_the_whole_tensor) {
  EXPECT_TRUE(inside({{0, 16}, {1 << 20, 1 << 21}, {4000, 5000}}));
  EXPECT_FALSE(inside({{4096, 4160}, {4160, 8192}}));
  EXPECT_FALSE(inside({{8192, 4096}}));
}

TEST_F(address_windows, sums_do_not_wrap) {
  spec_.global_dim[1] = 1ull << 31;
  spec_.global_stride_bytes[0] = (1ull << 40) - 16;
  EXPECT_FALSE(inside({{0, 1ull << 57}}));
  spec_.global_address = ~0ull - 15;
  spec_.global_dim[1] = 1;
  EXPECT_FALSE(inside({{0, 1ull << 57}}));
}

}  // namespace
}  // namespace tmap::testing
