// SPDX-License-Identifier: Apache-2.0
// Tests that the functions of c/spec.h give the same results as those of C++.
#include <tmap/tmap.h>
#include <tmap/decode.hpp>
#include <tmap/encode.hpp>
#include <tmap/validate.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <variant>
#include <vector>

#include "lib/interop/convert.hpp"
#include "support/random_spec.hpp"
#include "support/rule_cases.hpp"

namespace tmap::testing {
namespace {

tmap_im2col_spec c_spec_of(const im2col_spec& from) {
  tmap_im2col_spec spec{};
  spec.struct_size = sizeof spec;
  spec.tensor = interop::c_of(from.tensor);
  std::memcpy(spec.lower_corner, from.lower_corner, sizeof spec.lower_corner);
  std::memcpy(spec.upper_corner, from.upper_corner, sizeof spec.upper_corner);
  spec.channels_per_pixel = from.channels_per_pixel;
  spec.pixels_per_column = from.pixels_per_column;
  return spec;
}

template <class Function, class... Arguments>
std::string text_of(Function function, const Arguments&... given) {
  std::size_t length = 0;
  EXPECT_EQ(function(given..., nullptr, 0, &length), TMAP_OK);
  std::vector<char> text(length + 1, 'x');
  EXPECT_EQ(function(given..., text.data(), text.size(), nullptr), TMAP_OK);
  return text.data();
}

void expect_same(const violations& expected, tmap_status answer, const tmap_violation* list, std::uint32_t count) {
  bool is_broken = false;
  ASSERT_EQ(count, expected.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    EXPECT_EQ(list[i].rule, static_cast<std::uint32_t>(expected[i].id));
    EXPECT_EQ(list[i].axis, expected[i].axis);
    EXPECT_EQ(list[i].found, expected[i].found);
    EXPECT_EQ(list[i].allowed, expected[i].allowed);
    is_broken = is_broken || info(expected[i].id).level == severity::error;
  }
  EXPECT_EQ(answer, is_broken ? TMAP_RULE_BROKEN : TMAP_OK);
}

std::string with_remedies(const violations& found, element_type type) {
  std::string text;
  for (const violation& each : found) {
    EXPECT_NE(remedy(each, type), "");
    text += (text.empty() ? "" : "\n") + to_string(each) + "\n  " + remedy(each, type);
  }
  return text.empty() ? "no rule broken" : text;
}

TEST(c_spec, every_rule_is_found_as_in_cpp) {
  std::uint32_t checked = 0;
  for (const rule_case& each : all_rule_cases()) {
    const tmap_device_limits limits{sizeof limits, each.limits.compute_capability, each.limits.shared_memory_bytes, 0};
    tmap_violation list[violations::capacity];
    std::uint32_t count = 0;
    const violations expected = validate_any(each.spec, each.limits);
    if (const auto* tiled = std::get_if<tensor_spec>(&each.spec)) {
      const tmap_tensor_spec spec = interop::c_of(*tiled);
      const tmap_status answer = tmap_validate(&spec, &limits, list, violations::capacity, &count);
      expect_same(expected, answer, list, count);
      EXPECT_EQ(text_of(&tmap_explain, &spec, &limits), with_remedies(expected, tiled->type)) << each.what;
      ++checked;
    } else if (const auto* im2col = std::get_if<im2col_spec>(&each.spec)) {
      const tmap_im2col_spec spec = c_spec_of(*im2col);
      const tmap_status answer = tmap_validate_im2col(&spec, &limits, list, violations::capacity, &count);
      expect_same(expected, answer, list, count);
      EXPECT_EQ(text_of(&tmap_explain_im2col, &spec, &limits), with_remedies(expected, im2col->tensor.type))
          << each.what;
      ++checked;
    }
  }
  EXPECT_GT(checked, 30u);
}

TEST(c_spec, lists_no_more_than_there_is_room_for) {
  tmap_tensor_spec spec = interop::c_of(plain_spec());
  spec.box_dim[0] = 0;
  spec.element_stride[1] = 9;
  tmap_violation list[2];
  std::memset(list, 0x5a, sizeof list);
  const tmap_violation canary = list[1];
  std::uint32_t count = 0;
  EXPECT_EQ(tmap_validate(&spec, nullptr, list, 1, &count), TMAP_RULE_BROKEN);
  EXPECT_GE(count, 2u);
  EXPECT_EQ(std::memcmp(&list[1], &canary, sizeof canary), 0);
}

TEST(c_spec, unknown_types_and_modes_break_their_rules) {
  const std::vector<std::pair<std::uint32_t tmap_tensor_spec::*, rule>> members{
      {&tmap_tensor_spec::element_type, rule::t02_element_type},
      {&tmap_tensor_spec::interleave, rule::t21_interleave_value},
      {&tmap_tensor_spec::swizzle, rule::t28_swizzle_value},
      {&tmap_tensor_spec::l2_promotion, rule::t29_l2_promotion_value},
      {&tmap_tensor_spec::oob_fill, rule::t30_oob_fill}};
  for (const auto& [member, id] : members) {
    for (const std::uint32_t value : {99u, ~0u}) {
      tmap_tensor_spec spec = interop::c_of(plain_spec());
      spec.*member = value;
      tmap_tensor_map map{{1, 2, 3}};
      const tmap_tensor_map before = map;
      EXPECT_EQ(tmap_encode_bits(&spec, &map), TMAP_RULE_BROKEN);
      tmap_error last{};
      last.struct_size = sizeof last;
      ASSERT_EQ(tmap_last_error(&last), TMAP_OK);
      EXPECT_NE(last.rules >> static_cast<std::uint32_t>(id) & 1, 0u) << info(id).name;
      EXPECT_EQ(std::memcmp(&map, &before, sizeof map), 0);
    }
  }
}

TEST(c_spec, bits_go_there_and_back) {
  random_spec_source source{7};
  for (int i = 0; i < 500; ++i) {
    const tensor_spec spec = source.legal();
    const tmap_tensor_spec c_spec = interop::c_of(spec);
    tmap_tensor_map map{};
    ASSERT_EQ(tmap_encode_bits(&c_spec, &map), TMAP_OK);
    const tensor_map expected = encode_bits(spec).value();
    ASSERT_EQ(std::memcmp(&map, &expected, sizeof map), 0);
    tmap_decoded_map decoded{};
    decoded.struct_size = sizeof decoded;
    ASSERT_EQ(tmap_decode(&map, &decoded), TMAP_OK);
    const tmap_tensor_spec read = interop::c_of(decode(expected)->spec);
    EXPECT_EQ(std::memcmp(&decoded.tensor, &read, sizeof read), 0);
    EXPECT_EQ(text_of(&tmap_describe, &map), describe(expected));
    EXPECT_EQ(text_of(&tmap_describe_json, &map), describe_json(expected));
  }
}

TEST(c_spec, im2col_maps_are_decoded_whole) {
  im2col_spec spec = plain_im2col_spec();
  spec.lower_corner[0] = -7;
  spec.lower_corner[1] = 5;
  spec.upper_corner[0] = -3;
  spec.upper_corner[1] = -2;
  const tmap_tensor_map map = interop::c_of(encode_bits(spec).value());
  tmap_decoded_map decoded{};
  decoded.struct_size = sizeof decoded;
  ASSERT_EQ(tmap_decode(&map, &decoded), TMAP_OK);
  EXPECT_EQ(decoded.kind, static_cast<std::uint32_t>(TMAP_MAP_IM2COL));
  for (int axis = 0; axis < 2; ++axis) {
    EXPECT_EQ(decoded.lower_corner[axis], spec.lower_corner[axis]);
    EXPECT_EQ(decoded.upper_corner[axis], spec.upper_corner[axis]);
  }
  EXPECT_EQ(decoded.channels_per_pixel, spec.channels_per_pixel);
  EXPECT_EQ(decoded.pixels_per_column, spec.pixels_per_column);
}

TEST(c_spec, bytes_that_are_no_map) {
  const tmap_tensor_map zeros{};
  tmap_decoded_map decoded{};
  decoded.struct_size = sizeof decoded;
  decoded.kind = 77;
  EXPECT_EQ(tmap_decode(&zeros, &decoded), TMAP_NOT_A_TENSOR_MAP);
  EXPECT_EQ(decoded.kind, 77u);
  EXPECT_EQ(text_of(&tmap_describe, &zeros), describe(tensor_map{}));
}

/// Encodes the driver's bytes on a machine with a GPU, and expects the reason without one.
TEST(c_spec, the_driver_is_asked_as_in_cpp) {
  const tensor_spec spec = plain_spec();
  const tmap_tensor_spec c_spec = interop::c_of(spec);
  tmap_tensor_map map{{1, 2, 3}};
  const result<tensor_map> expected = encode(spec);
  const tmap_status answer = tmap_encode(&c_spec, &map);
  ASSERT_EQ(answer, expected ? TMAP_OK : static_cast<tmap_status>(expected.error().code));
  const tmap_tensor_map unwritten{{1, 2, 3}};
  const tmap_tensor_map wanted = expected ? interop::c_of(*expected) : unwritten;
  EXPECT_EQ(std::memcmp(&map, &wanted, sizeof map), 0);
  EXPECT_EQ(tmap_replace_address(&map, 4096 + 1, &map), TMAP_RULE_BROKEN);
  EXPECT_EQ(std::memcmp(&map, &wanted, sizeof map), 0);
  tmap_device_limits limits{};
  limits.struct_size = sizeof limits;
  EXPECT_EQ(tmap_query_device_limits(&limits) == TMAP_OK, query_device_limits().has_value());
}

}  // namespace
}  // namespace tmap::testing
