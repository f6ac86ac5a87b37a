// SPDX-License-Identifier: Apache-2.0
#include "apps/drawing/terminal_drawing.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "apps/drawing/banks.hpp"
#include "apps/drawing/map_figure.hpp"

namespace tmap::drawing {
namespace {

constexpr std::uint64_t most_boxes_across = 48;
constexpr std::uint64_t most_boxes_down = 12;
constexpr std::uint32_t most_text_lines = 8;

/// Returns `words` in the colours of an escape sequence, or as they are without `colour`.
std::string painted(bool colour, std::string_view sequence, std::string_view words) {
  return colour ? fmt::format("\x1b[{}m{}\x1b[0m", sequence, words) : std::string{words};
}

/// Returns the escape sequence of a hue, from the 256 colours that terminals have.
std::string foreground(int hue) {
  constexpr int colours[] = {75, 79, 149, 221, 209, 205, 141, 250};
  return fmt::format("38;5;{}", colours[hue % 8]);
}

std::string heading(const std::string& words, bool colour) {
  return painted(colour, "1", words) + '\n';
}

bool touches(const map_bits& bits, std::uint32_t byte) {
  if (bits.width == 0 || bits.word != byte / 8) return false;
  const std::uint32_t first = byte % 8 * 8;
  return bits.shift < first + 8 && first < bits.shift + bits.width;
}

std::string byte_text(const std::vector<map_field>& fields, const tensor_map& map, std::uint32_t byte, bool colour) {
  const auto digits = fmt::format("{:02x}", map.words[byte / 8] >> (byte % 8 * 8) & 0xff);
  for (const map_field& field : fields) {
    if (touches(field.low, byte) || touches(field.high, byte))
      return painted(colour, foreground(hue_of(field)), digits);
  }
  return painted(colour, "2", digits);
}

std::string field_line(const map_field& field, bool colour) {
  return painted(colour, foreground(hue_of(field)), fmt::format("{:<24}", field.name)) +
         painted(colour, "2", fmt::format("{:<22}", place_text(field))) + field.value;
}

std::string chunk_text(const arrived_chunk& chunk, bool colour) {
  if (!chunk.is_of_the_box) return painted(colour, "2", fmt::format("{:>7}", "-"));
  const char* mark = chunk.bytes_of_tensor == chunk_bytes ? "" : (chunk.bytes_of_tensor == 0 ? "f" : "p");
  const std::string label = fmt::format("{:>7}", fmt::format("{},{}{}", chunk.row, chunk.column, mark));
  return painted(colour, chunk.bytes_of_tensor == 0 ? "2" : foreground(static_cast<int>(chunk.column)), label);
}

std::string shared_lines(const loaded_tile& tile, bool colour) {
  constexpr std::size_t line_chunks = 8;
  const std::size_t all = (tile.in_shared.size() + line_chunks - 1) / line_chunks;
  std::string text;
  for (std::size_t line = 0; line < std::min<std::size_t>(all, most_text_lines); ++line) {
    text += fmt::format("{:>6} ", line * line_chunks * chunk_bytes);
    for (std::size_t i = line * line_chunks; i < std::min((line + 1) * line_chunks, tile.in_shared.size()); ++i) {
      text += chunk_text(tile.in_shared[i], colour);
    }
    text += '\n';
  }
  if (all > most_text_lines) text += fmt::format("   ... {} more lines of 128 bytes\n", all - most_text_lines);
  return text + "A cell is 16 bytes: row,chunk of the box. f: fill, p: partly fill, -: not written.\n";
}

std::string ways_text(std::uint32_t ways) {
  return ways <= 1 ? "no conflict" : fmt::format("{} ways", ways);
}

std::string read_lines(const tensor_spec& spec, bool colour) {
  const bool is_swizzled = spec.swizzle != swizzle::none;
  std::string text;
  for (const tile_read& read : common_reads(spec)) {
    const std::uint32_t ways = ways_of(read.with_swizzle);
    text += fmt::format("{:<10}", read.name) +
            painted(colour, ways <= 1 ? "32" : "31", fmt::format("{:<13}", ways_text(ways)));
    if (is_swizzled) text += fmt::format("{:<31}", "without swizzle " + ways_text(ways_of(read.without_swizzle)));
    text += read.meaning + '\n';
  }
  return text;
}

/// Returns the sign of the box at (x, y) of the grid.
std::string box_sign(const tensor_spec& spec, const tensor_marks& marks, std::uint64_t x, std::uint64_t y,
                     bool colour) {
  const auto is_at = [&](std::uint32_t axis, std::uint64_t index) {
    const std::int64_t first = static_cast<std::int64_t>(index * spec.box_dim[axis]);
    const std::int64_t wanted = (*marks.box_at)[axis];
    return wanted >= first && wanted < first + spec.box_dim[axis];
  };
  const bool has_rows = spec.rank > 1;
  if (marks.box_at && is_at(0, x) && (!has_rows || is_at(1, y))) return painted(colour, "1;33", "◆");
  const bool is_cut =
      (x + 1) * spec.box_dim[0] > spec.global_dim[0] || (has_rows && (y + 1) * spec.box_dim[1] > spec.global_dim[1]);
  return is_cut ? painted(colour, foreground(3), "◪") : painted(colour, foreground(1), "■");
}

std::string box_lines(const tensor_spec& spec, const tensor_marks& marks, bool colour) {
  const auto boxes = box_grid(spec);
  const std::uint64_t down = spec.rank > 1 ? boxes[1] : 1;
  std::string text;
  for (std::uint64_t y = 0; y < std::min(down, most_boxes_down); ++y) {
    text += "  ";
    for (std::uint64_t x = 0; x < std::min(boxes[0], most_boxes_across); ++x)
      text += box_sign(spec, marks, x, y, colour);
    text += boxes[0] > most_boxes_across ? fmt::format(" ... {} more\n", boxes[0] - most_boxes_across) : "\n";
  }
  if (down > most_boxes_down) text += fmt::format("  ... {} more rows of boxes\n", down - most_boxes_down);
  return text + "■ a box inside, ◪ one that the edge cuts off, ◆ the one that is loaded\n";
}

}  // namespace

std::string map_as_text(const tensor_map& map, bool colour) {
  const auto fields = fields_of(map);
  if (!fields) return {};
  std::string text = heading("The tensor map: 128 bytes, and the word and bits of each field", colour);
  for (std::size_t line = 0; line < std::max<std::size_t>(16, fields->size()); ++line) {
    std::string bytes = line < 16 ? fmt::format("{:>4} ", line * 8) : std::string(5 + 24, ' ');
    for (std::uint32_t i = 0; line < 16 && i < 8; ++i) {
      bytes += ' ' + byte_text(*fields, map, static_cast<std::uint32_t>(line) * 8 + i, colour);
    }
    text += line < fields->size() ? bytes + "   " + field_line((*fields)[line], colour) + '\n' : bytes + '\n';
  }
  return text;
}

std::string tensor_as_text(const tensor_spec& spec, const tensor_marks& marks, bool colour) {
  std::string text = heading("The tensor and its boxes", colour);
  text += fmt::format("{} at {:#x}\n", short_name(spec), spec.global_address.value());
  if (marks.is_refused) return text;
  return text + box_sentence(spec) + '\n' + box_lines(spec, marks, colour);
}

result<std::string> tile_as_text(const tensor_spec& spec, const coordinates& at, bool colour) {
  const auto tile = load_tile(spec, at);
  if (!tile) return failure{tile.error()};
  std::string position;
  for (std::uint32_t axis = 0; axis < spec.rank; ++axis) {
    position += fmt::format("{}{}", axis == 0 ? "" : ", ", at.at(axis));
  }
  return heading(fmt::format("Shared memory after the load at ({})", position), colour) + shared_lines(*tile, colour) +
         '\n' + heading("Bank conflicts of common reads", colour) + read_lines(spec, colour);
}

}  // namespace tmap::drawing
