// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/map_text.hpp"

#include <tmap/decode.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "apps/tmap/dump_text.hpp"
#include "apps/tmap/hex_text.hpp"
#include "apps/tmap/literal_text.hpp"
#include "apps/tmap/text_position.hpp"

namespace tmap::tool {
namespace {

struct number_word {
  std::string_view digits;  ///< without 0x and a C suffix
  bool has_prefix;
};

/// Splits a text into numbers. Passes over what debuggers print around them: addresses of lines,
/// symbols in angle brackets, names before "=".
class number_scanner {
 public:
  explicit number_scanner(std::string_view text) : text_{text} {}

  /// Fails with the place of a word that is no number.
  outcome<std::vector<number_word>> words() {
    while (skip_separators(), at_ < text_.size()) {
      if (text_[at_] == '<') {
        read_brackets();
      } else if (text_[at_] == '=') {
        at_ += text_.substr(at_).starts_with("=>") ? 2 : 1;
      } else if (const auto read = read_word(); !read) {
        return refusal{read.error()};
      }
    }
    return std::move(words_);
  }

 private:
  void skip_separators() { at_ = std::min(text_.find_first_not_of(separators, at_), text_.size()); }

  /// "<map+16>" is passed over; "<repeats 12 times>" repeats the number before.
  void read_brackets() {
    const std::size_t end = std::min(text_.find('>', at_), text_.size() - 1);
    std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    if (!inside.starts_with("repeats ") || words_.empty()) return;
    inside.remove_prefix(8);
    std::uint32_t times = 0;
    std::from_chars(inside.data(), inside.data() + inside.size(), times);
    words_.insert(words_.end(), std::clamp(times, 1u, 1u << 20) - 1, number_word{words_.back()});
  }

  outcome<void> read_word() {
    const std::size_t begin = at_;
    at_ = std::min(text_.find_first_of(" \t\r\n,;:-{}[]()\"'<=", begin), text_.size());
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (is_name() || is_label(word)) return {};
    const auto number = number_of(word);
    if (!number) {
      return refuse("{}: '{}{}'", position_in(text_, begin), word.substr(0, 20), word.size() > 20 ? "..." : "");
    }
    words_.push_back(*number);
    return {};
  }

  /// Whether this is "words =" or "words[] =".
  bool is_name() const {
    const std::size_t next = text_.find_first_not_of(" \t[]", at_);
    return next != std::string_view::npos && text_[next] == '=' && !text_.substr(next).starts_with("=>");
  }

  /// Whether this is the address of a line: "0x7ffe0010 <map+16>:", with white space after it.
  bool is_label(std::string_view word) const {
    if (!word.starts_with("0x")) return false;
    std::size_t next = text_.find_first_not_of(" \t", at_);
    if (next == std::string_view::npos) return false;
    if (text_[next] == '<') next = std::min(text_.find('>', next), text_.size() - 1) + 1;
    if (next >= text_.size() || text_[next] != ':') return false;
    return next + 1 == text_.size() || std::string_view{" \t\r\n"}.find(text_[next + 1]) != std::string_view::npos;
  }

  static std::optional<number_word> number_of(std::string_view word) {
    const bool has_prefix = word.starts_with("0x") || word.starts_with("0X");
    if (has_prefix) {
      word.remove_prefix(2);
      while (!word.empty() && std::string_view{"uUlL"}.find(word.back()) != std::string_view::npos) {
        word.remove_suffix(1);
      }
    }
    if (!is_hex(word)) return std::nullopt;
    return number_word{word, has_prefix};
  }

  std::string_view text_;
  std::size_t at_{};
  std::vector<number_word> words_;
};

/// One way to read the words.
struct candidate {
  std::size_t width;  ///< bytes of each word, or 0: digits are bytes in memory order
  std::string bytes;
};

std::string bytes_in_memory_order(const std::vector<number_word>& words) {
  std::string bytes;
  for (const number_word& word : words) append_bytes(bytes, word.digits);
  return bytes;
}

std::string bytes_of_values(const std::vector<number_word>& words, std::size_t width) {
  std::string bytes;
  for (const number_word& word : words) {
    const auto value = from_hex<std::uint64_t>(word.digits);
    bytes.append(reinterpret_cast<const char*>(&value), width);
  }
  return bytes;
}

struct digit_counts {
  std::size_t fewest{~std::size_t{0}};
  std::size_t most{};
  bool all_even{true};
};

digit_counts count_digits(const std::vector<number_word>& words) {
  digit_counts counts;
  for (const number_word& word : words) {
    counts.fewest = std::min(counts.fewest, word.digits.size());
    counts.most = std::max(counts.most, word.digits.size());
    counts.all_even = counts.all_even && word.digits.size() % 2 == 0;
  }
  return counts;
}

/// Numbers with 0x. Words that all have the digits of a width have that width: debuggers fill up.
std::vector<candidate> readings_of_numbers(const std::vector<number_word>& words) {
  const digit_counts digits = count_digits(words);
  if (digits.most > 16) return {{0, bytes_in_memory_order(words)}};
  std::vector<candidate> readings;
  for (const std::size_t width : {1, 4, 8}) {
    if (digits.fewest == 2 * width && digits.most == 2 * width) return {{width, bytes_of_values(words, width)}};
    const bool fits = digits.most <= 2 * width && words.size() * width % tensor_map_bytes == 0;
    if (fits) readings.push_back({width, bytes_of_values(words, width)});
  }
  if (readings.empty()) {
    const std::size_t width = digits.most > 8 ? 8 : 4;
    readings.push_back({width, bytes_of_values(words, width)});
  }
  return readings;
}

/// Digits without 0x: bytes in memory order, or values of 32 or 64 bits as %x prints them.
std::vector<candidate> readings_of_digits(const std::vector<number_word>& words) {
  const digit_counts digits = count_digits(words);
  std::vector<candidate> readings;
  if (digits.all_even) readings.push_back({0, bytes_in_memory_order(words)});
  for (const std::size_t width : {4, 8}) {
    const bool is_this_wide = digits.most > width && digits.most <= 2 * width;
    if (is_this_wide && words.size() * width % tensor_map_bytes == 0) {
      readings.push_back({width, bytes_of_values(words, width)});
    }
  }
  return readings;
}

/// Counts the maps among the bytes that some encoder may have written.
std::size_t count_known(const std::string& bytes) {
  std::size_t known = 0;
  for (std::size_t at = 0; at + tensor_map_bytes <= bytes.size(); at += tensor_map_bytes) {
    tensor_map map;
    std::memcpy(&map, bytes.data() + at, sizeof map);
    known += decode(map) ? 1 : 0;
  }
  return known;
}

std::string words_for(const candidate& reading, std::size_t count) {
  if (reading.width == 0) return "bytes in memory order";
  return fmt::format("{} words of {} bits", count, 8 * reading.width);
}

/// Of several readings, the one with most maps that are known is meant.
spelt_bytes choose(std::vector<candidate>&& readings, std::size_t count) {
  if (readings.size() == 1) return {std::move(readings.front().bytes), {}};
  const auto best = std::max_element(readings.begin(), readings.end(), [](const candidate& a, const candidate& b) {
    return count_known(a.bytes) < count_known(b.bytes);
  });
  return {std::move(best->bytes), words_for(*best, count)};
}

outcome<spelt_bytes> bytes_of_numbers(std::string_view text) {
  const auto words = number_scanner{text}.words();
  if (!words) return refusal{words.error()};
  if (words->empty()) return spelt_bytes{};
  const auto prefixed = static_cast<std::size_t>(
      std::count_if(words->begin(), words->end(), [](const number_word& word) { return word.has_prefix; }));
  if (prefixed != 0 && prefixed != words->size()) return refuse("some of its numbers begin with 0x, others do not");
  auto readings = prefixed != 0 ? readings_of_numbers(*words) : readings_of_digits(*words);
  if (readings.empty()) return refuse("an odd number of digits does not make whole bytes");
  return choose(std::move(readings), words->size());
}

}  // namespace

outcome<spelt_bytes> bytes_of_text(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (auto bytes = bytes_of_literals(text)) return spelt_bytes{std::move(*bytes), {}};
  if (auto bytes = bytes_of_dump(text)) return spelt_bytes{std::move(*bytes), {}};
  return bytes_of_numbers(text);
}

}  // namespace tmap::tool
