// SPDX-License-Identifier: Apache-2.0
#include "apps/demo/pictures/sheet.hpp"

#include <algorithm>

namespace tmap::demo {
namespace {

constexpr std::int64_t margin = 14;
constexpr std::int64_t title_height = 28;

std::uint32_t sheet_width(std::string_view title, std::int64_t columns, std::int64_t cell) {
  return static_cast<std::uint32_t>(2 * margin + std::max(columns * cell, drawing::text_width(title, 2)));
}

}  // namespace

colour hue(std::uint32_t index, std::uint32_t count) {
  constexpr colour stops[] = {{56, 189, 248}, {52, 211, 153},  {250, 204, 21}, {251, 113, 60},
                              {244, 63, 94},  {192, 100, 240}, {99, 102, 241}, {56, 189, 248}};
  const std::uint32_t at = index % count * 7 * 256 / count;
  return drawing::mix(stops[at / 256], stops[at / 256 + 1], at % 256);
}

grid_sheet::grid_sheet(std::string_view title, std::int64_t columns, std::int64_t rows, std::int64_t cell)
    : image{sheet_width(title, columns, cell), static_cast<std::uint32_t>(2 * margin + title_height + rows * cell),
            night},
      cell_{cell} {
  image.text(margin, margin, title, ink, 2);
}

rectangle grid_sheet::area(std::int64_t column, std::int64_t row, std::int64_t columns, std::int64_t rows) const {
  return {margin + column * cell_, margin + title_height + row * cell_, columns * cell_ - 2, rows * cell_ - 2};
}

void grid_sheet::hatch(std::int64_t column, std::int64_t row, colour first, colour second) {
  image.hatch(area(column, row), first, second, 3);
}

void grid_sheet::outline(std::int64_t column, std::int64_t row, std::int64_t columns, std::int64_t rows, colour paint) {
  const rectangle inner = area(column, row, columns, rows);
  image.frame({inner.x - 2, inner.y - 2, inner.width + 4, inner.height + 4}, paint, 2);
}

}  // namespace tmap::demo
