// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <tmap/decode.hpp>

#include "lib/codec/field_text.hpp"
#include "lib/codec/layout.hpp"
#include "lib/support/without_throwing.hpp"

namespace tmap {
namespace {

std::string line(std::string_view name, std::string_view text) {
  return fmt::format("{:<24}{}\n", name, text);
}

/// Returns the reason why `decode` refuses the map; empty if it does not.
std::string refusal(const tensor_map& map) {
  const auto decoded = decode(map);
  if (decoded) return {};
  return support::or_throw(to_string(decoded.error()));
}

// Written by hand: the destructor of a JSON library's object allocates, and ends the process if
// that fails.

std::string json_of_bool(bool value) {
  return value ? "true" : "false";
}

/// All texts here are the library's own: printable, and in ASCII.
std::string json_of(std::string_view text) {
  std::string quoted{'"'};
  for (const char each : text) {
    if (each == '"' || each == '\\') quoted += '\\';
    quoted += each;
  }
  return quoted + '"';
}

std::string value_as_json(const codec::field& f, std::uint64_t value) {
  switch (f.text) {
    case codec::notation::number: return std::to_string(value);
    case codec::notation::signed_number: return std::to_string(static_cast<std::int64_t>(value));
    case codec::notation::yes_no: return json_of_bool(value != 0);
    default: return json_of(codec::text_of(f, value));
  }
}

/// The members of a JSON object, in their order. Neighbours "global_dim[0]", "global_dim[1]" become
/// one array.
class json_members {
 public:
  void add(std::string_view name, const std::string& value) {
    end_array();
    text_ += fmt::format("{}{}:{}", text_.empty() ? "" : ",", json_of(name), value);
  }
  void add_element(std::string_view name, const std::string& value) {
    if (name == array_) {
      text_ += ',' + value;
      return;
    }
    add(name, '[' + value);
    array_ = name;
  }
  std::string object() {
    end_array();
    return '{' + text_ + '}';
  }

 private:
  void end_array() {
    if (!array_.empty()) text_ += ']';
    array_ = {};
  }

  std::string text_;
  std::string_view array_;  ///< its name while it is open
};

void add_field(json_members& members, const codec::field& f, std::uint64_t value) {
  const std::string_view name = f.name;
  const std::size_t bracket = name.find('[');
  const std::string text = value_as_json(f, value);
  bracket == std::string_view::npos ? members.add(name, text) : members.add_element(name.substr(0, bracket), text);
}

std::string unknown_bits_as_json(const tensor_map& map) {
  json_members words;
  bool has_any = false;
  for (std::uint32_t word = 0; word < 16; ++word) {
    const std::uint64_t bits = codec::unknown_bits(map, word, codec::layout_of(map));
    if (bits != 0) words.add(fmt::format("word {}", word), json_of(codec::hexadecimal(bits)));
    has_any = has_any || bits != 0;
  }
  return has_any ? words.object() : std::string{};
}

std::string text_of_map(const tensor_map& map) {
  std::string text;
  for (const codec::field& f : codec::table) {
    if (codec::is_worth_showing(f, map)) text += line(f.name, codec::text_of(f, codec::read(map, f)));
  }
  for (std::uint32_t word = 0; word < 16; ++word) {
    const std::uint64_t bits = codec::unknown_bits(map, word, codec::layout_of(map));
    if (bits != 0) text += line(codec::unknown_bits_name(word), codec::hexadecimal(bits));
  }
  if (const std::string reason = refusal(map); !reason.empty()) text += line("refused", reason);
  return text;
}

std::string json_of_map(const tensor_map& map) {
  json_members members;
  const std::string reason = refusal(map);
  members.add("valid", json_of_bool(reason.empty()));
  if (!reason.empty()) members.add("refused", json_of(reason));
  for (const codec::field& f : codec::table) {
    if (codec::is_worth_showing(f, map)) add_field(members, f, codec::read(map, f));
  }
  if (const std::string bits = unknown_bits_as_json(map); !bits.empty()) members.add("unknown_bits", bits);
  return members.object();
}

}  // namespace

std::string describe(const tensor_map& map) {
  return support::without_throwing([&] { return text_of_map(map); });
}

std::string describe_json(const tensor_map& map) {
  return support::without_throwing([&] { return json_of_map(map); });
}

}  // namespace tmap
