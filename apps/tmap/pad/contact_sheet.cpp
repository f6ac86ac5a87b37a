// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/pad/contact_sheet.hpp"

#include <algorithm>
#include <cmath>

namespace tmap::tool {
namespace {

using drawing::colour;
using drawing::picture;
using drawing::rectangle;

constexpr colour paper{24, 27, 33};
constexpr colour edge{62, 69, 82};
constexpr colour stripe_dark{38, 43, 52};
constexpr colour stripe_light{47, 53, 64};
constexpr std::int64_t gap = 12;
constexpr std::int64_t sheet_width = 1600;
constexpr std::int64_t largest_cell = 480;

/// One picture of the batch: its pixels are the batch's, its extent separates pixels from padding.
struct batch_picture {
  const std::uint8_t* samples;
  std::uint64_t width;
  std::uint64_t height;
};

struct sheet_layout {
  std::int64_t columns;
  std::int64_t rows;
  std::int64_t cell_width;
  std::int64_t cell_height;

  rectangle cell(std::size_t index) const {
    const auto i = static_cast<std::int64_t>(index);
    return {gap + i % columns * (cell_width + gap), gap + i / columns * (cell_height + gap), cell_width, cell_height};
  }
};

/// Cells of the batch's proportions, as large as the sheet's width allows; small pictures grow by
/// whole factors.
sheet_layout lay_out(std::size_t count, std::uint64_t width, std::uint64_t height) {
  const double ratio = static_cast<double>(height) / static_cast<double>(width);
  const double wanted = std::ceil(std::sqrt(static_cast<double>(count) * 1.5 * ratio));
  sheet_layout layout{};
  layout.columns = std::clamp<std::int64_t>(static_cast<std::int64_t>(wanted), 1, static_cast<std::int64_t>(count));
  layout.rows = (static_cast<std::int64_t>(count) + layout.columns - 1) / layout.columns;
  const std::int64_t room = std::min((sheet_width - gap) / layout.columns - gap, largest_cell);
  double scale = std::min(static_cast<double>(std::max<std::int64_t>(room, 16)) / static_cast<double>(width),
                          static_cast<double>(largest_cell) / static_cast<double>(height));
  if (scale > 1) scale = std::floor(scale);
  layout.cell_width = std::max<std::int64_t>(std::llround(static_cast<double>(width) * scale), 1);
  layout.cell_height = std::max<std::int64_t>(std::llround(static_cast<double>(height) * scale), 1);
  return layout;
}

/// The range of batch pixels that one pixel of a cell stands for.
struct pixel_range {
  std::uint64_t first;
  std::uint64_t last;

  pixel_range(std::int64_t at, std::int64_t cell, std::uint64_t pixels)
      : first{static_cast<std::uint64_t>(at) * pixels / static_cast<std::uint64_t>(cell)},
        last{std::max(static_cast<std::uint64_t>(at + 1) * pixels / static_cast<std::uint64_t>(cell), first + 1)} {}

  std::uint64_t middle() const { return first + (last - first) / 2; }
};

colour average(const batch_picture& source, const shape_t& shape, pixel_range across, pixel_range down) {
  const std::uint64_t channels = shape[2];
  std::uint64_t sums[3]{};
  std::uint64_t count = 0;
  for (std::uint64_t y = down.first; y < std::min(down.last, source.height); ++y) {
    for (std::uint64_t x = across.first; x < std::min(across.last, source.width); ++x, ++count) {
      const std::uint8_t* pixel = source.samples + (y * shape[1] + x) * channels;
      for (std::uint64_t c = 0; c < std::min<std::uint64_t>(channels, 3); ++c) sums[c] += pixel[c];
    }
  }
  const auto channel = [&](int c) { return static_cast<std::uint8_t>(sums[c] / count); };
  return {channel(0), channel(1), channel(2)};
}

void draw_cell(picture& sheet, rectangle cell, const batch_picture& source, const shape_t& shape) {
  sheet.hatch(cell, stripe_dark, stripe_light, 5);
  for (std::int64_t y = 0; y < cell.height; ++y) {
    const pixel_range down{y, cell.height, shape[0]};
    if (down.middle() >= source.height) break;
    for (std::int64_t x = 0; x < cell.width; ++x) {
      const pixel_range across{x, cell.width, shape[1]};
      if (across.middle() >= source.width) break;
      sheet.set(cell.x + x, cell.y + y, average(source, shape, across, down));
    }
  }
  sheet.frame({cell.x - 1, cell.y - 1, cell.width + 2, cell.height + 2}, edge);
}

std::vector<batch_picture> find_pictures(const batch_plan& plan, const std::vector<tensor>& tensors,
                                         std::span<const std::byte> batch) {
  const std::uint64_t slice = plan.dense_bytes / plan.members.size();
  std::vector<batch_picture> pictures;
  for (std::size_t i = 0; i < plan.members.size() && pictures.size() < most_sheet_pictures; ++i) {
    const tensor& t = tensors[plan.members[i]];
    pictures.push_back({reinterpret_cast<const std::uint8_t*>(batch.data()) + i * slice,
                        std::min(t.shape[1], plan.shape[1]), std::min(t.shape[0], plan.shape[0])});
  }
  return pictures;
}

}  // namespace

picture draw_contact_sheet(const batch_plan& plan, const std::vector<tensor>& tensors,
                           std::span<const std::byte> batch) {
  const std::vector<batch_picture> pictures = find_pictures(plan, tensors, batch);
  const sheet_layout layout = lay_out(pictures.size(), plan.shape[1], plan.shape[0]);
  picture sheet{static_cast<std::uint32_t>(gap + layout.columns * (layout.cell_width + gap)),
                static_cast<std::uint32_t>(gap + layout.rows * (layout.cell_height + gap)), paper};
  for (std::size_t i = 0; i < pictures.size(); ++i) draw_cell(sheet, layout.cell(i), pictures[i], plan.shape);
  return sheet;
}

}  // namespace tmap::tool
