// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/map_text.hpp"

#include <tmap/decode.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "apps/tmap/text_position.hpp"

namespace tmap::tool {
namespace {

constexpr std::string_view separators = " \t\r\n,;:-{}[]()\"'";
constexpr std::string_view hex_digits = "0123456789abcdefABCDEF";

bool is_hex(std::string_view text) {
  return !text.empty() && text.find_first_not_of(hex_digits) == std::string_view::npos;
}

template <class Number>
Number from_hex(std::string_view digits) {
  Number value{};
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

void append_bytes(std::string& bytes, std::string_view digits) {
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<char>(from_hex<std::uint8_t>(digits.substr(i, 2))));
  }
}

// Dumps with an offset before each line, whose bytes stand in memory order.

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

/// "00000010: 0010 ... text" of xxd, "00000010 00 10 ... |text|" of hexdump -C, or its last line,
/// an offset alone.
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

/// Returns nothing where one line belongs to no such dump, or none has bytes.
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

// Python's bytes.

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

/// All literals of a text, one after the other; nothing where there is none.
std::optional<std::string> bytes_of_literals(std::string_view text) {
  std::size_t at = find_literal(text, 0);
  if (at == std::string_view::npos) return std::nullopt;
  std::string bytes;
  while (at != std::string_view::npos) at = find_literal(text, append_literal(bytes, text, at + 1));
  return bytes;
}

// Numbers, as debuggers and programs write them.

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

  /// "words =" or "words[] =".
  bool is_name() const {
    const std::size_t next = text_.find_first_not_of(" \t[]", at_);
    return next != std::string_view::npos && text_[next] == '=' && !text_.substr(next).starts_with("=>");
  }

  /// The address of a line: "0x7ffe0010 <map+16>:", with white space after it.
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
