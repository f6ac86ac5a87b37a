// SPDX-License-Identifier: Apache-2.0
// Checks that each element of tiles of every layout is at the place that tile_layout.hpp computes,
// after a load by the simulator. tests/conformance checks that the simulator does what the copy
// engine does.
#include <tmap/decode.hpp>
#include <tmap/simulator.hpp>
#include <tmap/tile_layout.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "support/tile_elements.hpp"

namespace tmap::testing {
namespace {

class tile_layout_test : public ::testing::Test {
 protected:
  tile_layout_test() : arena_(conformance::arena_bytes) {
    std::mt19937 random(5);
    for (unsigned char& byte : arena_) byte = static_cast<unsigned char>(random());
  }

  /// Returns the tile as it is in shared memory, at `shared_address`.
  std::vector<unsigned char> load(const conformance::tile_case& tile, std::uint32_t shared_address) {
    std::vector<unsigned char> loaded(tile_footprint_bytes(tile.spec) + 1024, 0xee);
    const result<tensor_map> map = encode_bits(tile.spec);
    const simulator::memory_window window{0, {reinterpret_cast<std::byte*>(arena_.data()), arena_.size()}};
    const cuda::std::span<std::byte> to{reinterpret_cast<std::byte*>(loaded.data()), loaded.size()};
    const simulator::copy_engine engine{{&window, 1}};
    const bool is_loaded = map && engine.load(*map, {tile.coordinates, tile.spec.rank}, to, shared_address).has_value();
    EXPECT_TRUE(is_loaded) << to_text(tile);
    return loaded;
  }

  std::vector<unsigned char> arena_;
};

/// `read(at)` returns the place of an element in the loaded tile. Returns all elements in the order
/// of coordinates.
template <std::uint32_t Rank, class Read>
std::vector<unsigned char> read_all(const tile_layout& layout, const Read& read) {
  std::vector<unsigned char> elements(std::size_t{layout.elements()} * layout.element_bytes);
  std::uint32_t at[Rank]{};
  for (std::size_t i = 0; i < layout.elements(); ++i) {
    std::memcpy(elements.data() + i * layout.element_bytes, read(at), layout.element_bytes);
    for (std::uint32_t axis = 0; axis < Rank && ++at[axis] == layout.dim[axis]; ++axis) at[axis] = 0;
  }
  return elements;
}

TEST_F(tile_layout_test, finds_every_element_at_any_address) {
  for (const conformance::tile_case& tile : loads_of_every_layout()) {
    const tile_layout layout = layout_of(tile.spec);
    const std::vector<unsigned char> expected = expected_elements(tile, arena_);
    EXPECT_EQ(expected.size(), tile_bytes(tile.spec)) << to_text(tile) << ": all elements of a load";
    for (const std::uint32_t address : {0u, shared_alignment(tile.spec.swizzle), 128u, tile.shared_offset}) {
      const std::vector<unsigned char> loaded = load(tile, address);
      with_element_and_rank(tile.spec, [&](auto, auto rank) {
        const auto found = read_all<rank>(
            layout, [&](const std::uint32_t(&at)[rank]) { return loaded.data() + layout.offset(at, address); });
        EXPECT_TRUE(found == expected) << to_text(tile) << " at " << address;
      });
    }
  }
}

TEST_F(tile_layout_test, shows_every_element_in_a_view) {
  std::set<std::pair<interleave, swizzle>> modes;
  for (const conformance::tile_case& tile : loads_of_every_layout()) {
    modes.insert({tile.spec.interleave, tile.spec.swizzle});
    const tile_layout layout = layout_of(tile.spec);
    const std::vector<unsigned char> expected = expected_elements(tile, arena_);
    const std::vector<unsigned char> loaded = load(tile, 0);
    with_element_and_rank(tile.spec, [&](auto element, auto rank) {
      using T = decltype(element);
      const tile_view<const T, rank> view(loaded.data(), layout);
      const auto by_coordinates =
          read_all<rank>(layout, [&](const std::uint32_t(&at)[rank]) { return &element_at(view, at); });
      EXPECT_TRUE(by_coordinates == expected) << to_text(tile);
      std::uint32_t i = 0;
      const auto by_number = read_all<rank>(layout, [&](const std::uint32_t(&)[rank]) { return &view[i++]; });
      EXPECT_TRUE(by_number == expected) << to_text(tile);
    });
  }
  EXPECT_EQ(modes.size(), 4u + 4 + 1) << "a layout was left out";
}

TEST_F(tile_layout_test, changes_with_the_address_below_one_repeat_only) {
  tensor_spec spec;
  spec.type = element_type::f32;
  spec.rank = 2;
  spec.box_dim[0] = 8;
  spec.box_dim[1] = 64;
  for (const auto mode : {swizzle::bytes_32, swizzle::bytes_64, swizzle::bytes_128}) {
    spec.swizzle = mode;
    const tile_layout layout = layout_of(spec);
    const std::uint32_t at[] = {4, 3};
    for (std::uint32_t address = 0; address < 4096; address += 128) {
      const bool is_aligned = address % shared_alignment(mode) == 0;
      EXPECT_EQ(layout.offset(at, address) == layout.offset(at), is_aligned) << name(mode) << " at " << address;
    }
  }
}

// Everything is known at compile time.
constexpr tensor_spec columns_and_rows() {
  tensor_spec spec;
  spec.type = element_type::f16;
  spec.rank = 2;
  spec.box_dim[0] = 64;
  spec.box_dim[1] = 64;
  spec.swizzle = swizzle::bytes_128;
  return spec;
}
constexpr std::uint32_t column_8_row_3[] = {8, 3};
static_assert(layout_of(columns_and_rows()).offset(column_8_row_3) == 3 * 128 + (1 ^ 3) * 16);

}  // namespace
}  // namespace tmap::testing
