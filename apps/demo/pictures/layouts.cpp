// SPDX-License-Identifier: Apache-2.0
#include "apps/demo/pictures/sheet.hpp"

namespace tmap::demo {
namespace {

constexpr colour skipped{34, 42, 58};

/// Elements of a box that a copy takes, step by step, and below them the dense tile they become.
picture draw_stride(const char* title, std::int64_t columns, std::int64_t rows, std::int64_t step_x,
                    std::int64_t step_y) {
  const std::int64_t tile_columns = (columns + step_x - 1) / step_x;
  const std::int64_t tile_rows = (rows + step_y - 1) / step_y;
  grid_sheet sheet{title, columns, rows + 1 + tile_rows, 16};
  const auto count = static_cast<std::uint32_t>(tile_columns);
  for (std::int64_t y = 0; y < rows; ++y) {
    for (std::int64_t x = 0; x < columns; ++x) {
      const bool taken = x % step_x == 0 && y % step_y == 0;
      const colour paint = drawing::mix(hue(static_cast<std::uint32_t>(x / step_x), count), night,
                                        static_cast<std::uint32_t>(120 * y / rows));
      sheet.fill(x, y, taken ? paint : skipped);
      if (taken) sheet.fill(x / step_x, rows + 1 + y / step_y, paint);
    }
  }
  sheet.outline(0, 0, columns, rows, faint);
  sheet.outline(0, rows + 1, tile_columns, tile_rows, amber);
  return sheet.image;
}

/// Draws slices of channels, one after another; each pixel of a slice holds `channels` channels
/// side by side.
picture draw_slices(const char* title, std::int64_t slices, std::int64_t channels, std::int64_t width,
                    std::int64_t height) {
  const std::int64_t offset = 2;
  const std::int64_t columns = width * channels + (slices - 1) * offset;
  const std::int64_t rows = height * 2 + (slices - 1) * offset;
  grid_sheet sheet{title, columns, rows, 9};
  for (std::int64_t slice = slices - 1; slice >= 0; --slice) {
    const std::int64_t left = slice * offset;
    const std::int64_t top = (slices - 1 - slice) * offset;
    sheet.image.fill(sheet.area(left, top, width * channels, height * 2), night);
    for (std::int64_t x = 0; x < width * channels; ++x) {
      for (std::int64_t y = 0; y < height * 2; ++y) {
        const colour paint = hue(static_cast<std::uint32_t>(slice * channels + x % channels),
                                 static_cast<std::uint32_t>(slices * channels));
        sheet.fill(left + x, top + y, drawing::mix(paint, night, (x / channels + y / 2) % 2 == 0 ? 20 : 90));
      }
    }
    sheet.outline(left, top, width * channels, height * 2, slice == 0 ? amber : faint);
  }
  return sheet.image;
}

}  // namespace

std::vector<drawn> draw_strides() {
  std::vector<drawn> pictures;
  pictures.push_back({"stride_2_1", draw_stride("STRIDE 2,1", 16, 8, 2, 1)});
  pictures.push_back({"stride_2_2", draw_stride("STRIDE 2,2", 15, 9, 2, 2)});
  pictures.push_back({"stride_3_2", draw_stride("STRIDE 3,2", 18, 8, 3, 2)});
  pictures.push_back({"stride_1_4", draw_stride("STRIDE 1,4", 9, 13, 1, 4)});
  pictures.push_back({"stride_8_8", draw_stride("STRIDE 8,8", 20, 10, 8, 8)});
  return pictures;
}

std::vector<drawn> draw_interleaves() {
  std::vector<drawn> pictures;
  pictures.push_back({"interleave_16", draw_slices("INTERLEAVE 16, NC/8HWC8", 4, 8, 4, 7)});
  pictures.push_back({"interleave_32", draw_slices("INTERLEAVE 32, NC/16HWC16", 2, 16, 3, 6)});
  pictures.push_back({"interleave_none", draw_slices("NO INTERLEAVE, NHWC", 1, 32, 1, 5)});
  return pictures;
}

}  // namespace tmap::demo
