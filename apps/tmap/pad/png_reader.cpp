// SPDX-License-Identifier: Apache-2.0
#include <png.h>

#include "apps/tmap/pad/tensor.hpp"

namespace tmap::tool {
namespace {

/// The most bytes that zlib can unpack from one.
constexpr std::uint64_t most_bytes_per_file_byte = 1032;

/// Frees what libpng holds, whichever way the reader is left.
struct png_guard {
  png_image image{};
  ~png_guard() { png_image_free(&image); }
};

outcome<std::uint64_t> check_size(const png_image& image, std::size_t file_bytes, std::uint64_t most_bytes) {
  const std::uint64_t pixels = std::uint64_t{image.width} * image.height;
  // A header is four bytes that anyone can flip: nothing is allocated for pixels that cannot be in
  // the file.
  if (pixels / 8 / most_bytes_per_file_byte > file_bytes) {  // a pixel takes one bit at least
    return refuse("its header promises {} x {} pixels, far more than the file holds", image.width, image.height);
  }
  if (pixels > most_bytes / 4) {
    return refuse("its {} x {} pixels take more memory than --max-bytes allows", image.width, image.height);
  }
  return pixels;
}

void drop_alpha(std::vector<std::byte>& samples) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i + 3 < samples.size(); i += 4) {
    for (std::size_t channel = 0; channel < 3; ++channel) samples[kept++] = samples[i + channel];
  }
  samples.resize(kept);
}

std::string note_of(bool alpha, bool deep, bool grey) {
  std::string note;
  const auto add = [&](bool applies, const char* text) {
    if (applies) note += std::string{note.empty() ? "" : ", "} + text;
  };
  add(grey, "grey expanded to RGB");
  add(alpha, "transparency dropped");
  add(deep, "16 bits reduced to 8");
  return note;
}

}  // namespace

outcome<tensor> read_png(std::span<const std::byte> file, std::uint64_t most_bytes) {
  png_guard guard;
  png_image& image = guard.image;
  image.version = PNG_IMAGE_VERSION;
  if (file.empty()) return refuse("it is empty");
  if (png_image_begin_read_from_memory(&image, file.data(), file.size()) == 0) {
    return refuse("it is not a readable PNG ({})", image.message);
  }
  const auto pixels = check_size(image, file.size(), most_bytes);
  if (!pixels) return refusal{pixels.error()};

  const bool alpha = (image.format & PNG_FORMAT_FLAG_ALPHA) != 0;
  const bool deep = (image.format & PNG_FORMAT_FLAG_LINEAR) != 0;
  const bool grey = (image.format & PNG_FORMAT_FLAG_COLOR) == 0;
  image.format = alpha ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // 16-bit samples are what 8-bit ones are, only finer
  std::vector<std::byte> samples(*pixels * (alpha ? 4 : 3));
  if (png_image_finish_read(&image, nullptr, samples.data(), 0, nullptr) == 0) {
    return refuse("it is a truncated or corrupt PNG ({})", image.message);
  }
  if (alpha) drop_alpha(samples);

  tensor read;
  read.type = dtype::u8;
  read.shape = {image.height, image.width, 3};
  read.storage = std::make_shared<const std::vector<std::byte>>(std::move(samples));
  read.bytes = *read.storage;
  read.picture = true;
  read.note = note_of(alpha, deep, grey);
  return read;
}

}  // namespace tmap::tool
