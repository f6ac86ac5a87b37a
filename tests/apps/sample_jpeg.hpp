// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>  // jpeglib.h needs FILE and does not include it

#include <jpeglib.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace tmap::testing {

/// Holds the start of a baseline JPEG's frame header: marker, length, 8 bits. Height and width
/// follow.
inline constexpr std::byte jpeg_frame[] = {std::byte{0xff}, std::byte{0xc0}, std::byte{0}, std::byte{17}, std::byte{8}};

/// Returns a JPEG picture of one colour, with one component for each that `space` has.
inline std::vector<std::byte> sample_jpeg(std::uint32_t width, std::uint32_t height, std::vector<std::uint8_t> colour,
                                          J_COLOR_SPACE space = JCS_RGB) {
  jpeg_error_mgr errors;
  jpeg_compress_struct encoder;
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&encoder, &memory, &size);
  encoder.image_width = width;
  encoder.image_height = height;
  encoder.input_components = static_cast<int>(colour.size());
  encoder.in_color_space = space;
  jpeg_set_defaults(&encoder);
  jpeg_start_compress(&encoder, TRUE);
  std::vector<std::uint8_t> row;
  for (std::uint32_t x = 0; x < width; ++x) row.insert(row.end(), colour.begin(), colour.end());
  JSAMPROW rows[] = {row.data()};
  for (std::uint32_t y = 0; y < height; ++y) jpeg_write_scanlines(&encoder, rows, 1);
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  const auto* first = reinterpret_cast<const std::byte*>(memory);
  std::vector<std::byte> file{first, first + size};
  std::free(memory);
  return file;
}

}  // namespace tmap::testing
