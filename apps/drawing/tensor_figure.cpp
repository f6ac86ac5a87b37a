// SPDX-License-Identifier: Apache-2.0
#include "apps/drawing/tensor_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tmap::drawing {
namespace {

constexpr double left = 2;
constexpr double top = 20;
constexpr double bottom_room = 20;
constexpr double finest_box = 3;       ///< pixels below which lines between boxes would be grey
constexpr double most_padding = 0.75;  ///< of the width of the tensor; more is not drawn

std::uint32_t rank_of(const tensor_spec& spec) {
  return std::min(spec.rank, max_rank);
}

double bytes_per_unit(const tensor_spec& spec) {
  switch (spec.interleave) {
    case interleave::bytes_16: return 16;
    case interleave::bytes_32: return 32;
    default: return std::max(element_bits(spec.type) / 8.0, 0.125);
  }
}

/// Holds the two innermost axes, in elements.
struct scene {
  double columns{};
  double rows{};
  double pitch{};  ///< elements from row to row, or 0
  double box_columns{};
  double box_rows{};
  double boxes_across{};
  double boxes_down{};
};

scene scene_of(const tensor_spec& spec) {
  const bool has_rows = rank_of(spec) > 1;
  const auto boxes = box_grid(spec);
  scene s;
  s.columns = rank_of(spec) > 0 ? static_cast<double>(spec.global_dim[0]) : 0;
  s.rows = has_rows ? static_cast<double>(spec.global_dim[1]) : 1;
  s.pitch = has_rows ? static_cast<double>(spec.global_stride_bytes[0]) / bytes_per_unit(spec) : 0;
  s.box_columns = rank_of(spec) > 0 ? spec.box_dim[0] : 0;
  s.box_rows = has_rows ? spec.box_dim[1] : 1;
  s.boxes_across = static_cast<double>(boxes[0]);
  s.boxes_down = has_rows ? static_cast<double>(boxes[1]) : 1;
  return s;
}

/// Holds the part of the plane that is drawn, in elements, and pixels per element.
struct view {
  double first_column{};
  double first_row{};
  double columns{};
  double rows{};
  double x_scale{};
  double y_scale{};

  double x(double column) const { return left + (column - first_column) * x_scale; }
  double y(double row) const { return top + (row - first_row) * y_scale; }
  area place(double column, double row, double wide, double high) const {
    return {x(column), y(row), wide * x_scale, high * y_scale};
  }
  bool is_to_scale() const { return std::abs(x_scale - y_scale) < 1e-9 * std::max(x_scale, y_scale); }
};

double drawn_pitch(const scene& s) {
  return std::min(s.pitch, s.columns * (1 + most_padding));
}

view view_of(const scene& s, const tensor_marks& marks) {
  view v;
  const double boxes = marks.is_refused ? 0 : 1;  // a refused tensor has no grid of boxes
  double last_column = std::max({s.columns, drawn_pitch(s), boxes * s.boxes_across * s.box_columns, 1.0});
  double last_row = std::max({s.rows, boxes * s.boxes_down * s.box_rows, 1.0});
  if (marks.box_at) {
    v.first_column = std::min(0.0, static_cast<double>((*marks.box_at)[0]));
    v.first_row = std::min(0.0, static_cast<double>((*marks.box_at)[1]));
    last_column = std::max(last_column, (*marks.box_at)[0] + s.box_columns);
    last_row = std::max(last_row, (*marks.box_at)[1] + s.box_rows);
  }
  v.columns = last_column - v.first_column;
  v.rows = last_row - v.first_row;
  const double width = marks.width - 2 * left;
  const double height = marks.height - top - bottom_room;
  const double scale = std::min(width / v.columns, height / v.rows);
  v.x_scale = std::min(width / v.columns, std::max(scale, 36 / v.columns));
  v.y_scale = std::min(height / v.rows, std::max(scale, std::min(26.0, 36 / v.rows)));
  return v;
}

/// Paints one drawing, layer by layer.
class tensor_painter {
 public:
  tensor_painter(const tensor_spec& spec, const tensor_marks& marks)
      : spec_(spec),
        marks_(marks),
        scene_(scene_of(spec)),
        view_(view_of(scene_, marks)),
        picture_(marks.width, top + view_.rows * view_.y_scale + bottom_room) {}

  canvas paint() {
    paint_overhang();
    paint_padding();
    paint_tensor();
    paint_grid();
    paint_mark();
    paint_words();
    return picture_;
  }

 private:
  bool has_grid() const { return scene_.boxes_across * scene_.boxes_down > 0; }

  void paint_overhang() {
    if (!has_grid() || marks_.is_refused) return;
    const area all = view_.place(0, 0, scene_.boxes_across * scene_.box_columns, scene_.boxes_down * scene_.box_rows);
    picture_.box(all, "none", "boxes reach beyond the tensor here: these elements arrive as fill");
    picture_.hatch(all, "hfill");
  }
  void paint_padding() {
    if (scene_.pitch <= scene_.columns || scene_.rows < 1) return;
    const area gap = view_.place(scene_.columns, 0, drawn_pitch(scene_) - scene_.columns, scene_.rows);
    picture_.box(gap, "paper", "bytes between the end of a row and the next one");
    picture_.hatch(gap, "hpad");
    picture_.box(gap, "frame");
  }
  void paint_tensor() {
    const area whole = view_.place(0, 0, scene_.columns, scene_.rows);
    picture_.box(whole, "paper");
    picture_.box(whole, marks_.is_refused ? "badarea tensor" : "c1 tensor", short_name(spec_));
    if (!marks_.is_refused) paint_cut_boxes();
    picture_.box(whole, "outline");
  }
  /// Boxes that the edge of the tensor cuts off have another colour.
  void paint_cut_boxes() {
    if (!has_grid()) return;
    const double whole_columns = std::floor(scene_.columns / scene_.box_columns) * scene_.box_columns;
    const double whole_rows = std::floor(scene_.rows / scene_.box_rows) * scene_.box_rows;
    if (whole_columns < scene_.columns) {
      picture_.box(view_.place(whole_columns, 0, scene_.columns - whole_columns, scene_.rows), "c3 cut");
    }
    if (whole_rows < scene_.rows) {
      picture_.box(view_.place(0, whole_rows, std::min(whole_columns, scene_.columns), scene_.rows - whole_rows),
                   "c3 cut");
    }
  }
  void paint_grid() {
    if (!has_grid() || marks_.is_refused) return;
    const area all = view_.place(0, 0, scene_.boxes_across * scene_.box_columns, scene_.boxes_down * scene_.box_rows);
    const double wide = scene_.box_columns * view_.x_scale;
    const double high = scene_.box_rows * view_.y_scale;
    for (double i = 0; wide >= finest_box && i <= scene_.boxes_across; ++i) {
      picture_.line(all.x + i * wide, all.y, all.x + i * wide, all.y + all.height, "grid");
    }
    for (double i = 0; high >= finest_box && i <= scene_.boxes_down; ++i) {
      picture_.line(all.x, all.y + i * high, all.x + all.width, all.y + i * high, "grid");
    }
  }
  void paint_mark() {
    if (!marks_.box_at) return;
    const coordinates& at = *marks_.box_at;
    picture_.box(view_.place(at[0], rank_of(spec_) > 1 ? at[1] : 0, scene_.box_columns, scene_.box_rows), "mark",
                 "the box that is loaded");
  }
  void paint_words() {
    const double bytes = scene_.columns * bytes_per_unit(spec_);
    picture_.text(left, 13, fmt::format("{:.0f} elements = {:.0f} bytes", scene_.columns, bytes), "t q");
    std::string below = rank_of(spec_) > 1 ? fmt::format("{:.0f} rows", scene_.rows) : std::string{"one row"};
    for (std::uint32_t axis = 2; axis < rank_of(spec_); ++axis) below += fmt::format(" x {}", spec_.global_dim[axis]);
    if (rank_of(spec_) > 1) below += fmt::format(", {} bytes apart", spec_.global_stride_bytes[0]);
    if (!view_.is_to_scale()) below += ", not to scale";
    picture_.text(left, picture_.height() - 6, below, "t q");
  }

  const tensor_spec& spec_;
  const tensor_marks& marks_;
  scene scene_;
  view view_;
  canvas picture_;
};

std::vector<legend_entry> legend_of(const tensor_spec& spec, const tensor_marks& marks) {
  const scene s = scene_of(spec);
  std::vector<legend_entry> entries;
  if (marks.is_refused) {
    entries.push_back({"badarea", nullptr, "the tensor; no map can describe it"});
  } else {
    entries.push_back({"c1", nullptr, "the tensor, in boxes that lie inside"});
    entries.push_back({"c3", nullptr, "boxes that the edge of the tensor cuts off"});
    entries.push_back({"none", "hfill",
                       fmt::format("outside the tensor: arrives as {}", spec.oob_fill == oob_fill::nan ? "NaN" : "0")});
  }
  if (s.pitch > s.columns)
    entries.push_back({"paper", "hpad", "padding between rows: no copy reads it, a box there brings fill"});
  if (marks.box_at) {
    std::string at;
    for (std::uint32_t axis = 0; axis < rank_of(spec); ++axis) {
      at += fmt::format("{}{}", axis == 0 ? "" : ", ", marks.box_at->at(axis));
    }
    entries.push_back({"mark", nullptr, fmt::format("the box at ({}), innermost coordinate first", at)});
  }
  return entries;
}

std::string dims_text(const tensor_spec& spec) {
  std::string text;
  for (std::uint32_t axis = 0; axis < rank_of(spec); ++axis) {
    text += fmt::format("{}{}", axis == 0 ? "" : " x ", spec.global_dim[axis]);
  }
  return text;
}

std::vector<std::string> sentences_of(const tensor_spec& spec, const tensor_marks& marks) {
  const scene s = scene_of(spec);
  std::vector<std::string> sentences{
      fmt::format("{}, innermost dimension first, at address {:#x}.", short_name(spec), spec.global_address.value())};
  if (!marks.is_refused) sentences.push_back(box_sentence(spec) + ".");
  if (s.pitch > s.columns) {
    sentences.push_back(fmt::format("A row has {:.0f} bytes and the next one begins {} bytes after it.",
                                    s.columns * bytes_per_unit(spec), spec.global_stride_bytes[0]));
  }
  if (s.pitch != 0 && s.pitch < s.columns) sentences.push_back("Rows overlap: the next one begins before one ends.");
  if (rank_of(spec) > 2) sentences.push_back("The drawing shows the two innermost dimensions; the others repeat them.");
  return sentences;
}

}  // namespace

canvas draw_tensor_to_scale(const tensor_spec& spec, const tensor_marks& marks) {
  return tensor_painter{spec, marks}.paint();
}

figure draw_tensor(const tensor_spec& spec, const tensor_marks& marks) {
  return {"tensor",
          "The tensor and its boxes",
          sentences_of(spec, marks),
          {{"The tensor to scale", draw_tensor_to_scale(spec, marks)}, draw_legend(legend_of(spec, marks))}};
}

std::string short_name(const tensor_spec& spec) {
  return fmt::format("{} [{}]", name(spec.type), dims_text(spec));
}

std::string box_sentence(const tensor_spec& spec) {
  const auto boxes = box_grid(spec);
  std::string counts, extents, cuts;
  for (std::uint32_t axis = 0; axis < rank_of(spec); ++axis) {
    counts += fmt::format("{}{}", axis == 0 ? "" : " x ", boxes.at(axis));
    extents += fmt::format("{}{}", axis == 0 ? "" : " x ", spec.box_dim[axis]);
    const std::uint64_t rest = spec.box_dim[axis] == 0 ? 0 : spec.global_dim[axis] % spec.box_dim[axis];
    if (rest == 0) continue;
    cuts +=
        fmt::format("; along dimension {} the last one has {} of {} elements inside", axis, rest, spec.box_dim[axis]);
  }
  return fmt::format("{} boxes of {}{}", counts, extents, cuts);
}

}  // namespace tmap::drawing
