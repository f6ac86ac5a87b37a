// SPDX-License-Identifier: Apache-2.0
// Drawings hold what they show: they are parsed and compared with the map, the layout and the
// simulator.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tmap/decode.hpp>
#include <tmap/map_fields.hpp>
#include <tmap/simulator.hpp>
#include <tmap/tile_layout.hpp>

#include <set>

#include "apps/drawing/banks.hpp"
#include "apps/drawing/loaded_tile.hpp"
#include "apps/drawing/map_figure.hpp"
#include "apps/drawing/page.hpp"
#include "apps/drawing/tensor_figure.hpp"
#include "apps/drawing/terminal_drawing.hpp"
#include "apps/drawing/tile_figure.hpp"
#include "apps/markup.hpp"
#include "apps/sample_maps.hpp"

namespace tmap::drawing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace tmap::testing;

tensor_spec ragged_spec(swizzle mode = swizzle::bytes_128) {
  constexpr std::uint64_t dims[] = {100, 70};
  constexpr std::uint32_t box[] = {64, 32};
  tensor_spec spec = packed_spec(element_type::f16, 0x100000, dims, box);
  spec.global_stride_bytes[0] = 256;
  spec.swizzle = mode;
  return spec;
}

tensor_marks refused_marks() {
  tensor_marks marks;
  marks.is_refused = true;
  return marks;
}

std::vector<element> elements_of_canvas(const canvas& picture) {
  return elements_of(picture.elements());
}

TEST(drawing, of_a_map_has_each_byte_with_its_value_and_fields) {
  const tensor_map map = sample_map();
  const figure drawn = draw_map(map);
  ASSERT_EQ(drawn.panels.size(), 2u);
  const auto bytes = of_class(elements_of_canvas(drawn.panels[0].picture), "byte");
  ASSERT_EQ(bytes.size(), tensor_map_bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(bytes[i].attribute("data-byte"), std::to_string(i));
    EXPECT_EQ(bytes[i].attribute("data-value"), hex_of(map).substr(2 * i, 2)) << i;
  }
  EXPECT_EQ(bytes[0].attribute("data-fields"), "global_address");
  EXPECT_EQ(bytes[63].attribute("data-fields"), "not used");
  EXPECT_THAT(bytes[9].attribute("data-fields"), HasSubstr("swizzle"));
}

TEST(drawing, of_a_map_lists_each_field_with_bits_and_value) {
  const auto known = fields_of(sample_map());
  ASSERT_TRUE(known);
  const figure drawn = draw_map(sample_map());
  const auto fields = of_class(elements_of_canvas(drawn.panels[1].picture), "field");
  ASSERT_EQ(fields.size(), known->size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    EXPECT_EQ(fields[i].attribute("data-field"), (*known)[i].name);
    EXPECT_EQ(fields[i].attribute("data-value"), (*known)[i].value);
    EXPECT_EQ(fields[i].attribute("data-bits"), place_text((*known)[i]));
  }
}

TEST(drawing, of_a_tensor_marks_what_is_cut_off_and_what_is_refused) {
  const tensor_spec spec = ragged_spec();
  const auto legal = elements_of_canvas(draw_tensor_to_scale(spec, {}));
  EXPECT_EQ(of_class(legal, "tensor").size(), 1u);
  EXPECT_EQ(of_class(legal, "cut").size(), 2u);
  EXPECT_EQ(of_class(legal, "grid").size(), 3u + 4u);
  EXPECT_EQ(of_class(legal, "hpad").size(), 1u);
  EXPECT_TRUE(of_class(legal, "mark").empty());

  const auto marked = elements_of_canvas(draw_tensor_to_scale(spec, {.box_at = coordinates{64, 60}}));
  ASSERT_EQ(of_class(marked, "mark").size(), 1u);
  const auto refused = elements_of_canvas(draw_tensor_to_scale(spec, refused_marks()));
  EXPECT_EQ(of_class(refused, "badarea").size(), 1u);
  EXPECT_TRUE(of_class(refused, "grid").empty());
}

TEST(drawing, of_a_tensor_is_to_scale) {
  const auto all = elements_of_canvas(draw_tensor_to_scale(ragged_spec(), {}));
  const element whole = of_class(all, "tensor").at(0);
  const double ratio = std::stod(whole.attribute("width")) / std::stod(whole.attribute("height"));
  EXPECT_NEAR(ratio, 100.0 / 70.0, 0.01);
}

TEST(drawing, takes_any_spec) {
  tensor_spec spec = ragged_spec();
  for (const std::uint64_t dim : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
    for (const std::uint32_t box : {0u, 1u, ~0u}) {
      for (const std::uint32_t rank : {0u, 1u, 2u, 5u, 9u}) {
        spec.rank = rank;
        for (std::uint64_t& each : spec.global_dim) each = dim;
        for (std::uint32_t& each : spec.box_dim) each = box;
        const auto all = elements_of_canvas(draw_tensor_to_scale(spec, refused_marks()));
        EXPECT_FALSE(all.empty());
        for (const element& each : all) EXPECT_THAT(each.attribute("width"), Not(HasSubstr("n")));
      }
    }
  }
}

TEST(loaded_tile, agrees_with_the_layout) {
  for (const swizzle mode : {swizzle::none, swizzle::bytes_32, swizzle::bytes_64, swizzle::bytes_128}) {
    tensor_spec spec = ragged_spec(mode);
    spec.box_dim[0] = mode == swizzle::none ? 64 : swizzle_span_bytes(mode) / 2;
    const auto tile = load_tile(spec, {0, 0});
    ASSERT_TRUE(tile) << to_string(tile.error());
    EXPECT_EQ(tile->barrier_bytes, tile_bytes(spec));
    const tile_layout layout = layout_of(spec);
    for (std::uint32_t row = 0; row < tile->rows; ++row) {
      for (std::uint32_t column = 0; column < tile->row_chunks; ++column) {
        const arrived_chunk& chunk = tile->in_shared.at(layout.offset<2>({column * 8, row}) / chunk_bytes);
        EXPECT_EQ(chunk.row, row);
        EXPECT_EQ(chunk.column, column);
        EXPECT_EQ(chunk.bytes_of_tensor, chunk_bytes);
      }
    }
  }
}

TEST(loaded_tile, counts_the_bytes_inside) {
  const auto tile = load_tile(ragged_spec(), {64, 64});
  ASSERT_TRUE(tile);
  std::uint64_t inside = 0;
  for (const arrived_chunk& chunk : tile->in_shared) inside += chunk.bytes_of_tensor;
  EXPECT_EQ(inside, (100 - 64) * 2u * (70 - 64));
  EXPECT_EQ(tile->of_box(5, 4).bytes_of_tensor, 8u);
  EXPECT_EQ(tile->of_box(6, 0).bytes_of_tensor, 0u);

  const auto outside = load_tile(ragged_spec(), {-64, -32});
  ASSERT_TRUE(outside);
  for (const arrived_chunk& chunk : outside->in_shared) EXPECT_EQ(chunk.bytes_of_tensor, 0u);
}

TEST(loaded_tile, leaves_gaps_between_narrow_swizzled_rows) {
  tensor_spec spec = ragged_spec(swizzle::bytes_128);
  spec.box_dim[0] = 8;
  const auto tile = load_tile(spec, {0, 0});
  ASSERT_TRUE(tile);
  const auto written = std::count_if(tile->in_shared.begin(), tile->in_shared.end(),
                                     [](const arrived_chunk& chunk) { return chunk.is_of_the_box; });
  EXPECT_EQ(written, 32);
  EXPECT_EQ(tile->in_shared.size(), 32u * 8);
}

TEST(loaded_tile, fails_as_the_copy_engine_does) {
  const auto odd = load_tile(ragged_spec(), {3, 0});
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().first, rule::u09_innermost_coordinate);
  tensor_spec broken = ragged_spec();
  broken.box_dim[1] = 300;
  ASSERT_FALSE(load_tile(broken, {0, 0}));
  EXPECT_EQ(load_tile(broken, {0, 0}).error().code, status::rule_broken);
}

TEST(loaded_tile, takes_types_that_are_rounded_interleaved_and_stepped_tensors) {
  tensor_spec rounded = ragged_spec();
  rounded.type = element_type::tf32;
  rounded.box_dim[0] = 32;
  EXPECT_TRUE(load_tile(rounded, {0, 0}));

  tensor_spec stepped = ragged_spec();
  stepped.element_stride[1] = 2;
  const auto tile = load_tile(stepped, {0, 64});
  ASSERT_TRUE(tile);
  EXPECT_EQ(tile->rows, 16u);
  EXPECT_EQ(tile->of_box(2, 0).bytes_of_tensor, chunk_bytes);
  EXPECT_EQ(tile->of_box(3, 0).bytes_of_tensor, 0u);

  constexpr std::uint64_t dims[] = {20, 6, 3};
  constexpr std::uint32_t box[] = {16, 1, 2};
  tensor_spec sliced = packed_spec(element_type::u8, 0x100000, dims, box);
  sliced.interleave = interleave::bytes_16;
  sliced.global_stride_bytes[0] = 16 * 20;
  sliced.global_stride_bytes[1] = 16 * 20 * 6;
  const auto slices = load_tile(sliced, {16, 0, 2});
  ASSERT_TRUE(slices) << to_string(slices.error());
  EXPECT_EQ(slices->of_box(0, 3).bytes_of_tensor, chunk_bytes);
  EXPECT_EQ(slices->of_box(0, 4).bytes_of_tensor, 0u);
  EXPECT_EQ(slices->of_box(1, 0).bytes_of_tensor, 0u);
}

TEST(banks, count_the_words_of_each_bank) {
  EXPECT_EQ(ways_of(load_of({0, 4, 8}, 4)), 1u);
  EXPECT_EQ(ways_of(load_of({0, 0, 0}, 4)), 1u);
  EXPECT_EQ(ways_of(load_of({0, 128, 256}, 4)), 3u);
  EXPECT_EQ(ways_of(load_of({0, 2}, 2)), 1u);
  // 16 bytes a lane: eight lanes at once, so that lane 8 does not meet lane 0.
  std::vector<std::uint32_t> rows;
  for (std::uint32_t lane = 0; lane < 16; ++lane) rows.push_back(lane * 128);
  EXPECT_EQ(ways_of(load_of(rows, 16)), 8u);
  EXPECT_EQ(ways_of(load_of(rows, 8)), 16u);
  EXPECT_EQ(ways_of(load_of(rows, 4)), 16u);
}

TEST(banks, tell_a_swizzle_from_none) {
  const auto reads = common_reads(ragged_spec());
  ASSERT_EQ(reads.size(), 3u);
  const std::pair<std::uint32_t, std::uint32_t> wanted[] = {{1, 1}, {4, 32}, {1, 8}};
  for (std::size_t i = 0; i < reads.size(); ++i) {
    EXPECT_EQ(ways_of(reads[i].with_swizzle), wanted[i].first) << reads[i].name;
    EXPECT_EQ(ways_of(reads[i].without_swizzle), wanted[i].second) << reads[i].name;
  }
  constexpr std::uint64_t dims[] = {1000};
  constexpr std::uint32_t box[] = {16};
  EXPECT_EQ(common_reads(packed_spec(element_type::f32, 0x1000, dims, box)).size(), 1u);
}

TEST(drawing, of_a_load_has_each_chunk_in_both_places) {
  const auto drawn = draw_tile(ragged_spec(), {64, 64});
  ASSERT_TRUE(drawn);
  ASSERT_EQ(drawn->panels.size(), 4u);
  const auto in_box = of_class(elements_of_canvas(drawn->panels[0].picture), "chunk");
  const auto in_shared = of_class(elements_of_canvas(drawn->panels[1].picture), "chunk");
  ASSERT_EQ(in_box.size(), 16u * 8);
  ASSERT_EQ(in_shared.size(), 16u * 8);
  std::set<std::pair<std::string, std::string>> seen;
  const tile_layout layout = layout_of(ragged_spec());
  for (const element& chunk : in_shared) {
    seen.emplace(chunk.attribute("data-row"), chunk.attribute("data-column"));
    const auto row = static_cast<std::uint32_t>(std::stoul(chunk.attribute("data-row")));
    const auto column = static_cast<std::uint32_t>(std::stoul(chunk.attribute("data-column")));
    EXPECT_EQ(chunk.attribute("data-place"), std::to_string(layout.offset<2>({column * 8, row}) / chunk_bytes));
    const char* inside = row >= 6 || column > 4 ? "0" : (column == 4 ? "8" : "16");
    EXPECT_EQ(chunk.attribute("data-inside"), inside) << row << ' ' << column;
  }
  EXPECT_EQ(seen.size(), in_shared.size());
  const auto reads = of_class(elements_of_canvas(drawn->panels[2].picture), "read");
  ASSERT_EQ(reads.size(), 3u);
  EXPECT_EQ(reads[1].attribute("data-ways"), "4");
  EXPECT_EQ(reads[1].attribute("data-plain-ways"), "32");
}

TEST(drawing, pages_and_files_need_nothing_from_outside) {
  const figure drawn = draw_map(sample_map());
  const std::string page = html_page("a <title>", html_of(drawn));
  EXPECT_THAT(page, HasSubstr("a &lt;title&gt;"));
  for (const std::string& text : {page, svg_file({drawn})}) {
    EXPECT_FALSE(elements_of(text).empty());
    for (const char* foreign : {"<script", "src=", "@import", "url(", "href=\"http"}) {
      EXPECT_THAT(text, Not(HasSubstr(foreign)));
    }
    EXPECT_THAT(text, HasSubstr("prefers-color-scheme:dark"));
  }
}

TEST(drawing, as_text_has_colours_only_on_request) {
  const tensor_spec spec = ragged_spec();
  const auto plain = tile_as_text(spec, {0, 64}, false);
  const auto coloured = tile_as_text(spec, {0, 64}, true);
  ASSERT_TRUE(plain && coloured);
  EXPECT_THAT(*plain, Not(HasSubstr("\x1b[")));
  EXPECT_THAT(*coloured, HasSubstr("\x1b["));
  EXPECT_THAT(*plain, HasSubstr("   128     1,1    1,0    1,3    1,2"));
  EXPECT_THAT(*plain, HasSubstr("6,6f"));
  EXPECT_THAT(*plain, HasSubstr("a column  4 ways       without swizzle 32 ways"));
  const std::string boxes = tensor_as_text(spec, {.box_at = coordinates{64, 64}}, false);
  EXPECT_THAT(boxes, HasSubstr("  ■◪\n  ■◪\n  ◪◆\n"));
  EXPECT_THAT(map_as_text(sample_map(), false), HasSubstr("global_dim[1]           4: 32-63"));
}

}  // namespace
}  // namespace tmap::drawing
