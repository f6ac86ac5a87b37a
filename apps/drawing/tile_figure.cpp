// SPDX-License-Identifier: Apache-2.0
#include "apps/drawing/tile_figure.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "apps/drawing/bank_figure.hpp"

namespace tmap::drawing {
namespace {

constexpr std::uint32_t most_lines = 16;   ///< rows or lines of a drawing: two repeats of the widest pattern
constexpr std::uint32_t most_columns = 8;  ///< chunks of a row
constexpr double label_width = 48;
constexpr double chunk_width = 46;
constexpr double chunk_height = 22;
constexpr double header_height = 18;

/// Draws a chunk in the colour of its column; rows take turns in two shades. Fill is striped.
void draw_chunk(canvas& picture, const area& where, const arrived_chunk& chunk, std::size_t place) {
  const std::string attributes = fmt::format(" data-place=\"{}\" data-row=\"{}\" data-column=\"{}\" data-inside=\"{}\"",
                                             place, chunk.row, chunk.column, chunk.bytes_of_tensor);
  const std::string tip = fmt::format("row {} of the box, chunk {}: {} of 16 bytes from the tensor", chunk.row,
                                      chunk.column, chunk.bytes_of_tensor);
  const std::string shade = fmt::format("c{}{}", chunk.column % 8, chunk.row % 2 == 1 ? " odd" : "");
  const double part = chunk.bytes_of_tensor / static_cast<double>(chunk_bytes);
  picture.box(where, "none chunk", tip, attributes);
  picture.box({where.x, where.y, where.width * part, where.height}, shade);
  if (chunk.bytes_of_tensor < chunk_bytes) {
    picture.hatch({where.x + where.width * part, where.y, where.width * (1 - part), where.height}, "hfill");
  }
  picture.box(where, "frame");
  const bool is_fill = chunk.bytes_of_tensor == 0;
  picture.text(where.x + where.width / 2, where.y + 15, fmt::format("{},{}", chunk.row, chunk.column),
               is_fill ? "m q mid" : "m mid");
}

void draw_nothing(canvas& picture, const area& where, std::size_t place) {
  picture.box(where, "paper chunk", "no copy writes these bytes", fmt::format(" data-place=\"{}\"", place));
  picture.box(where, "frame");
}

area cell(std::uint32_t column, std::uint32_t line) {
  return {label_width + column * chunk_width, header_height + line * chunk_height, chunk_width, chunk_height};
}

void draw_headers(canvas& picture, const char* corner, std::uint32_t columns, const char* format_hint) {
  picture.text(label_width - 6, 12, corner, "m q r");
  for (std::uint32_t column = 0; column < columns; ++column) {
    const std::string words =
        format_hint == nullptr ? fmt::format("{}", column) : fmt::format("{}{}", format_hint, column * chunk_bytes);
    picture.text(label_width + (column + 0.5) * chunk_width, 12, words, "m q mid");
  }
}

panel draw_box(const loaded_tile& tile) {
  const std::uint32_t rows = std::min(tile.rows, most_lines);
  const std::uint32_t columns = std::min(tile.row_chunks, most_columns);
  canvas picture{panel_width, header_height + rows * chunk_height + 20};
  draw_headers(picture, "row", columns, "");
  for (std::uint32_t row = 0; row < rows; ++row) {
    picture.text(label_width - 6, cell(0, row).y + 15, fmt::format("{}", row), "m q r");
    for (std::uint32_t column = 0; column < columns; ++column) {
      draw_chunk(picture, cell(column, row), tile.of_box(row, column), row * tile.row_chunks + column);
    }
  }
  const bool is_whole = rows == tile.rows && columns == tile.row_chunks;
  const std::string below =
      is_whole ? "bytes of a row across, rows down"
               : fmt::format("{} of {} rows, {} of {} chunks in a row", rows, tile.rows, columns, tile.row_chunks);
  picture.text(label_width, picture.height() - 5, below, "t q");
  return {"The box as it lies in the tensor", picture};
}

panel draw_shared(const loaded_tile& tile) {
  constexpr std::uint32_t line_chunks = 8;  // 128 bytes: all 32 banks
  const auto all = static_cast<std::uint32_t>((tile.in_shared.size() + line_chunks - 1) / line_chunks);
  const std::uint32_t lines = std::min(all, most_lines);
  canvas picture{panel_width, header_height + lines * chunk_height + 20};
  draw_headers(picture, "offset", line_chunks, "+");
  for (std::uint32_t line = 0; line < lines; ++line) {
    picture.text(label_width - 6, cell(0, line).y + 15, fmt::format("{}", line * line_chunks * chunk_bytes), "m q r");
    for (std::uint32_t column = 0; column < line_chunks; ++column) {
      const std::size_t place = line * line_chunks + column;
      if (place >= tile.in_shared.size()) break;
      const arrived_chunk& chunk = tile.in_shared[place];
      chunk.is_of_the_box ? draw_chunk(picture, cell(column, line), chunk, place)
                          : draw_nothing(picture, cell(column, line), place);
    }
  }
  const std::string below = lines == all ? "128 bytes a line: one word of each of the 32 banks"
                                         : fmt::format("the first {} of {} lines of 128 bytes", lines, all);
  picture.text(label_width, picture.height() - 5, below, "t q");
  return {"Shared memory after the load", picture};
}

std::string position(const tensor_spec& spec, const coordinates& at) {
  std::string text;
  for (std::uint32_t axis = 0; axis < spec.rank; ++axis)
    text += fmt::format("{}{}", axis == 0 ? "" : ", ", at.at(axis));
  return "(" + text + ")";
}

std::vector<std::string> sentences_of(const tensor_spec& spec, const coordinates& at, const loaded_tile& tile) {
  std::uint64_t inside = 0;
  for (const arrived_chunk& chunk : tile.in_shared) inside += chunk.bytes_of_tensor;
  const char* fill = spec.oob_fill == oob_fill::nan ? "NaN" : "zero";
  std::vector<std::string> sentences{
      fmt::format("One instruction loads the box at {} into shared memory: {} rows of {} bytes.", position(spec, at),
                  tile.rows, tile.row_chunks * chunk_bytes),
      inside == tile.barrier_bytes
          ? fmt::format("The barrier receives {} bytes, all of them from the tensor.", inside)
          : fmt::format("The barrier receives {} bytes. {} of them come from the tensor; the others are outside it and "
                        "arrive as {}.",
                        tile.barrier_bytes, inside, fill)};
  if (spec.swizzle == swizzle::none) {
    sentences.push_back("Without a swizzle the rows follow each other in shared memory.");
  } else {
    sentences.push_back(
        fmt::format("The {} swizzle exchanges chunks of 16 bytes in each row, so that a column of the "
                    "box is spread over the banks.",
                    name(spec.swizzle)));
  }
  sentences.push_back("A cell is 16 bytes. Its label is row,chunk of the box and its colour is the chunk.");
  return sentences;
}

}  // namespace

result<figure> draw_tile(const tensor_spec& spec, const coordinates& at) {
  const auto tile = load_tile(spec, at);
  if (!tile) return failure{tile.error()};
  std::vector<legend_entry> legend{
      {"c0", nullptr, "chunk 0 of a row; each chunk of a row has its own colour, odd rows are paler"},
      {"none", "hfill", spec.oob_fill == oob_fill::nan ? "fill: NaN" : "fill: zero"}};
  const bool has_gaps = std::any_of(tile->in_shared.begin(), tile->in_shared.end(),
                                    [](const arrived_chunk& chunk) { return !chunk.is_of_the_box; });
  if (has_gaps) legend.push_back({"paper", nullptr, "bytes that no copy writes"});
  return figure{"tile",
                "One load up close",
                sentences_of(spec, at, *tile),
                {draw_box(*tile), draw_shared(*tile), draw_bank_reads(spec), draw_legend(legend)}};
}

}  // namespace tmap::drawing
