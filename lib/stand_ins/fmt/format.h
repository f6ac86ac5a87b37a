// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stands in for the library {fmt} where it is not installed: the part that tmap's library uses.
// Knows `{}`, `{name}`, doubled braces, and the specs `#x` and `<width`. The formats are tmap's
// own; one that is not known ends up in the text as it was written.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace fmt {
namespace detail {

inline std::string hexadecimal(std::uint64_t value) {
  std::string digits;
  do {
    digits.insert(digits.begin(), "0123456789abcdef"[value % 16]);
    value /= 16;
  } while (value != 0);
  return "0x" + digits;
}

inline std::string padded(std::string text, std::string_view width) {
  std::size_t least = 0;
  for (const char digit : width) least = 10 * least + static_cast<std::size_t>(digit - '0');
  if (text.size() < least) text.append(least - text.size(), ' ');
  return text;
}

class argument {
 public:
  template <class Value>
  argument(const Value& value) {
    if constexpr (std::is_integral_v<Value>) {
      bits_ = static_cast<std::uint64_t>(value);
      text_ = std::to_string(value);
    } else {
      text_ = value;
    }
  }
  argument(std::string_view name, const argument& value) : argument{value} { name_ = name; }

  std::string_view name() const { return name_; }
  std::string text(std::string_view spec) const {
    if (spec == "#x") return hexadecimal(bits_);
    return spec.empty() || spec[0] != '<' ? text_ : padded(text_, spec.substr(1));
  }

 private:
  std::string_view name_;
  std::string text_;
  std::uint64_t bits_{};
};

/// The text that takes the place of `field`, which is what stands between two braces.
inline std::string replaced(std::string_view field, std::initializer_list<argument> arguments, std::size_t& next) {
  const std::size_t colon = field.find(':');
  const std::string_view name = field.substr(0, colon);
  const std::string_view spec = colon == std::string_view::npos ? std::string_view{} : field.substr(colon + 1);
  if (name.empty() && next < arguments.size()) return (arguments.begin() + next++)->text(spec);
  for (const argument& each : arguments) {
    if (!name.empty() && each.name() == name) return each.text(spec);
  }
  return '{' + std::string{field} + '}';
}

inline std::string format(std::string_view text, std::initializer_list<argument> arguments) {
  std::string made;
  std::size_t next = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_brace = text[i] == '{' || text[i] == '}';
    const bool is_doubled = is_brace && i + 1 < text.size() && text[i + 1] == text[i];
    const std::size_t end = text[i] == '{' && !is_doubled ? text.find('}', i) : std::string_view::npos;
    if (end != std::string_view::npos) {
      made += replaced(text.substr(i + 1, end - i - 1), arguments, next);
      i = end;
    } else {
      made += text[i];
      i += is_doubled ? 1 : 0;
    }
  }
  return made;
}

}  // namespace detail

inline std::string_view runtime(std::string_view text) {
  return text;
}

template <class Value>
detail::argument arg(std::string_view name, const Value& value) {
  return {name, detail::argument{value}};
}

template <class... Arguments>
std::string format(std::string_view text, const Arguments&... arguments) {
  return detail::format(text, {detail::argument{arguments}...});
}

}  // namespace fmt
