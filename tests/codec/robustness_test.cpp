// SPDX-License-Identifier: Apache-2.0
// Tests that any 128 bytes are decoded or refused, and that every decoded map can be encoded again.

#include <gtest/gtest.h>
#include <tmap/decode.hpp>
#include <tmap/validate.hpp>

#include <vector>

#include "lib/codec/layout.hpp"
#include "support/random_spec.hpp"
#include "support/spec_text.hpp"

namespace tmap {
namespace {

using testing::random_source;
using testing::random_spec_source;

tensor_map random_bytes(random_source& random) {
  tensor_map map;
  for (std::uint64_t& word : map.words) word = random.bits();
  return map;
}

tensor_map map_of_words(std::uint64_t word) {
  tensor_map map;
  for (std::uint64_t& each : map.words) each = word;
  return map;
}

void expect_refused(const tensor_map& map) {
  const auto decoded = decode(map);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, status::not_a_tensor_map);
}

TEST(codec_robustness, constant_bytes_are_no_map) {
  expect_refused(map_of_words(0));
  expect_refused(map_of_words(~std::uint64_t{0}));
}

TEST(codec_robustness, random_bytes_are_no_map) {
  random_source random{11};
  for (int i = 0; i < 200'000; ++i) {
    const auto decoded = decode(random_bytes(random));
    ASSERT_FALSE(decoded);
    ASSERT_EQ(decoded.error().code, status::not_a_tensor_map);
  }
}

TEST(codec_robustness, random_bits_in_known_fields_only_are_read_to_the_end) {
  random_source random{15};
  for (int i = 0; i < 1'000'000; ++i) {
    const std::uint32_t layout = 1u << random.below(4);
    tensor_map map = random_bytes(random);
    for (std::uint32_t word = 0; word < 16; ++word) map.words[word] &= codec::known_bits(word, layout);
    map.words[0] &= ~std::uint64_t{0} >> 7 & ~std::uint64_t{15};
    map.words[1] &= ~std::uint64_t{14};
    const auto decoded = decode(map);
    const bool is_map_or_refused =
        decoded ? decoded->spec.rank <= max_rank : decoded.error().code == status::not_a_tensor_map;
    ASSERT_TRUE(is_map_or_refused);
  }
}

TEST(codec_robustness, random_bytes_can_be_described_and_compared) {
  random_source random{12};
  for (int i = 0; i < 5'000; ++i) {
    const tensor_map map = random_bytes(random);
    ASSERT_NE(describe(map).find("refused"), std::string::npos);
    ASSERT_NE(describe_json(map).find("\"valid\":false"), std::string::npos);
    ASSERT_FALSE(diff(map, random_bytes(random))->empty());
    ASSERT_TRUE(diff(map, map)->empty());
  }
}

/// Returns a legal map of each layout.
std::vector<tensor_map> a_map_of_each_layout() {
  random_spec_source source{17};
  std::vector<tensor_map> maps{*encode_bits(source.legal())};
  for (std::uint32_t rank = 3; rank <= max_rank; ++rank) {
    im2col_spec spec;
    spec.tensor.global_address = 0x1000;
    spec.tensor.type = element_type::u8;
    spec.tensor.rank = rank;
    spec.channels_per_pixel = 16;
    spec.pixels_per_column = 1;
    for (auto& dim : spec.tensor.global_dim) dim = 1;
    maps.push_back(*encode_bits(spec));
  }
  return maps;
}

TEST(codec_robustness, other_versions_are_refused) {
  for (const tensor_map& map : a_map_of_each_layout()) {
    ASSERT_TRUE(decode(map));
    for (std::uint64_t version = 1; version < 8; ++version) {
      tensor_map other = map;
      codec::write(other, codec::row("version"), version);
      expect_refused(other);
    }
  }
}

TEST(codec_robustness, notes_are_read_whatever_they_say) {
  for (tensor_map map : a_map_of_each_layout()) {
    EXPECT_FALSE(decode(map)->large_tensor);
    map.words[8] = 0x123456789abcdef0;
    map.words[9] = 0x0fedcba987654321;
    codec::write(map, codec::row("large_tensor"), 1);
    const auto decoded = decode(map);
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded->noted_box_bytes, 0x123456789abcdef0u);
    EXPECT_EQ(decoded->noted_shared_alignment, 0x0fedcba987654321u);
    EXPECT_TRUE(decoded->large_tensor);
  }
}

TEST(codec_robustness, each_bit_of_no_field_is_refused) {
  std::uint32_t layouts = 0;
  for (const tensor_map& map : a_map_of_each_layout()) {
    const std::uint32_t layout = codec::layout_of(map);
    layouts |= layout;
    for (std::uint32_t bit = 0; bit < 1024; ++bit) {
      const std::uint32_t word = bit / 64;
      const std::uint64_t mask = std::uint64_t{1} << bit % 64;
      if ((codec::known_bits(word, layout) & mask) != 0) continue;
      tensor_map spoilt = map;
      spoilt.words[word] ^= mask;
      const auto decoded = decode(spoilt);
      ASSERT_FALSE(decoded) << "bit " << bit << " of layout " << layout;
      EXPECT_EQ(decoded.error().code, status::not_a_tensor_map);
    }
  }
  EXPECT_EQ(layouts, codec::tiled | codec::im2col);
}

/// Expects that encoding the decoded spec again yields the same fields.
void expect_same_spec_bits(const tensor_map& map, const decoded_map& decoded) {
  const auto again = encode_bits(decoded.spec);
  if (!again) return;  // a map for a later GPU, or one that only the copy engine refuses
  const auto second = decode(*again);
  ASSERT_TRUE(second);
  ASSERT_EQ(testing::to_text(second->spec), testing::to_text(decoded.spec)) << describe(map);
}

TEST(codec_robustness, maps_with_flipped_bits_are_refused_or_decode_consistently) {
  random_spec_source source{13};
  int accepted = 0;
  for (int i = 0; i < 200'000; ++i) {
    tensor_map map = *encode_bits(source.legal());
    const std::uint64_t bit = source.random().below(1024);
    map.words[bit / 64] ^= std::uint64_t{1} << (bit % 64);
    const auto decoded = decode(map);
    if (!decoded) {
      ASSERT_EQ(decoded.error().code, status::not_a_tensor_map);
    } else if (decoded->kind == map_kind::tiled) {
      ++accepted;
      expect_same_spec_bits(map, *decoded);
    }
  }
  EXPECT_GT(accepted, 10'000);
}

TEST(codec_robustness, unused_axes_left_by_a_device_encoder_are_ignored) {
  random_spec_source source{14};
  for (int i = 0; i < 20'000; ++i) {
    const tensor_spec spec = source.legal();
    if (spec.rank > 3) continue;
    tensor_map map = *encode_bits(spec);
    const tensor_spec expected = decode(map)->spec;
    map.words[5] |= source.random().bits() << 32;
    map.words[6] |= source.random().bits() & 0xffffffff;
    const auto decoded = decode(map);
    ASSERT_TRUE(decoded);
    ASSERT_EQ(testing::to_text(decoded->spec), testing::to_text(expected));
  }
}

TEST(codec_robustness, what_a_driver_writes_decodes_even_where_the_copy_engine_would_fault) {
  random_spec_source source{16};
  tensor_map map = *encode_bits(source.legal());
  map.words[0] = 0;
  map.words[4] |= 0xffffffff;
  const auto decoded = decode(map);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->spec.global_address, 0u);
  EXPECT_EQ(decoded->spec.global_dim[0], std::uint64_t{1} << 32);
}

TEST(codec_robustness, what_no_driver_writes_is_refused_with_its_rule) {
  tensor_spec spec;
  spec.global_address = 0x1000;
  spec.type = element_type::u8;
  spec.rank = 1;
  spec.global_dim[0] = 64;
  spec.box_dim[0] = 32;
  tensor_map map = *encode_bits(spec);
  map.words[6] -= std::uint64_t{1} << 56;
  const auto decoded = decode(map);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, status::not_a_tensor_map);
  EXPECT_EQ(decoded.error().first, rule::t18_inner_box_multiple_of_16);
  EXPECT_EQ(decoded.error().found, 31u);
}

}  // namespace
}  // namespace tmap
