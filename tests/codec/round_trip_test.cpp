// SPDX-License-Identifier: Apache-2.0
// Tests spec -> bits -> spec over random specs that are biased towards the limits of the rules.

#include <gtest/gtest.h>
#include <tmap/decode.hpp>
#include <tmap/validate.hpp>

#include "support/random_spec.hpp"
#include "support/spec_text.hpp"

namespace tmap {
namespace {

using testing::random_spec_source;
using testing::to_text;
using testing::without_unused_axes;

template <class Spec>
bool same_numbers(const Spec& a, const Spec& b) {
  return to_text(a) == to_text(b);
}

/// Compares without formatting text, because this runs a million times.
bool same_spec(const tensor_spec& a, const tensor_spec& b) {
  std::uint64_t numbers[32]{};
  std::uint32_t count = 0;
  testing::for_each_number(a, [&](auto value) { numbers[count++] = static_cast<std::uint64_t>(value); });
  bool same = true;
  count = 0;
  testing::for_each_number(b,
                           [&](auto value) { same = same && numbers[count++] == static_cast<std::uint64_t>(value); });
  return same;
}

im2col_spec as_im2col(const decoded_map& decoded) {
  im2col_spec spec{.tensor = decoded.spec,
                   .channels_per_pixel = decoded.channels_per_pixel,
                   .pixels_per_column = decoded.pixels_per_column};
  for (int axis = 0; axis < 3; ++axis) {
    spec.lower_corner[axis] = decoded.lower_corner[axis];
    spec.upper_corner[axis] = decoded.upper_corner[axis];
  }
  return spec;
}

TEST(codec_round_trip, a_million_tiled_specs) {
  random_spec_source source{1};
  for (int i = 0; i < 1'000'000; ++i) {
    const tensor_spec spec = source.legal();
    const auto map = encode_bits(spec);
    ASSERT_TRUE(map) << to_text(spec);
    const auto decoded = decode(*map);
    ASSERT_TRUE(decoded) << to_text(spec);
    ASSERT_EQ(decoded->kind, map_kind::tiled);
    ASSERT_TRUE(same_spec(decoded->spec, without_unused_axes(spec))) << to_text(spec) << '\n' << to_text(decoded->spec);
  }
}

TEST(codec_round_trip, im2col_specs) {
  random_spec_source source{2};
  for (int i = 0; i < 100'000; ++i) {
    im2col_spec spec = source.legal_im2col();
    const auto map = encode_bits(spec);
    ASSERT_TRUE(map) << to_text(spec);
    const auto decoded = decode(*map);
    ASSERT_TRUE(decoded) << to_text(spec);
    ASSERT_EQ(decoded->kind, map_kind::im2col);
    spec.tensor = without_unused_axes(spec.tensor);
    ASSERT_TRUE(same_numbers(as_im2col(*decoded), spec)) << to_text(spec) << '\n' << to_text(as_im2col(*decoded));
  }
}

TEST(codec_round_trip, maps_of_different_specs_differ) {
  random_spec_source source{3};
  tensor_spec previous = without_unused_axes(source.legal());
  for (int i = 0; i < 100'000; ++i) {
    const tensor_spec spec = without_unused_axes(source.legal());
    ASSERT_EQ(*encode_bits(spec) == *encode_bits(previous), same_spec(spec, previous)) << to_text(spec);
    previous = spec;
  }
}

TEST(codec_round_trip, refuses_exactly_the_specs_that_break_a_rule) {
  random_spec_source source{4};
  int refused = 0;
  for (int i = 0; i < 200'000; ++i) {
    const tensor_spec spec = source.any();
    const rule_set broken = broken_rules(spec);
    const auto map = encode_bits(spec);
    ASSERT_EQ(map.has_value(), broken.empty()) << to_text(spec);
    if (map) continue;
    ++refused;
    ASSERT_EQ(map.error().code, status::rule_broken);
    ASSERT_EQ(map.error().rules, validate(spec).rules()) << to_text(spec);
    ASSERT_TRUE(broken.contains(map.error().first)) << to_text(spec);
  }
  EXPECT_GT(refused, 50'000);
}

TEST(codec_round_trip, refuses_im2col_specs_that_break_a_rule) {
  random_spec_source source{5};
  for (int i = 0; i < 100'000; ++i) {
    const im2col_spec spec = source.any_im2col();
    ASSERT_EQ(encode_bits(spec).has_value(), broken_rules(spec).empty()) << to_text(spec);
  }
}

}  // namespace
}  // namespace tmap
