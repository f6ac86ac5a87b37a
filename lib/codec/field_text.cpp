// SPDX-License-Identifier: Apache-2.0
#include "lib/codec/field_text.hpp"

#include <fmt/format.h>

#include <tmap/decode.hpp>

#include "lib/codec/codes.hpp"

namespace tmap::codec {
namespace {

template <class Enum>
std::string name_or_invalid(std::optional<Enum> value, std::uint64_t code) {
  return value ? name(*value) : fmt::format("invalid ({})", code);
}

const char* kind_name(std::uint64_t value) {
  return value == static_cast<std::uint64_t>(map_kind::tiled) ? "tiled" : "im2col";
}

}  // namespace

std::string text_of(const field& f, std::uint64_t value) {
  switch (f.text) {
    case notation::number: return std::to_string(value);
    case notation::signed_number: return std::to_string(static_cast<std::int64_t>(value));
    case notation::address: return hexadecimal(value);
    case notation::yes_no: return value == 0 ? "no" : "yes";
    case notation::map_kind: return kind_name(value);
    case notation::element_type: return name_or_invalid(element_type_of(value), value);
    case notation::interleave: return name_or_invalid(interleave_of(value), value);
    case notation::swizzle: return name_or_invalid(swizzle_of(value), value);
    case notation::oob_fill: return name(static_cast<oob_fill>(value));
    case notation::l2_promotion: return name(static_cast<l2_promotion>(value));
  }
  return std::to_string(value);
}

bool is_worth_showing(const field& f, const tensor_map& map) {
  if (!exists_in(f, layout_of(map))) return false;
  const bool is_used = f.axis < static_cast<std::int32_t>(read(map, row("rank")));
  return is_used || read_bits(map, f.low) != 0 || read_bits(map, f.high) != 0;
}

std::string unknown_bits_name(std::uint32_t word) {
  return fmt::format("word {}, unknown bits", word);
}

std::uint64_t unknown_bits(const tensor_map& map, std::uint32_t word, std::uint32_t layouts) {
  return map.words[word] & ~known_bits(word, layouts);
}

std::string hexadecimal(std::uint64_t value) {
  return fmt::format("{:#x}", value);
}

}  // namespace tmap::codec
