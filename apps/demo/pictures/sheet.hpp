// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/support/picture/picture.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace tmap::demo {

using drawing::colour;
using drawing::picture;
using drawing::rectangle;

inline constexpr colour night{15, 19, 28};
inline constexpr colour ink{226, 232, 240};
inline constexpr colour faint{100, 116, 139};
inline constexpr colour amber{251, 191, 36};
inline constexpr colour rose{244, 63, 94};

/// One drawing and the name of its file.
struct drawn {
  std::string file;
  drawing::picture image;
};

/// Returns one of `count` colours round the colour circle, of equal strength.
colour hue(std::uint32_t index, std::uint32_t count);

/// A sheet with a title over a grid of square cells.
class grid_sheet {
 public:
  grid_sheet(std::string_view title, std::int64_t columns, std::int64_t rows, std::int64_t cell);

  /// Returns the pixels of a block of cells, without the gap on its right and lower side.
  rectangle area(std::int64_t column, std::int64_t row, std::int64_t columns = 1, std::int64_t rows = 1) const;

  void fill(std::int64_t column, std::int64_t row, colour paint) { image.fill(area(column, row), paint); }
  void hatch(std::int64_t column, std::int64_t row, colour first, colour second);

  /// Draws a frame round a block of cells, in the gaps between them.
  void outline(std::int64_t column, std::int64_t row, std::int64_t columns, std::int64_t rows, colour paint);

  picture image;

 private:
  std::int64_t cell_;
};

// The scenes. Each set shows one notion of tensor maps.
std::vector<drawn> draw_boxes();        ///< boxes over the edge of a tensor: what is read, what is filled
std::vector<drawn> draw_walks();        ///< how a grid of boxes covers a tensor
std::vector<drawn> draw_swizzles();     ///< where the 16-byte chunks of a tile lie in shared memory
std::vector<drawn> draw_strides();      ///< which elements a box with element strides takes
std::vector<drawn> draw_interleaves();  ///< how channels are sliced
std::vector<drawn> draw_maps();         ///< the bits of encoded maps

}  // namespace tmap::demo
