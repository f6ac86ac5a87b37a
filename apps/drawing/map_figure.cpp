// SPDX-License-Identifier: Apache-2.0
#include "apps/drawing/map_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tmap::drawing {
namespace {

constexpr double label_width = 44;
constexpr double byte_width = 46;
constexpr double byte_height = 28;
constexpr double bit_width = byte_width / 8;
constexpr double header_height = 18;

bool holds(const map_bits& bits, std::uint32_t word, std::uint32_t bit) {
  return bits.width != 0 && bits.word == word && bit >= bits.shift && bit - bits.shift < bits.width;
}

/// Returns the index of the field that holds a bit, or the number of fields where none does.
std::size_t owner_of(const std::vector<map_field>& fields, std::uint32_t word, std::uint32_t bit) {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const map_field& field) {
    return holds(field.low, word, bit) || holds(field.high, word, bit);
  });
  return static_cast<std::size_t>(found - fields.begin());
}

/// Neighbours of one hue differ by their shade.
std::string shade_of(const std::vector<map_field>& fields, std::size_t index) {
  if (index == fields.size()) return "none";
  int before = 0;
  for (std::size_t i = 0; i < index; ++i) before += hue_of(fields[i]) == hue_of(fields[index]) ? 1 : 0;
  return fmt::format("c{}{}", hue_of(fields[index]), before % 2 == 1 ? " odd" : "");
}

/// Draws one byte of the map: stripes for its bits, highest first, and its two digits.
class byte_cell {
 public:
  byte_cell(const std::vector<map_field>& fields, const tensor_map& map, std::uint32_t index)
      : fields_(fields), word_(index / 8), first_bit_(index % 8 * 8), index_(index) {
    value_ = static_cast<std::uint32_t>(map.words[word_] >> first_bit_ & 0xff);
  }

  void draw(canvas& picture) const {
    const area cell{label_width + index_ % 8 * byte_width, header_height + index_ / 8 * byte_height, byte_width,
                    byte_height};
    picture.open_group("byte", fmt::format(" data-byte=\"{}\" data-value=\"{:02x}\" data-fields=\"{}\"", index_, value_,
                                           escaped(names(","))));
    for (std::uint32_t begin = 8; begin > 0;) begin = draw_run(picture, cell, begin);
    for (std::uint32_t bit = 0; bit < 8; ++bit) {
      if ((value_ >> bit & 1) == 0) continue;
      const std::size_t owner = owner_at(bit);
      const int hue = owner == fields_.size() ? 7 : hue_of(fields_[owner]);
      picture.box({cell.x + (7 - bit) * bit_width + 0.7, cell.y + byte_height - 7, bit_width - 1.4, 5},
                  fmt::format("s{}", hue));
    }
    picture.text(cell.x + byte_width / 2, cell.y + 15, fmt::format("{:02x}", value_), "m mid");
    picture.box(cell, "frame", fmt::format("byte {} = 0x{:02x}: {}", index_, value_, names(", ")));
    picture.close_group();
  }

 private:
  std::size_t owner_at(std::uint32_t bit) const { return owner_of(fields_, word_, first_bit_ + bit); }

  /// Draws the bits below `end` that the same field holds; returns where they begin.
  std::uint32_t draw_run(canvas& picture, const area& cell, std::uint32_t end) const {
    const std::size_t owner = owner_at(end - 1);
    std::uint32_t begin = end - 1;
    while (begin > 0 && owner_at(begin - 1) == owner) --begin;
    picture.box({cell.x + (8 - end) * bit_width, cell.y, (end - begin) * bit_width, byte_height},
                shade_of(fields_, owner));
    return begin;
  }
  std::string names(const char* separator) const {
    std::string text;
    std::size_t last = fields_.size();
    for (std::uint32_t bit = 0; bit < 8; ++bit) {
      const std::size_t owner = owner_at(bit);
      if (owner == fields_.size() || owner == last) continue;
      text += (text.empty() ? "" : separator) + fields_[owner].name;
      last = owner;
    }
    return text.empty() ? "not used" : text;
  }

  const std::vector<map_field>& fields_;
  std::uint32_t word_;
  std::uint32_t first_bit_;
  std::uint32_t index_;
  std::uint32_t value_;
};

panel draw_bytes(const std::vector<map_field>& fields, const tensor_map& map) {
  canvas picture{label_width + 8 * byte_width + 1, header_height + 16 * byte_height + 2};
  for (std::uint32_t column = 0; column < 8; ++column) {
    picture.text(label_width + (column + 0.5) * byte_width, 12, fmt::format("+{}", column), "m q mid");
  }
  for (std::uint32_t word = 0; word < 16; ++word) {
    picture.text(label_width - 6, header_height + word * byte_height + 18, fmt::format("{}", word * 8), "m q r");
  }
  for (std::uint32_t index = 0; index < tensor_map_bytes; ++index) byte_cell{fields, map, index}.draw(picture);
  return {"The 128 bytes, in memory order", picture};
}

panel draw_fields(const std::vector<map_field>& fields) {
  constexpr double row_height = 18;
  canvas picture{panel_width, header_height + static_cast<double>(fields.size()) * row_height + 6};
  picture.text(22, 12, "field", "m q");
  picture.text(190, 12, "word: bits", "m q");
  picture.text(panel_width - 2, 12, "value", "m q r");
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const double y = header_height + static_cast<double>(i) * row_height;
    picture.open_group("field", fmt::format(" data-field=\"{}\" data-value=\"{}\" data-bits=\"{}\"",
                                            escaped(fields[i].name), escaped(fields[i].value), place_text(fields[i])));
    picture.box({1, y + 2, 14, 12}, shade_of(fields, i));
    picture.box({11, y + 2, 4, 12}, fmt::format("s{}", hue_of(fields[i])));
    picture.text(22, y + 12, fields[i].name, "m");
    picture.text(190, y + 12, place_text(fields[i]), "m q");
    picture.text(panel_width - 2, y + 12, fields[i].value, "m h r");
    picture.close_group();
  }
  return {"What the bytes say", picture};
}

std::string range_text(const map_bits& bits) {
  if (bits.width == 1) return fmt::format("{}", bits.shift);
  return fmt::format("{}-{}", bits.shift, bits.shift + bits.width - 1);
}

}  // namespace

std::string place_text(const map_field& field) {
  std::string text = fmt::format("{}: {}", field.low.word, range_text(field.low));
  if (field.high.width == 0) return text;
  if (field.high.word == field.low.word) return text + ", " + range_text(field.high);
  return text + fmt::format(" + {}: {}", field.high.word, range_text(field.high));
}

int hue_of(const map_field& field) {
  constexpr std::pair<const char*, int> hues[] = {
      {"global_address", 0}, {"global_dim", 1}, {"global_stride", 2}, {"box_dim", 3}, {"element_stride", 4},
      {"noted", 7},          {"channels", 3},   {"pixels", 3},        {"lower", 5},   {"upper", 5}};
  for (const auto& [begin, hue] : hues) {
    if (field.name.starts_with(begin)) return hue;
  }
  return 6;
}

figure draw_map(const tensor_map& map) {
  figure drawn{
      "map",
      "The tensor map: 128 bytes",
      {"A tensor map is the object that the GPU's copy engine reads. Each colour is one kind of field: the "
       "list next to the bytes names the fields, the bits that hold them and their values.",
       "A line holds one 64-bit word, lowest byte first. Inside a byte the highest bit is on the left; a mark at the "
       "bottom is a bit that is set. Grey bytes are not used.",
       "Dimensions, boxes and element strides are stored minus one, strides in units of 16 bytes."},
      {}};
  const auto fields = fields_of(map);
  if (!fields) return drawn;
  drawn.panels.push_back(draw_bytes(*fields, map));
  drawn.panels.push_back(draw_fields(*fields));
  return drawn;
}

}  // namespace tmap::drawing
