// SPDX-License-Identifier: Apache-2.0
#include "apps/support/picture/picture.hpp"

#include <array>

namespace tmap::drawing {
namespace {

constexpr std::int64_t letter_height = 7;
constexpr std::int64_t letter_step = 6;  // five dots and a gap

/// Seven rows of five dots, bit 4 leftmost.
struct letter {
  char sign;
  std::array<std::uint8_t, letter_height> rows;
};

constexpr letter letters[] = {
    {'0', {14, 17, 19, 21, 25, 17, 14}}, {'1', {4, 12, 4, 4, 4, 4, 14}},      {'2', {14, 17, 1, 6, 8, 16, 31}},
    {'3', {31, 2, 4, 2, 1, 17, 14}},     {'4', {2, 6, 10, 18, 31, 2, 2}},     {'5', {31, 16, 30, 1, 1, 17, 14}},
    {'6', {6, 8, 16, 30, 17, 17, 14}},   {'7', {31, 1, 2, 4, 8, 8, 8}},       {'8', {14, 17, 17, 14, 17, 17, 14}},
    {'9', {14, 17, 17, 15, 1, 2, 12}},   {'A', {14, 17, 17, 31, 17, 17, 17}}, {'B', {30, 17, 17, 30, 17, 17, 30}},
    {'C', {14, 17, 16, 16, 16, 17, 14}}, {'D', {30, 17, 17, 17, 17, 17, 30}}, {'E', {31, 16, 16, 30, 16, 16, 31}},
    {'F', {31, 16, 16, 30, 16, 16, 16}}, {'G', {14, 17, 16, 23, 17, 17, 15}}, {'H', {17, 17, 17, 31, 17, 17, 17}},
    {'I', {14, 4, 4, 4, 4, 4, 14}},      {'J', {7, 2, 2, 2, 2, 18, 12}},      {'K', {17, 18, 20, 24, 20, 18, 17}},
    {'L', {16, 16, 16, 16, 16, 16, 31}}, {'M', {17, 27, 21, 21, 17, 17, 17}}, {'N', {17, 17, 25, 21, 19, 17, 17}},
    {'O', {14, 17, 17, 17, 17, 17, 14}}, {'P', {30, 17, 17, 30, 16, 16, 16}}, {'Q', {14, 17, 17, 17, 21, 18, 13}},
    {'R', {30, 17, 17, 30, 20, 18, 17}}, {'S', {15, 16, 16, 14, 1, 1, 30}},   {'T', {31, 4, 4, 4, 4, 4, 4}},
    {'U', {17, 17, 17, 17, 17, 17, 14}}, {'V', {17, 17, 17, 17, 17, 10, 4}},  {'W', {17, 17, 17, 21, 21, 27, 17}},
    {'X', {17, 17, 10, 4, 10, 17, 17}},  {'Y', {17, 17, 10, 4, 4, 4, 4}},     {'Z', {31, 1, 2, 4, 8, 16, 31}},
    {'-', {0, 0, 0, 31, 0, 0, 0}},       {'+', {0, 4, 4, 31, 4, 4, 0}},       {'/', {1, 1, 2, 4, 8, 16, 16}},
    {',', {0, 0, 0, 0, 4, 4, 8}},        {'[', {14, 8, 8, 8, 8, 8, 14}},      {']', {14, 2, 2, 2, 2, 2, 14}},
};

}  // namespace

std::int64_t picture::text(std::int64_t x, std::int64_t y, std::string_view words, colour ink, std::int64_t scale) {
  for (const char sign : words) {
    for (const letter& shape : letters) {
      if (shape.sign != sign) continue;
      for (std::int64_t dot = 0; dot < letter_height * 5; ++dot) {
        const bool set = (shape.rows[static_cast<std::size_t>(dot / 5)] >> (4 - dot % 5) & 1) != 0;
        if (set) fill({x + dot % 5 * scale, y + dot / 5 * scale, scale, scale}, ink);
      }
    }
    x += letter_step * scale;
  }
  return x;
}

std::int64_t text_width(std::string_view words, std::int64_t scale) {
  return words.empty() ? 0 : static_cast<std::int64_t>(words.size()) * letter_step * scale - scale;
}

}  // namespace tmap::drawing
