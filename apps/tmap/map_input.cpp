// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/map_input.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>

#include "apps/tmap/text_file.hpp"

namespace tmap::tool {
namespace {

constexpr std::string_view blanks = " \t\r\n,;{}[]\"";
constexpr std::string_view hex_digits = "0123456789abcdefABCDEF";

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; (begin = text.find_first_not_of(blanks, begin)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(blanks, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

bool is_hex(std::string_view text) {
  return !text.empty() && text.find_first_not_of(hex_digits) == std::string_view::npos;
}

bool has_prefix(std::string_view word) {
  return word.size() > 2 && word[0] == '0' && (word[1] == 'x' || word[1] == 'X') && is_hex(word.substr(2));
}

/// A debugger's dump names the address of each line: "0x7f00 <map+16>:".
std::string without_labels(std::string_view text) {
  std::string bare;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const std::size_t colon = line.rfind(':');
    bare += line.substr(colon == std::string_view::npos ? 0 : colon + 1);
    bare += '\n';
    begin = end + 1;
  }
  return bare;
}

template <class Number>
Number from_hex(std::string_view digits) {
  Number value{};
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

/// The bytes that `text` spells, or nothing when it is no hex text. One word with a prefix and more
/// than sixteen digits is a string of bytes, too.
std::optional<std::string> bytes_of_hex(std::string_view text) {
  std::string bytes;
  const std::string bare = without_labels(text);
  for (std::string_view word : split(bare)) {
    if (has_prefix(word) && word.size() <= 18) {
      const auto value = from_hex<std::uint64_t>(word.substr(2));
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
      continue;
    }
    if (has_prefix(word)) word.remove_prefix(2);
    if (!is_hex(word) || word.size() % 2 != 0) return std::nullopt;
    for (std::size_t i = 0; i < word.size(); i += 2) {
      bytes.push_back(static_cast<char>(from_hex<std::uint8_t>(word.substr(i, 2))));
    }
  }
  return bytes;
}

/// Text, which raw maps never are: theirs always hold zeroes.
bool is_text(std::string_view content) {
  const auto is_written = [](unsigned char c) { return c >= ' ' || c == '\n' || c == '\r' || c == '\t'; };
  return !content.empty() && std::all_of(content.begin(), content.end(), is_written);
}

outcome<std::vector<tensor_map>> maps_of_bytes(const std::string& bytes, const std::string& name) {
  if (bytes.empty()) return refuse("{}: holds no tensor map, it is empty", name);
  if (bytes.size() % tensor_map_bytes != 0) {
    return refuse("{}: {} bytes are no whole number of 128-byte tensor maps", name, bytes.size());
  }
  std::vector<tensor_map> maps(bytes.size() / tensor_map_bytes);
  std::memcpy(maps.data(), bytes.data(), bytes.size());
  return maps;
}

}  // namespace

outcome<std::vector<tensor_map>> read_maps(const std::string& argument) {
  std::error_code ignored;
  if (argument != "-" && !std::filesystem::exists(argument, ignored)) {
    const auto bytes = bytes_of_hex(argument);
    if (!bytes || bytes->empty()) return refuse("{}: no such file, and no hex digits of a tensor map", argument);
    return maps_of_bytes(*bytes, argument.size() > 24 ? argument.substr(0, 20) + "..." : argument);
  }
  auto content = read_text(argument);
  if (!content) return refusal{content.error()};
  const auto bytes = bytes_of_hex(*content);
  if (!bytes && is_text(*content))
    return refuse("{}: is text, and not the hex digits of tensor maps", shown_path(argument));
  return maps_of_bytes(bytes.value_or(*content), shown_path(argument));
}

outcome<tensor_map> read_one_map(const std::string& argument) {
  const auto maps = read_maps(argument);
  if (!maps) return refusal{maps.error()};
  if (maps->size() != 1)
    return refuse("{}: holds {} tensor maps where one is wanted", shown_path(argument), maps->size());
  return maps->front();
}

}  // namespace tmap::tool
