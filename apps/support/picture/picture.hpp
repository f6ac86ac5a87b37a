// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tmap::drawing {

struct colour {
  std::uint8_t red{};
  std::uint8_t green{};
  std::uint8_t blue{};
};

/// Returns the colour that is `part` of 0 to 256 of the way from `from` to `to`.
colour mix(colour from, colour to, std::uint32_t part);

struct rectangle {
  std::int64_t x{};
  std::int64_t y{};
  std::int64_t width{};
  std::int64_t height{};
};

/// A picture of RGB pixels to draw on. Pixels outside are not drawn; reading needs a pixel
/// inside.
class picture {
 public:
  picture(std::uint32_t width, std::uint32_t height, colour background);

  std::uint32_t width() const { return width_; }
  std::uint32_t height() const { return height_; }
  colour at(std::uint32_t x, std::uint32_t y) const;

  void set(std::int64_t x, std::int64_t y, colour ink);
  void fill(rectangle area, colour ink);

  /// Draws diagonal stripes, `period` pixels wide each.
  void hatch(rectangle area, colour first, colour second, std::int64_t period);

  /// Draws the border of `area`, `thickness` pixels, inside it.
  void frame(rectangle area, colour ink, std::int64_t thickness = 1);

  /// Draws capitals, digits and some signs, 5 x 7 dots of `scale` pixels. Returns where the next
  /// letter would begin.
  std::int64_t text(std::int64_t x, std::int64_t y, std::string_view words, colour ink, std::int64_t scale = 1);

  /// Returns the picture as a PNG file. Empty if there is not enough memory.
  std::vector<std::byte> png() const;

 private:
  std::uint32_t width_;
  std::uint32_t height_;
  std::vector<std::uint8_t> samples_;
};

/// Returns the width of `words` in pixels, without the gap after the last letter.
std::int64_t text_width(std::string_view words, std::int64_t scale = 1);

}  // namespace tmap::drawing
