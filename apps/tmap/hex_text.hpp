// SPDX-License-Identifier: Apache-2.0
#pragma once

// Hexadecimal digits in texts of maps.

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tmap::tool {

inline constexpr std::string_view hex_digits = "0123456789abcdefABCDEF";

/// Characters between the words of a text.
inline constexpr std::string_view separators = " \t\r\n,;:-{}[]()\"'";

inline bool is_hex(std::string_view text) {
  return !text.empty() && text.find_first_not_of(hex_digits) == std::string_view::npos;
}

template <class Number>
Number from_hex(std::string_view digits) {
  Number value{};
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

/// Appends the byte of each two digits.
inline void append_bytes(std::string& bytes, std::string_view digits) {
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<char>(from_hex<std::uint8_t>(digits.substr(i, 2))));
  }
}

}  // namespace tmap::tool
