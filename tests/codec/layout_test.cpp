// SPDX-License-Identifier: Apache-2.0
// Tests where each field lies. The positions are written by hand a second time here, from
// measurements of the driver.

#include <gtest/gtest.h>
#include <tmap/decode.hpp>

#include <functional>

#include "lib/codec/layout.hpp"

namespace tmap {
namespace {

/// Returns a spec of rank 5, so that every axis counts. Element strides, dims and box are 1 if the
/// rules allow it.
tensor_spec plain_spec() {
  tensor_spec spec;
  spec.global_address = 0x1000;
  spec.type = element_type::u8;
  spec.rank = 5;
  for (auto& dim : spec.global_dim) dim = 1;
  for (auto& extent : spec.box_dim) extent = 1;
  spec.box_dim[0] = 16;
  return spec;
}

im2col_spec plain_im2col_spec(std::uint32_t rank) {
  im2col_spec spec{.tensor = plain_spec(), .channels_per_pixel = 16, .pixels_per_column = 1};
  spec.tensor.rank = rank;
  for (auto& dim : spec.tensor.global_dim) dim = 1 << 20;
  return spec;
}

/// Expects the bits that `change` sets to be `value` at `shift` of `word`. Apart from the driver's
/// notes, no other bit may change.
template <class Spec>
void expect_field(const Spec& plain, const std::function<void(Spec&)>& change, std::uint32_t word, std::uint32_t shift,
                  std::uint32_t width, std::uint64_t value) {
  Spec changed = plain;
  change(changed);
  const auto before = encode_bits(plain);
  const auto after = encode_bits(changed);
  ASSERT_TRUE(before && after);
  const std::uint64_t mask = (width == 64 ? 0 : std::uint64_t{1} << width) - 1;
  EXPECT_EQ(after->words[word] >> shift & mask, value);
  for (std::uint32_t i = 0; i < 8; ++i) {
    const std::uint64_t elsewhere = i == word ? ~(mask << shift) : ~std::uint64_t{0};
    EXPECT_EQ(after->words[i] & elsewhere, before->words[i] & elsewhere) << "word " << i;
  }
}

void expect_tiled(std::uint32_t word, std::uint32_t shift, std::uint32_t width, std::uint64_t value,
                  const std::function<void(tensor_spec&)>& change) {
  expect_field(plain_spec(), change, word, shift, width, value);
}

TEST(codec_layout, a_whole_map) {
  tensor_spec spec;
  spec.global_address = 0x7f1234567890;
  spec.type = element_type::f32;
  spec.rank = 2;
  spec.global_dim[0] = 64;
  spec.global_dim[1] = 32;
  spec.global_stride_bytes[0] = 256;
  spec.box_dim[0] = 8;
  spec.box_dim[1] = 4;
  spec.swizzle = swizzle::bytes_32;
  const std::uint64_t expected[16] = {
      0x7f1234567890, 0x0000001000002390, 0, 0, 0x0000001f0000003f, 0, 0x0700000000000000, 3, 128, 256};
  const auto map = encode_bits(spec);
  ASSERT_TRUE(map);
  for (int word = 0; word < 16; ++word) EXPECT_EQ(map->words[word], expected[word]) << "word " << word;
}

TEST(codec_layout, address_dims_and_strides) {
  for (const std::uint64_t address : {std::uint64_t{16}, (std::uint64_t{1} << 57) - 4096}) {
    expect_tiled(0, 0, 64, address, [&](tensor_spec& s) { s.global_address = address; });
  }
  for (std::uint32_t axis = 0; axis < 5; ++axis) {
    for (const std::uint64_t dim : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{1} << 31}) {
      expect_tiled(4 + axis / 2, 32 * (axis % 2), 32, dim - 1, [&](tensor_spec& s) { s.global_dim[axis] = dim; });
    }
  }
  constexpr std::uint32_t words[] = {1, 2, 2, 3};
  constexpr std::uint32_t shifts[] = {32, 0, 32, 0};
  for (std::uint32_t i = 0; i < 4; ++i) {
    for (const std::uint64_t stride : {0ull, 16ull, (1ull << 36) - 16}) {
      expect_tiled(words[i], shifts[i], 32, stride >> 4, [&](tensor_spec& s) { s.global_stride_bytes[i] = stride; });
    }
    for (const std::uint64_t top : {1ull, 8ull, 15ull}) {
      expect_tiled(3, 32 + 4 * i, 4, top, [&](tensor_spec& s) { s.global_stride_bytes[i] = top << 36; });
    }
  }
}

TEST(codec_layout, rank_box_and_element_strides) {
  for (std::uint32_t rank = 1; rank <= 5; ++rank) {
    const auto map = encode_bits([&] {
      tensor_spec spec = plain_spec();
      spec.rank = rank;
      return spec;
    }());
    ASSERT_TRUE(map);
    EXPECT_EQ(map->words[1] >> 4 & 7, rank - 1);
  }
  for (const std::uint32_t extent : {16u, 256u}) {
    expect_tiled(6, 56, 8, extent - 1, [&](tensor_spec& s) { s.box_dim[0] = extent; });
  }
  for (std::uint32_t axis = 1; axis < 5; ++axis) {
    for (const std::uint32_t extent : {1u, 2u, 256u}) {
      expect_tiled(7, 8 * (axis - 1), 8, extent - 1, [&](tensor_spec& s) { s.box_dim[axis] = extent; });
    }
  }
  for (std::uint32_t axis = 0; axis < 5; ++axis) {
    for (const std::uint32_t step : {1u, 2u, 8u}) {
      expect_tiled(6, 32 + 3 * axis, 3, step - 1, [&](tensor_spec& s) { s.element_stride[axis] = step; });
    }
  }
}

TEST(codec_layout, modes) {
  constexpr std::uint32_t formats[] = {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 7, 8};
  for (std::uint32_t type = 0; type < hopper_element_type_count; ++type) {
    const std::uint64_t conversion = type >= 11 ? 1u << 9 : 0;
    expect_tiled(1, 7, 10, formats[type] | conversion,
                 [&](tensor_spec& s) { s.type = static_cast<element_type>(type); });
  }
  for (std::uint32_t mode = 0; mode < 4; ++mode) {
    expect_tiled(1, 13, 2, mode, [&](tensor_spec& s) { s.swizzle = static_cast<swizzle>(mode); });
    expect_tiled(1, 17, 2, mode, [&](tensor_spec& s) { s.l2_promotion = static_cast<l2_promotion>(mode); });
  }
  for (std::uint32_t mode = 0; mode < 2; ++mode) {
    expect_tiled(1, 11, 2, mode, [&](tensor_spec& s) { s.interleave = static_cast<interleave>(mode); });
  }
  expect_tiled(1, 11, 4, 2 | 1 << 2, [&](tensor_spec& s) {
    s.interleave = interleave::bytes_32;
    s.swizzle = swizzle::bytes_32;
  });
  tensor_spec floats = plain_spec();
  floats.type = element_type::f32;
  expect_field<tensor_spec>(
      floats, [](tensor_spec& s) { s.oob_fill = oob_fill::nan; }, 1, 15, 1, 1);
}

/// The values below are documented only. They come from ptxas 13.0, which writes these fields by
/// tensormap.replace.
void expect_on_blackwell(std::uint64_t bits, std::uint64_t mask, const std::function<void(tensor_spec&)>& change) {
  tensor_spec spec = plain_spec();
  change(spec);
  EXPECT_EQ(encode_bits(spec).error().code, status::rule_broken) << "Hopper has none of them";
  const auto map = encode_bits(spec, blackwell_limits());
  ASSERT_TRUE(map) << to_string(map.error());
  EXPECT_EQ(map->words[1] & mask, bits);
  EXPECT_EQ(map->words[1] >> 32, 0u);
}

TEST(codec_layout, documented_swizzles) {
  for (std::uint32_t atom = 1; atom <= 3; ++atom) {
    expect_on_blackwell(3u << 13 | atom << 19, 3u << 13 | 7u << 19,
                        [&](tensor_spec& s) { s.swizzle = static_cast<swizzle>(3 + atom); });
  }
}

TEST(codec_layout, documented_types) {
  constexpr std::uint64_t mask = 15u << 7 | 1u << 16;
  const auto packed = [](element_type type, std::uint32_t inner) {
    return [=](tensor_spec& s) {
      s.type = type;
      s.global_dim[0] = s.box_dim[0] = inner;
    };
  };
  expect_on_blackwell(11u << 7, mask, packed(element_type::u4_align8, 32));
  expect_on_blackwell(12u << 7, mask, packed(element_type::u4_align16, 128));
  expect_on_blackwell(13u << 7, mask, packed(element_type::u6_align16, 128));
}

TEST(codec_layout, a_documented_map) {
  tensor_spec spec;
  spec.global_address = 0x7f1234567880;
  spec.type = element_type::u6_align16;
  spec.rank = 2;
  spec.global_dim[0] = 256;
  spec.global_dim[1] = 32;
  spec.global_stride_bytes[0] = 192;
  spec.box_dim[0] = 128;
  spec.box_dim[1] = 4;
  spec.swizzle = swizzle::bytes_128_atom_64;
  const std::uint64_t expected[8] = {
      0x7f1234567880, 0x0000000c00186690, 0, 0, 0x0000001f000000ff, 0, 0x7f00000000000000, 3};
  const auto map = encode_bits(spec, blackwell_limits());
  ASSERT_TRUE(map) << to_string(map.error());
  for (int word = 0; word < 8; ++word) EXPECT_EQ(map->words[word], expected[word]) << "word " << word;
  const auto decoded = decode(*map);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->spec.type, spec.type);
  EXPECT_EQ(decoded->spec.swizzle, spec.swizzle);
  EXPECT_FALSE(decoded->large_tensor);
}

TEST(codec_layout, documented_mark_of_large_tensors) {
  const auto is_marked = [](std::uint64_t bytes, const device_limits& limits) {
    tensor_spec spec = plain_spec();
    spec.global_dim[0] = 64;
    spec.global_dim[4] = 2;
    spec.global_stride_bytes[3] = bytes - 64;
    return (encode_bits(spec, limits)->words[1] >> 21 & 1) != 0;
  };
  constexpr std::uint64_t least = 128 * 1024;
  EXPECT_FALSE(is_marked(least - 16, blackwell_limits()));
  EXPECT_TRUE(is_marked(least, blackwell_limits()));
  EXPECT_TRUE(is_marked(least, {120, 101376}));
  EXPECT_FALSE(is_marked(16 * least, hopper_limits()));
  im2col_spec pictures = plain_im2col_spec(3);
  EXPECT_EQ(encode_bits(pictures, blackwell_limits())->words[1] >> 21 & 1, 1u);
  EXPECT_EQ(encode_bits(pictures)->words[1] >> 21 & 1, 0u);
}

TEST(codec_layout, notes) {
  tensor_spec spec = plain_spec();
  spec.type = element_type::f32;
  spec.box_dim[0] = 8;
  spec.box_dim[1] = 4;
  constexpr std::uint64_t alignments[] = {16, 256, 512, 1024};
  for (std::uint32_t mode = 0; mode < 4; ++mode) {
    spec.swizzle = static_cast<swizzle>(mode);
    EXPECT_EQ(encode_bits(spec)->words[9], alignments[mode]);
  }
  EXPECT_EQ(encode_bits(spec)->words[8], 128u);
  spec.element_stride[0] = 3;
  EXPECT_EQ(encode_bits(spec)->words[8], 2u * 4 * 4);
  spec.element_stride[1] = 5;
  EXPECT_EQ(encode_bits(spec)->words[8], 0u);
}

TEST(codec_layout, im2col) {
  const auto plain = encode_bits(plain_im2col_spec(3));
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->words[1] & 1, 1u);
  for (std::uint32_t rank = 3; rank <= 5; ++rank) {
    const std::uint32_t spatial = rank - 2;
    const std::uint32_t width = spatial == 1 ? 16 : spatial == 2 ? 8 : 5;
    const std::int32_t lowest = -(1 << (width - 1));
    const std::uint64_t mask = (1u << width) - 1;
    const im2col_spec base = plain_im2col_spec(rank);
    for (std::uint32_t axis = 0; axis < spatial; ++axis) {
      for (const std::int32_t corner : {lowest, -1, 1, -lowest - 1}) {
        const std::uint64_t bits = static_cast<std::uint64_t>(corner) & mask;
        expect_field<im2col_spec>(
            base, [&](im2col_spec& s) { s.lower_corner[axis] = corner; }, 7, width * axis, width, bits);
        expect_field<im2col_spec>(
            base, [&](im2col_spec& s) { s.upper_corner[axis] = corner; }, 7, 16 + width * axis, width, bits);
      }
    }
    expect_field<im2col_spec>(
        base, [](im2col_spec& s) { s.channels_per_pixel = 256; }, 6, 56, 8, 255);
    expect_field<im2col_spec>(
        base, [](im2col_spec& s) { s.pixels_per_column = 1024; }, 7, 32, 10, 1023);
  }
}

TEST(codec_layout, no_two_fields_of_a_layout_share_a_bit) {
  for (const std::uint32_t layout : {codec::tiled, codec::im2col_rank_3, codec::im2col_rank_4, codec::im2col_rank_5}) {
    std::uint64_t taken[16]{};
    for (const codec::field& f : codec::table) {
      if (!codec::exists_in(f, layout)) continue;
      EXPECT_EQ(taken[f.low.word] & f.low.mask(), 0u) << f.name;
      taken[f.low.word] |= f.low.mask();
      if (f.high.width == 0) continue;
      EXPECT_EQ(taken[f.high.word] & f.high.mask(), 0u) << f.name;
      taken[f.high.word] |= f.high.mask();
    }
  }
}

}  // namespace
}  // namespace tmap
