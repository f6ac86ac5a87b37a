// SPDX-License-Identifier: Apache-2.0
#include "apps/drawing/canvas.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tmap::drawing {
namespace {

/// Writes a length with at most two decimals: drawings stay small and equal on every machine.
std::string length(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char letter : text) {
    switch (letter) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += letter;
    }
  }
  return safe;
}

void canvas::box(const area& where, std::string_view css, std::string_view tip, std::string_view attributes) {
  elements_ += fmt::format(R"(<rect x="{}" y="{}" width="{}" height="{}" class="{}"{})", length(where.x),
                           length(where.y), length(where.width), length(where.height), css, attributes);
  elements_ += tip.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", escaped(tip));
}

void canvas::hatch(const area& where, std::string_view css) {
  constexpr double step = 6;
  std::string path;
  for (double along = step; along < where.width + where.height; along += step) {
    const double top = std::min(along, where.width);
    const double left = std::min(along, where.height);
    path += fmt::format("M{} {}L{} {}", length(where.x + top), length(where.y + along - top),
                        length(where.x + along - left), length(where.y + left));
  }
  if (!path.empty()) elements_ += fmt::format("<path d=\"{}\" class=\"{}\"/>\n", path, css);
}

void canvas::line(double x1, double y1, double x2, double y2, std::string_view css) {
  elements_ +=
      fmt::format("<path d=\"M{} {}L{} {}\" class=\"{}\"/>\n", length(x1), length(y1), length(x2), length(y2), css);
}

void canvas::text(double x, double y, std::string_view words, std::string_view css) {
  elements_ +=
      fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\">{}</text>\n", length(x), length(y), css, escaped(words));
}

void canvas::open_group(std::string_view css, std::string_view attributes) {
  elements_ += fmt::format("<g class=\"{}\"{}>\n", css, attributes);
}

}  // namespace tmap::drawing
