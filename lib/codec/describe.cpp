// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <tmap/decode.hpp>

#include "lib/codec/field_text.hpp"
#include "lib/codec/layout.hpp"
#include "lib/support/without_throwing.hpp"

namespace tmap {
namespace {

using json = nlohmann::ordered_json;

std::string line(std::string_view name, std::string_view text) {
  return fmt::format("{:<24}{}\n", name, text);
}

std::string refusal(const tensor_map& map) {
  const auto decoded = decode(map);
  return decoded ? std::string{} : to_string(decoded.error());
}

json value_as_json(const codec::field& f, std::uint64_t value) {
  switch (f.text) {
    case codec::notation::number: return value;
    case codec::notation::signed_number: return static_cast<std::int64_t>(value);
    case codec::notation::yes_no: return value != 0;
    default: return codec::text_of(f, value);
  }
}

/// "global_dim[1]" becomes the next element of the array "global_dim".
void add_to_json(json& object, const codec::field& f, json value) {
  const std::string_view name = f.name;
  const std::size_t bracket = name.find('[');
  if (bracket == std::string_view::npos) {
    object[f.name] = std::move(value);
  } else {
    object[std::string{name.substr(0, bracket)}].push_back(std::move(value));
  }
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
  json object;
  const std::string reason = refusal(map);
  object["valid"] = reason.empty();
  if (!reason.empty()) object["refused"] = reason;
  for (const codec::field& f : codec::table) {
    if (codec::is_worth_showing(f, map)) add_to_json(object, f, value_as_json(f, codec::read(map, f)));
  }
  for (std::uint32_t word = 0; word < 16; ++word) {
    const std::uint64_t bits = codec::unknown_bits(map, word, codec::layout_of(map));
    if (bits != 0) object["unknown_bits"][fmt::format("word {}", word)] = codec::hexadecimal(bits);
  }
  return object.dump();
}

}  // namespace

std::string describe(const tensor_map& map) {
  return support::without_throwing([&] { return text_of_map(map); });
}

std::string describe_json(const tensor_map& map) {
  return support::without_throwing([&] { return json_of_map(map); });
}

}  // namespace tmap
