// SPDX-License-Identifier: Apache-2.0
#include "apps/support/picture/picture.hpp"

#include <png.h>

#include <algorithm>

namespace tmap::drawing {
namespace {

std::uint8_t mix(std::uint8_t from, std::uint8_t to, std::uint32_t part) {
  return static_cast<std::uint8_t>((from * (256 - part) + to * part) / 256);
}

rectangle clip(rectangle area, std::uint32_t width, std::uint32_t height) {
  const std::int64_t left = std::max<std::int64_t>(area.x, 0);
  const std::int64_t top = std::max<std::int64_t>(area.y, 0);
  const std::int64_t right = std::min<std::int64_t>(area.x + area.width, width);
  const std::int64_t bottom = std::min<std::int64_t>(area.y + area.height, height);
  return {left, top, right - left, bottom - top};
}

}  // namespace

colour mix(colour from, colour to, std::uint32_t part) {
  return {mix(from.red, to.red, part), mix(from.green, to.green, part), mix(from.blue, to.blue, part)};
}

picture::picture(std::uint32_t width, std::uint32_t height, colour background)
    : width_{width}, height_{height}, samples_(std::size_t{3} * width * height) {
  fill({0, 0, width, height}, background);
}

colour picture::at(std::uint32_t x, std::uint32_t y) const {
  const std::uint8_t* pixel = samples_.data() + 3 * (std::size_t{y} * width_ + x);
  return {pixel[0], pixel[1], pixel[2]};
}

void picture::set(std::int64_t x, std::int64_t y, colour ink) {
  if (x < 0 || y < 0 || x >= width_ || y >= height_) return;
  std::uint8_t* pixel = samples_.data() + 3 * (static_cast<std::size_t>(y) * width_ + static_cast<std::size_t>(x));
  pixel[0] = ink.red;
  pixel[1] = ink.green;
  pixel[2] = ink.blue;
}

void picture::fill(rectangle area, colour ink) {
  hatch(area, ink, ink, 1);
}

void picture::hatch(rectangle area, colour first, colour second, std::int64_t period) {
  const rectangle inside = clip(area, width_, height_);
  for (std::int64_t y = inside.y; y < inside.y + inside.height; ++y) {
    for (std::int64_t x = inside.x; x < inside.x + inside.width; ++x) {
      set(x, y, (x + y) / period % 2 == 0 ? first : second);
    }
  }
}

void picture::frame(rectangle area, colour ink, std::int64_t thickness) {
  fill({area.x, area.y, area.width, thickness}, ink);
  fill({area.x, area.y + area.height - thickness, area.width, thickness}, ink);
  fill({area.x, area.y, thickness, area.height}, ink);
  fill({area.x + area.width - thickness, area.y, thickness, area.height}, ink);
}

std::vector<std::byte> picture::png() const {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width_;
  image.height = height_;
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::vector<std::byte> file(size);
  const bool written = png_image_write_to_memory(&image, file.data(), &size, 0, samples_.data(), 0, nullptr) != 0;
  png_image_free(&image);
  file.resize(written ? size : 0);
  return file;
}

}  // namespace tmap::drawing
