// SPDX-License-Identifier: Apache-2.0
#include <tmap/decode.hpp>
#include <tmap/simulator.hpp>

#include "apps/demo/pictures/sheet.hpp"

#include <array>
#include <cstring>

namespace tmap::demo {
namespace {

constexpr std::uint32_t chunk_bytes = 16;
constexpr std::uint32_t line_chunks = 8;  // 128 bytes: all 32 banks of shared memory
constexpr std::uint64_t base = 1 << 20;

struct swizzle_scene {
  const char* file;
  const char* title;
  swizzle mode;
  std::uint32_t row_chunks;
  std::uint32_t rows;
};

tensor_spec tile_spec(const swizzle_scene& scene) {
  const std::array<std::uint64_t, 2> dims{scene.row_chunks * chunk_bytes, scene.rows};
  const std::array<std::uint32_t, 2> box{scene.row_chunks * chunk_bytes, scene.rows};
  tensor_spec spec = packed_spec(element_type::u8, base, {dims.data(), 2}, {box.data(), 2});
  spec.swizzle = scene.mode;
  return spec;
}

/// Which chunk of the tile lies in each chunk of shared memory, as the simulated copy engine leaves
/// it.
std::vector<std::uint32_t> load_chunks(const swizzle_scene& scene) {
  const std::uint32_t count = scene.row_chunks * scene.rows;
  std::vector<std::byte> memory(count * chunk_bytes);
  for (std::uint32_t i = 0; i < count; ++i) std::memcpy(memory.data() + i * chunk_bytes, &i, sizeof i);
  const simulator::memory_window window{base, {memory.data(), memory.size()}};
  const simulator::copy_engine engine{{&window, 1}};
  const auto map = encode_bits(tile_spec(scene));
  std::vector<std::byte> tile(memory.size());
  const std::array<std::int32_t, 2> corner{};
  std::vector<std::uint32_t> chunks(count);
  if (!map || !engine.load(*map, {corner.data(), 2}, {tile.data(), tile.size()})) return {};
  for (std::uint32_t i = 0; i < count; ++i) std::memcpy(&chunks[i], tile.data() + i * chunk_bytes, sizeof i);
  return chunks;
}

picture draw(const swizzle_scene& scene) {
  const std::vector<std::uint32_t> chunks = load_chunks(scene);
  const auto lines = static_cast<std::int64_t>(chunks.size() / line_chunks);
  grid_sheet sheet{scene.title, line_chunks, lines, 26};
  for (std::uint32_t place = 0; place < chunks.size(); ++place) {
    const std::uint32_t column = chunks[place] % scene.row_chunks;
    const std::uint32_t row = chunks[place] / scene.row_chunks;
    const auto x = static_cast<std::int64_t>(place % line_chunks);
    const auto y = static_cast<std::int64_t>(place / line_chunks);
    const colour paint = hue(column, scene.row_chunks);
    sheet.fill(x, y, drawing::mix(paint, night, 30 + 150 * row / scene.rows));
    const rectangle area = sheet.area(x, y);
    const char digit = static_cast<char>('0' + column);
    sheet.image.text(area.x + 7, area.y + 5, {&digit, 1}, night, 2);
  }
  return sheet.image;
}

}  // namespace

std::vector<drawn> draw_swizzles() {
  const swizzle_scene scenes[] = {
      {"swizzle_none", "SWIZZLE NONE", swizzle::none, 8, 8},
      {"swizzle_32", "SWIZZLE 32", swizzle::bytes_32, 2, 48},
      {"swizzle_64", "SWIZZLE 64", swizzle::bytes_64, 4, 20},
      {"swizzle_128", "SWIZZLE 128", swizzle::bytes_128, 8, 8},
      {"swizzle_128_tall", "SWIZZLE 128, 12 ROWS", swizzle::bytes_128, 8, 12},
  };
  std::vector<drawn> pictures;
  for (const swizzle_scene& scene : scenes) pictures.push_back({scene.file, draw(scene)});
  return pictures;
}

}  // namespace tmap::demo
