// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tmap::drawing {

/// Returns `text` as it may stand in SVG and HTML, between tags and in quoted attributes.
std::string escaped(std::string_view text);

/// Holds a place and a size on a canvas, in pixels.
struct area {
  double x{};
  double y{};
  double width{};
  double height{};
};

/// Collects SVG elements on a canvas of a fixed size. Colours come from the classes of
/// `style_sheet` (page.hpp). `attributes` are further attributes of an element, ready to print: `
/// data-row="3"`.
class canvas {
 public:
  canvas(double width, double height) : width_(width), height_(height) {}

  double width() const { return width_; }
  double height() const { return height_; }
  void set_height(double height) { height_ = height; }

  void box(const area& where, std::string_view css, std::string_view tip = {}, std::string_view attributes = {});
  /// Draws diagonal stripes over `where`.
  void hatch(const area& where, std::string_view css);
  void line(double x1, double y1, double x2, double y2, std::string_view css);
  void text(double x, double y, std::string_view words, std::string_view css = "t");
  void open_group(std::string_view css, std::string_view attributes = {});
  void close_group() { elements_ += "</g>\n"; }

  /// Returns the elements alone.
  const std::string& elements() const { return elements_; }

 private:
  double width_;
  double height_;
  std::string elements_;
};

}  // namespace tmap::drawing
