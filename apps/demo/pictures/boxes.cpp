// SPDX-License-Identifier: Apache-2.0
#include "apps/demo/pictures/sheet.hpp"

#include <algorithm>

namespace tmap::demo {
namespace {

constexpr colour tensor_first{30, 64, 120};
constexpr colour tensor_last{20, 110, 120};
constexpr colour zero_dark{46, 52, 64};
constexpr colour zero_light{66, 74, 90};
constexpr colour nan_dark{90, 24, 44};
constexpr colour nan_light{140, 36, 62};

struct block {
  std::int64_t column;
  std::int64_t row;
  std::int64_t columns;
  std::int64_t rows;

  bool holds(std::int64_t x, std::int64_t y) const {
    return x >= column && y >= row && x < column + columns && y < row + rows;
  }
};

struct box_scene {
  const char* file;
  const char* title;
  block box;  ///< in coordinates of the tensor
  std::int64_t columns;
  std::int64_t rows;
  bool nan;
};

colour tensor_colour(std::int64_t x, std::int64_t y, const box_scene& scene) {
  const auto part = static_cast<std::uint32_t>(256 * (x + y) / (scene.columns + scene.rows));
  return drawing::mix(tensor_first, tensor_last, part);
}

/// Draws the tensor and one box, on a sheet that holds both.
picture draw(const box_scene& scene) {
  const block tensor{0, 0, scene.columns, scene.rows};
  const block& box = scene.box;
  const std::int64_t left = std::max<std::int64_t>(-box.column, 0) + 1;
  const std::int64_t top = std::max<std::int64_t>(-box.row, 0) + 1;
  const std::int64_t right = std::max(scene.columns, box.column + box.columns) + 1;
  const std::int64_t bottom = std::max(scene.rows, box.row + box.rows) + 1;
  grid_sheet sheet{scene.title, left + right, top + bottom, 16};
  for (std::int64_t y = -top; y < bottom; ++y) {
    for (std::int64_t x = -left; x < right; ++x) {
      const bool taken = box.holds(x, y);
      const colour plain = tensor_colour(x, y, scene);
      if (tensor.holds(x, y)) sheet.fill(x + left, y + top, taken ? drawing::mix(plain, amber, 205) : plain);
      if (!tensor.holds(x, y) && taken) {
        sheet.hatch(x + left, y + top, scene.nan ? nan_dark : zero_dark, scene.nan ? nan_light : zero_light);
      }
    }
  }
  sheet.outline(left, top, scene.columns, scene.rows, faint);
  sheet.outline(box.column + left, box.row + top, box.columns, box.rows, amber);
  return sheet.image;
}

/// Boxes side by side over the whole tensor, the last ones over its edge; each in its own colour.
picture draw_walk(const char* title, std::int64_t columns, std::int64_t rows, std::int64_t width, std::int64_t height) {
  const std::int64_t across = (columns + width - 1) / width;
  const std::int64_t down = (rows + height - 1) / height;
  grid_sheet sheet{title, across * width, down * height, 12};
  for (std::int64_t y = 0; y < down * height; ++y) {
    for (std::int64_t x = 0; x < across * width; ++x) {
      const auto tile = static_cast<std::uint32_t>(y / height * across + x / width);
      const colour paint = hue(tile, static_cast<std::uint32_t>(across * down));
      const bool inside = x < columns && y < rows;
      if (inside) sheet.fill(x, y, drawing::mix(paint, night, (x + y) % 2 == 0 ? 40 : 70));
      if (!inside) sheet.hatch(x, y, zero_dark, drawing::mix(zero_light, paint, 50));
    }
  }
  for (std::int64_t tile = 0; tile < across * down; ++tile) {
    sheet.outline(tile % across * width, tile / across * height, width, height, night);
  }
  sheet.outline(0, 0, columns, rows, ink);
  return sheet.image;
}

}  // namespace

std::vector<drawn> draw_boxes() {
  const box_scene scenes[] = {
      {"box_inside", "BOX 8 X 4 AT 4,3", {4, 3, 8, 4}, 18, 11, false},
      {"box_right", "BOX 8 X 5 AT 16,2", {16, 2, 8, 5}, 20, 9, false},
      {"box_corner", "BOX 12 X 8 AT 12,6", {12, 6, 12, 8}, 20, 10, false},
      {"box_negative", "BOX 8 X 6 AT -4,-2", {-4, -2, 8, 6}, 13, 12, false},
      {"box_nan", "NAN FILL AT 12,4", {12, 4, 8, 9}, 17, 10, true},
      {"box_larger", "BOX LARGER THAN ALL", {-4, -3, 24, 14}, 15, 8, false},
      {"box_outside", "WHOLLY OUTSIDE", {12, 8, 8, 4}, 10, 6, false},
  };
  std::vector<drawn> pictures;
  for (const box_scene& scene : scenes) pictures.push_back({scene.file, draw(scene)});
  return pictures;
}

std::vector<drawn> draw_walks() {
  std::vector<drawn> pictures;
  pictures.push_back({"walk_ragged", draw_walk("30 X 19 BY 8 X 5", 30, 19, 8, 5)});
  pictures.push_back({"walk_many", draw_walk("18 X 21 BY 4 X 8", 18, 21, 4, 8)});
  pictures.push_back({"walk_row", draw_walk("RANK 1, 27 BY 8", 27, 1, 8, 1)});
  return pictures;
}

}  // namespace tmap::demo
