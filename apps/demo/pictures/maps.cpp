// SPDX-License-Identifier: Apache-2.0
#include <tmap/decode.hpp>

#include "apps/demo/pictures/sheet.hpp"

#include <array>

namespace tmap::demo {
namespace {

/// Returns the colour of what a word holds.
colour word_colour(std::uint32_t word) {
  return word < 10 ? hue(word, 10) : faint;
}

/// Draws the 1,024 bits of a map: a line for each 64-bit word, its highest bit first.
picture draw_bits(const char* title, const tensor_map& map, std::int64_t cell) {
  grid_sheet sheet{title, 64, 16, cell};
  for (std::uint32_t word = 0; word < 16; ++word) {
    for (std::uint32_t bit = 0; bit < 64; ++bit) {
      const bool set = (map.words[word] >> (63 - bit) & 1) != 0;
      sheet.fill(bit, word, drawing::mix(word_colour(word), night, set ? 0 : 175));
    }
  }
  return sheet.image;
}

tensor_spec sample(std::uint32_t rank) {
  constexpr std::array<std::uint64_t, max_rank> dims{1920, 1080, 37, 12, 5};
  constexpr std::array<std::uint32_t, max_rank> box{64, 16, 4, 2, 1};
  tensor_spec spec = packed_spec(element_type::bf16, 0x7f31a2c40000, {dims.data(), rank}, {box.data(), rank});
  spec.swizzle = swizzle::bytes_128;
  spec.l2_promotion = l2_promotion::bytes_256;
  return spec;
}

}  // namespace

std::vector<drawn> draw_maps() {
  std::vector<drawn> pictures;
  const auto add = [&](const char* file, const char* title, std::uint32_t rank, std::int64_t cell) {
    const auto map = encode_bits(sample(rank));
    if (map) pictures.push_back({file, draw_bits(title, *map, cell)});
  };
  add("map_rank_1", "128 BYTES, RANK 1", 1, 5);
  add("map_rank_3", "128 BYTES, RANK 3", 3, 6);
  add("map_rank_5", "128 BYTES, RANK 5", 5, 6);
  return pictures;
}

}  // namespace tmap::demo
