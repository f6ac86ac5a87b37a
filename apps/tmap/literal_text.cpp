// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/literal_text.hpp"

#include <cstddef>
#include <cstdint>

#include "apps/tmap/hex_text.hpp"

namespace tmap::tool {
namespace {

/// Reads one escape from the character after the backslash on, and moves `i` to its last character.
char read_escape(std::string_view text, std::size_t& i) {
  switch (text[i]) {
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'a': return '\a';
    case 'b': return '\b';
    case 'f': return '\f';
    case 'v': return '\v';
    case 'x': i += 2; return static_cast<char>(from_hex<std::uint8_t>(text.substr(i - 1, 2)));
    default: return text[i];
  }
}

/// Finds the next b' or b" that begins a word.
std::size_t find_literal(std::string_view text, std::size_t from) {
  for (std::size_t i = from; i + 1 < text.size(); ++i) {
    const bool begins = i == 0 || separators.find(text[i - 1]) != std::string_view::npos || text[i - 1] == '=';
    if (begins && text[i] == 'b' && (text[i + 1] == '\'' || text[i + 1] == '"')) return i;
  }
  return std::string_view::npos;
}

/// Appends the bytes of the literal whose quote stands at `i`; returns the place after it.
std::size_t append_literal(std::string& bytes, std::string_view text, std::size_t i) {
  const char quote = text[i];
  for (++i; i < text.size() && text[i] != quote; ++i) {
    const bool is_escape = text[i] == '\\' && i + 1 < text.size();
    bytes.push_back(is_escape ? read_escape(text, ++i) : text[i]);
  }
  return i + 1;
}

}  // namespace

std::optional<std::string> bytes_of_literals(std::string_view text) {
  std::size_t at = find_literal(text, 0);
  if (at == std::string_view::npos) return std::nullopt;
  std::string bytes;
  while (at != std::string_view::npos) at = find_literal(text, append_literal(bytes, text, at + 1));
  return bytes;
}

}  // namespace tmap::tool
