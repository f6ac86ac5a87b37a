// SPDX-License-Identifier: Apache-2.0
// The fields of a map with the bits that hold them.

#include <gtest/gtest.h>
#include <tmap/decode.hpp>
#include <tmap/map_fields.hpp>

#include <array>
#include <map>

namespace tmap {
namespace {

tensor_map rank_2_map() {
  constexpr std::array<std::uint64_t, 2> dims{4096, 100};
  constexpr std::array<std::uint32_t, 2> box{64, 8};
  tensor_spec spec =
      packed_spec(element_type::f16, 0x7f0000001000, {dims.data(), dims.size()}, {box.data(), box.size()});
  spec.swizzle = swizzle::bytes_128;
  return *encode_bits(spec);
}

std::uint64_t mask_of(const map_bits& bits) {
  return bits.width == 0 ? 0 : ((std::uint64_t{1} << (bits.width - 1) << 1) - 1) << bits.shift;
}

TEST(map_fields, hold_every_bit_that_is_set_and_none_twice) {
  const tensor_map map = rank_2_map();
  const auto fields = fields_of(map);
  ASSERT_TRUE(fields);
  std::array<std::uint64_t, 16> held{};
  for (const map_field& field : *fields) {
    for (const map_bits& bits : {field.low, field.high}) {
      EXPECT_EQ(held.at(bits.word) & mask_of(bits), 0u) << field.name;
      held.at(bits.word) |= mask_of(bits);
    }
  }
  for (std::size_t word = 0; word < 16; ++word) EXPECT_EQ(map.words[word] & ~held[word], 0u) << word;
}

TEST(map_fields, name_values_as_describe_does) {
  const auto fields = fields_of(rank_2_map());
  ASSERT_TRUE(fields);
  const std::string text = describe(rank_2_map());
  std::map<std::string, const map_field*> by_name;
  for (const map_field& field : *fields) {
    by_name[field.name] = &field;
    EXPECT_NE(text.find(field.name + ' '), std::string::npos) << field.name;
    EXPECT_NE(text.find(' ' + field.value + '\n'), std::string::npos) << field.value;
  }
  ASSERT_TRUE(by_name.contains("global_dim[1]"));
  EXPECT_EQ(by_name["global_dim[1]"]->value, "100");
  EXPECT_EQ(by_name["global_dim[1]"]->low.word, 4u);
  EXPECT_EQ(by_name["global_dim[1]"]->low.shift, 32u);
  EXPECT_EQ(by_name["swizzle"]->value, "128B");
  EXPECT_EQ(by_name["swizzle"]->high.width, 2u);
  EXPECT_FALSE(by_name.contains("global_dim[2]"));
}

TEST(map_fields, take_any_bytes) {
  tensor_map noise;
  for (std::uint64_t& word : noise.words) word = ~std::uint64_t{0};
  EXPECT_FALSE(decode(noise));
  EXPECT_TRUE(fields_of(noise));
  EXPECT_TRUE(fields_of(tensor_map{}));
}

}  // namespace
}  // namespace tmap
