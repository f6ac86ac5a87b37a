// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <type_traits>

#include <tmap/encode.hpp>
#include <tmap/make_template.hpp>
#include <tmap/route.hpp>
#include <tmap/validate.hpp>

#include "support/refusal.hpp"
#include "support/rule_cases.hpp"

namespace tmap::testing {
namespace {

/// Returns a spec whose patched fields hold values that no map may have.
tensor_spec with_rubbish_extents() {
  tensor_spec spec = plain_spec();
  spec.global_address = 3;
  for (auto& dim : spec.global_dim) dim = 0;
  for (auto& stride : spec.global_stride_bytes) stride = 7;
  return spec;
}

TEST(zeroed_template, ignores_patched_fields) {
  const auto made = make_zeroed_template(with_rubbish_extents(), patch_extents(3));
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_EQ(made->map, tensor_map{});
  EXPECT_EQ(made->fields, patch_extents(3));
  EXPECT_TRUE(validate(made->spec).empty()) << to_string(validate(made->spec));
  EXPECT_EQ(made->spec.box_dim[1], plain_spec().box_dim[1]);
}

TEST(zeroed_template, keeps_fields_that_are_not_patched) {
  const auto made = make_zeroed_template(plain_spec(), patch_address | patch_dim(2));
  ASSERT_TRUE(made);
  EXPECT_EQ(made->spec.global_dim[0], plain_spec().global_dim[0]);
  EXPECT_EQ(made->spec.global_dim[1], plain_spec().global_dim[1]);
  EXPECT_EQ(made->spec.global_dim[2], 1u);
  EXPECT_EQ(made->spec.global_stride_bytes[1], plain_spec().global_stride_bytes[1]);
}

TEST(zeroed_template, has_no_l2_promotion) {
  tensor_spec spec = plain_spec();
  spec.l2_promotion = l2_promotion::bytes_256;
  const auto made = make_zeroed_template(spec, patch_extents(3));
  ASSERT_TRUE(made);
  EXPECT_EQ(made->spec.l2_promotion, l2_promotion::none);
}

TEST(zeroed_template, refuses_what_every_map_would_break) {
  tensor_spec spec = with_rubbish_extents();
  spec.box_dim[0] = 3;
  const auto made = make_zeroed_template(spec, patch_extents(3));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, status::rule_broken);
  EXPECT_EQ(made.error().first, rule::t18_inner_box_multiple_of_16);
}

TEST(zeroed_template, refuses_fields_that_are_not_patched_and_broken) {
  const auto made = make_zeroed_template(with_rubbish_extents(), patch_address);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().first, rule::t09_global_dim_range);
}

TEST(zeroed_template, placeholders_are_legal_for_every_layout) {
  for (const auto layout : {interleave::bytes_16, interleave::bytes_32}) {
    EXPECT_TRUE(make_zeroed_template(interleaved_spec(layout), patch_everything(3)));
  }
}

TEST(zeroed_template, refuses_fields_of_other_axes) {
  for (const patch_fields fields : {patch_dim(3), patch_stride(2), patch_box(4), patch_fields{1u << 20}}) {
    const auto made = make_zeroed_template(plain_spec(), fields);
    expect_refused(made, "fields", bits_of(fields), bits_of(patch_everything(3)), "a field beyond the rank");
  }
}

// An integer does not convert to a set of fields, nor a set to an integer.
static_assert(!std::is_convertible_v<std::uint32_t, patch_fields> && !std::is_convertible_v<patch_fields, bool>);
template <class Fields>
concept makes_template = requires(tensor_spec spec, Fields fields) {
  make_template(spec, fields);
};
static_assert(makes_template<patch_fields> && !makes_template<std::uint32_t> && !makes_template<route_set>);

// No constant exists for an axis that no tensor has.
template <std::uint32_t Axis>
concept has_fields = requires {
  typename std::integral_constant<patch_fields, patch_dim(Axis)>;
  typename std::integral_constant<patch_fields, patch_box(Axis)>;
  typename std::integral_constant<patch_fields, patch_element_stride(Axis)>;
};
template <std::uint32_t Axis>
concept has_any_field = requires {
  typename std::integral_constant<patch_fields, patch_dim(Axis)>;
}
|| requires {
  typename std::integral_constant<patch_fields, patch_box(Axis)>;
}
|| requires {
  typename std::integral_constant<patch_fields, patch_element_stride(Axis)>;
};
template <std::uint32_t Index>
concept has_stride = requires {
  typename std::integral_constant<patch_fields, patch_stride(Index)>;
};
static_assert(has_fields<0> && has_fields<4> && !has_any_field<5> && !has_any_field<31> && !has_any_field<~0u>);
static_assert(has_stride<0> && has_stride<3> && !has_stride<4> && !has_stride<~0u>);

TEST(zeroed_template, an_axis_that_no_tensor_has_names_no_other_field) {
  const auto refused = [](patch_fields field, std::uint32_t axis) {
    EXPECT_FALSE(has_any(field, patch_everything(max_rank))) << axis;
    expect_refused(make_zeroed_template(plain_spec(), field), "fields", bits_of(field), bits_of(patch_everything(3)),
                   std::to_string(axis));
  };
  refused(patch_stride(4), 4);
  for (const std::uint32_t axis : {5u, 6u, 8u, 9u, 14u, 30u, 31u, 32u, ~0u}) {
    refused(patch_dim(axis), axis);
    refused(patch_stride(axis), axis);
    refused(patch_box(axis), axis);
    refused(patch_element_stride(axis), axis);
  }
}

TEST(zeroed_template, a_broken_rank_is_a_broken_rule) {
  for (const std::uint32_t rank : {0u, 6u, ~0u}) {
    tensor_spec spec = plain_spec();
    spec.rank = rank;
    const auto made = make_zeroed_template(spec, ~patch_fields{0});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, status::rule_broken) << rank;
    EXPECT_TRUE(made.error().rules.contains(rule::t03_rank));
  }
}

TEST(map_template, holds_the_drivers_bytes_or_says_why_not) {
  const auto made = make_template(with_rubbish_extents(), patch_extents(3));
  const auto map = encode(plain_spec());
  ASSERT_EQ(made.has_value(), map.has_value());
  if (!made) {
    EXPECT_EQ(made.error().code, map.error().code);
  } else {
    EXPECT_EQ(made->map, encode(made->spec).value());
  }
}

}  // namespace
}  // namespace tmap::testing
