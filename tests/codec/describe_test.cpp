// SPDX-License-Identifier: Apache-2.0
// Tests the descriptions of a map for people and programs, and the differences of two maps.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tmap/decode.hpp>

#include <nlohmann/json.hpp>

#include "support/random_spec.hpp"
#include "support/spec_text.hpp"

namespace tmap {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

tensor_spec picture_spec() {
  tensor_spec spec;
  spec.global_address = 0x7f0000001000;
  spec.type = element_type::tf32;
  spec.rank = 2;
  spec.global_dim[0] = 4096;
  spec.global_dim[1] = 100;
  spec.global_stride_bytes[0] = 16384;
  spec.box_dim[0] = 32;
  spec.box_dim[1] = 64;
  spec.element_stride[1] = 2;
  spec.swizzle = swizzle::bytes_128;
  spec.l2_promotion = l2_promotion::bytes_256;
  spec.oob_fill = oob_fill::nan;
  return spec;
}

TEST(codec_describe, has_every_used_field_on_a_line) {
  const std::string text = describe(*encode_bits(picture_spec()));
  for (const char* line :
       {"kind                    tiled\n", "rank                    2\n", "element_type            tf32\n",
        "interleave              none\n", "swizzle                 128B\n", "oob_fill                nan\n",
        "l2_promotion            256B\n", "global_address          0x7f0000001000\n", "global_dim[0]           4096\n",
        "global_dim[1]           100\n", "global_stride_bytes[0]  16384\n", "box_dim[0]              32\n",
        "box_dim[1]              64\n", "element_stride[1]       2\n", "noted_box_bytes         4096\n",
        "noted_shared_alignment  1024\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("global_dim[2]")));
  EXPECT_THAT(text, Not(HasSubstr("unknown")));
  EXPECT_THAT(text, Not(HasSubstr("refused")));
}

TEST(codec_describe, json_holds_the_same) {
  const auto json = nlohmann::json::parse(describe_json(*encode_bits(picture_spec())), nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["valid"], true);
  EXPECT_EQ(json["kind"], "tiled");
  EXPECT_EQ(json["element_type"], "tf32");
  EXPECT_EQ(json["global_address"], "0x7f0000001000");
  EXPECT_EQ(json["global_dim"], nlohmann::json({4096, 100}));
  EXPECT_EQ(json["global_stride_bytes"], nlohmann::json({16384}));
  EXPECT_EQ(json["box_dim"], nlohmann::json({32, 64}));
  EXPECT_EQ(json["element_stride"], nlohmann::json({1, 2}));
  EXPECT_EQ(json["large_tensor"], false);
}

TEST(codec_describe, im2col_corners_are_signed) {
  im2col_spec spec{.tensor = picture_spec(), .channels_per_pixel = 32, .pixels_per_column = 1024};
  spec.tensor.rank = 4;
  for (int axis = 0; axis < 4; ++axis) spec.tensor.global_dim[axis] = 64;
  for (int index = 0; index < 3; ++index) spec.tensor.global_stride_bytes[index] = 256 << index * 6;
  spec.lower_corner[0] = -1;
  spec.upper_corner[1] = -128 + 65;
  const auto map = encode_bits(spec);
  ASSERT_TRUE(map);
  const std::string text = describe(*map);
  EXPECT_THAT(text, HasSubstr("kind                    im2col\n"));
  EXPECT_THAT(text, HasSubstr("lower_corner[0]         -1\n"));
  EXPECT_THAT(text, HasSubstr("upper_corner[1]         -63\n"));
  EXPECT_THAT(text, HasSubstr("pixels_per_column       1024\n"));
  EXPECT_THAT(text, Not(HasSubstr("box_dim[")));
  const auto json = nlohmann::json::parse(describe_json(*map), nullptr, false);
  EXPECT_EQ(json["lower_corner"].dump(), "[-1,0]");
  EXPECT_EQ(json["upper_corner"].dump(), "[0,-63]");
}

TEST(codec_describe, shows_bytes_that_are_no_map_and_says_so) {
  tensor_map map = *encode_bits(picture_spec());
  map.words[1] |= 3u << 11;
  map.words[12] = 0xff00;
  const std::string text = describe(map);
  EXPECT_THAT(text, HasSubstr("interleave              invalid (3)\n"));
  EXPECT_THAT(text, HasSubstr("word 12, unknown bits   0xff00\n"));
  EXPECT_THAT(text, HasSubstr("refused"));
  const auto json = nlohmann::json::parse(describe_json(map), nullptr, false);
  EXPECT_EQ(json["valid"], false);
  EXPECT_EQ(json["unknown_bits"]["word 12"], "0xff00");
}

/// One set bit of a field is enough to show it, even if the rank does not use it.
TEST(codec_describe, shows_what_lies_beyond_the_rank) {
  const auto with_bit = [](std::uint32_t word, std::uint32_t shift) {
    tensor_map map = *encode_bits(picture_spec());
    map.words[word] |= std::uint64_t{1} << shift;
    return describe(map);
  };
  EXPECT_THAT(describe(*encode_bits(picture_spec())), Not(HasSubstr("[3]")));
  EXPECT_THAT(with_bit(5, 32), HasSubstr("global_dim[3]           2\n"));
  EXPECT_THAT(with_bit(3, 0), HasSubstr("global_stride_bytes[3]  16\n"));
  EXPECT_THAT(with_bit(3, 44), HasSubstr("global_stride_bytes[3]  68719476736\n"));
}

TEST(codec_diff, names_the_fields_and_both_values) {
  tensor_spec other = picture_spec();
  other.global_dim[1] = 101;
  other.type = element_type::f32;
  const auto found = diff(*encode_bits(picture_spec()), *encode_bits(other)).value();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].field, "element_type");
  EXPECT_EQ(found[0].first, "tf32");
  EXPECT_EQ(found[0].second, "f32");
  EXPECT_EQ(found[1].field, "global_dim[1]");
  EXPECT_EQ(found[1].first, "100");
  EXPECT_EQ(found[1].second, "101");
}

TEST(codec_diff, of_different_kinds_says_what_is_absent) {
  im2col_spec spec{.tensor = picture_spec(), .channels_per_pixel = 32, .pixels_per_column = 8};
  spec.tensor.rank = 3;
  spec.tensor.global_dim[2] = 1;
  const auto found = diff(*encode_bits(picture_spec()), *encode_bits(spec)).value();
  const auto is_box = [](const field_difference& d) { return d.field == "box_dim[0]" && d.second == "absent"; };
  EXPECT_TRUE(std::any_of(found.begin(), found.end(), is_box));
  const auto is_channels = [](const field_difference& d) {
    return d.field == "channels_per_pixel" && d.first == "absent" && d.second == "32";
  };
  EXPECT_TRUE(std::any_of(found.begin(), found.end(), is_channels));
}

TEST(codec_decode, knows_maps_of_newer_gpus) {
  tensor_map map = *encode_bits(picture_spec());
  map.words[1] |= std::uint64_t{1} << 19 | std::uint64_t{1} << 21;
  const auto decoded = decode(map);
  ASSERT_TRUE(decoded) << to_string(decoded.error());
  EXPECT_EQ(decoded->spec.swizzle, swizzle::bytes_128_atom_32);
  EXPECT_TRUE(decoded->large_tensor);
  EXPECT_FALSE(decode(*encode_bits(picture_spec()))->large_tensor);
}

TEST(codec_diff, sees_every_single_bit) {
  testing::random_spec_source source{21};
  for (int i = 0; i < 20; ++i) {
    const tensor_map map = *encode_bits(source.legal());
    EXPECT_TRUE(diff(map, map)->empty());
    for (std::uint32_t bit = 0; bit < 1024; ++bit) {
      tensor_map flipped = map;
      flipped.words[bit / 64] ^= std::uint64_t{1} << (bit % 64);
      ASSERT_FALSE(diff(map, flipped)->empty()) << "bit " << bit;
    }
  }
}

}  // namespace
}  // namespace tmap
