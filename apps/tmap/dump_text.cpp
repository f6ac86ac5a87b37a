// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/dump_text.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "apps/tmap/hex_text.hpp"

namespace tmap::tool {
namespace {

/// The parts of one line of `xxd` or `hexdump -C`.
struct dump_line {
  std::uint64_t offset;
  std::string digits;
};

std::string without_spaces(std::string_view text) {
  std::string digits;
  std::copy_if(text.begin(), text.end(), std::back_inserter(digits), [](char c) { return c != ' '; });
  return digits;
}

/// Reads "00000010: 0010 ... text" of xxd, "00000010 00 10 ... |text|" of hexdump -C, or its last
/// line, an offset alone.
std::optional<dump_line> read_dump_line(std::string_view line) {
  const std::size_t end = line.find_first_not_of(hex_digits);
  const std::string_view offset = line.substr(0, end);
  if (offset.size() < 7 || offset.size() > 16) return std::nullopt;
  std::string_view data = end == std::string_view::npos ? std::string_view{} : line.substr(end);
  if (data.starts_with(": ")) {
    data = data.substr(2);
    data = data.substr(0, data.find("  "));
  } else if (data.starts_with("  ") && data.ends_with('|')) {
    data = data.substr(0, data.find("  |"));
  } else if (!data.empty()) {
    return std::nullopt;
  }
  dump_line read{from_hex<std::uint64_t>(offset), without_spaces(data)};
  if (!read.digits.empty() && (!is_hex(read.digits) || read.digits.size() % 2 != 0)) return std::nullopt;
  return read;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
    if (!line.empty()) lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// A line "*" stands for lines equal to the one before, up to the next offset.
void repeat_last_line(std::string& bytes, std::uint64_t up_to) {
  constexpr std::size_t line = 16;
  constexpr std::uint64_t most = std::uint64_t{1} << 30;
  if (bytes.size() < line || up_to > most) return;
  const std::string last = bytes.substr(bytes.size() - line);
  while (bytes.size() + line <= up_to) bytes += last;
}

}  // namespace

std::optional<std::string> bytes_of_dump(std::string_view text) {
  std::string bytes;
  std::optional<std::uint64_t> first;
  bool repeats = false;
  for (const std::string_view line : lines_of(text)) {
    if (first && line == "*") {
      repeats = true;
      continue;
    }
    const auto read = read_dump_line(line);
    if (!read || (!first && read->digits.empty())) return std::nullopt;
    if (!first) first = read->offset;
    if (repeats) repeat_last_line(bytes, read->offset - *first);
    repeats = false;
    append_bytes(bytes, read->digits);
  }
  if (!first) return std::nullopt;
  return bytes;
}

}  // namespace tmap::tool
