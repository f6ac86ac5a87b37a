// SPDX-License-Identifier: Apache-2.0
#include "apps/drawing/bank_figure.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "apps/drawing/banks.hpp"

namespace tmap::drawing {
namespace {

constexpr double strip_x = 112;
constexpr double bank_width = 7;
constexpr double strip_height = 24;

const char* verdict_class(std::uint32_t ways) {
  return ways <= 1 ? "t h goodtext" : "t h badtext";
}

std::string ways_text(std::uint32_t ways) {
  return ways <= 1 ? "no conflict" : fmt::format("{} ways", ways);
}

/// Draws a column for each bank, as high as the words that are read of it.
void draw_strip(canvas& picture, double y, const char* words, const bank_load& load) {
  const std::uint32_t ways = ways_of(load);
  picture.text(strip_x - 6, y + 17, words, "t q r");
  for (std::uint32_t bank = 0; bank < bank_count; ++bank) {
    const double height = load.at(bank) == 0 ? 0 : strip_height * load.at(bank) / std::max(ways, 4u);
    const double x = strip_x + bank * bank_width;
    picture.box({x, y, bank_width - 1, strip_height}, "none");
    if (height > 0) {
      picture.box({x, y + strip_height - height, bank_width - 1, height}, ways > 1 ? "s4" : "s1",
                  fmt::format("bank {}: {} different words", bank, load.at(bank)));
    }
  }
  picture.text(panel_width - 2, y + 17, ways_text(ways), std::string{verdict_class(ways)} + " r");
}

}  // namespace

panel draw_bank_reads(const tensor_spec& spec) {
  canvas picture{panel_width, 0};
  const bool is_swizzled = spec.swizzle != swizzle::none;
  double y = 14;
  for (const tile_read& read : common_reads(spec)) {
    picture.open_group("read", fmt::format(" data-read=\"{}\" data-ways=\"{}\" data-plain-ways=\"{}\"", read.name,
                                           ways_of(read.with_swizzle), ways_of(read.without_swizzle)));
    picture.text(1, y, read.name, "t h");
    picture.text(76, y, read.meaning, "t q");
    y += 8;
    draw_strip(picture, y, is_swizzled ? "this swizzle" : "this tile", read.with_swizzle);
    y += strip_height + 6;
    if (is_swizzled) {
      draw_strip(picture, y, "no swizzle", read.without_swizzle);
      y += strip_height + 6;
    }
    y += 22;
    picture.close_group();
  }
  picture.text(1, y, "Each column is one of 32 banks, as high as the words read of it.", "t q");
  picture.text(1, y + 17, "The highest column is the number of cycles that a read takes.", "t q");
  picture.set_height(y + 26);
  return {"Bank conflicts of common reads", picture};
}

}  // namespace tmap::drawing
