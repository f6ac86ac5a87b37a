// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "apps/tmap/spec_input.hpp"

namespace tmap::tool {
namespace {

outcome<void> take(const nlohmann::json& value, std::string& word) {
  if (!value.is_string()) return refuse("must be a string");
  word = value.get<std::string>();
  return {};
}

template <class Number>
outcome<void> take(const nlohmann::json& value, std::vector<Number>& numbers) {
  if (!value.is_array()) return refuse("must be an array of numbers");
  for (const nlohmann::json& each : value) {
    const bool fits = each.is_number_unsigned() && each.get<std::uint64_t>() <= std::numeric_limits<Number>::max();
    if (!fits) return refuse("{} is no whole number from 0 to {}", each.dump(), std::numeric_limits<Number>::max());
    numbers.push_back(each.get<Number>());
  }
  return {};
}

outcome<void> take_address(const nlohmann::json& value, std::string& word) {
  if (!value.is_number_unsigned()) return take(value, word);
  word = std::to_string(value.get<std::uint64_t>());
  return {};
}

outcome<void> take_kind(const nlohmann::json& value) {
  if (value == "tiled") return {};
  return refuse("{} is not explained, only \"tiled\" is", value.dump());
}

/// What `inspect --json` says beside a spec.
bool is_said_beside(std::string_view key) {
  for (const char* known : {"valid", "version", "rank", "large_tensor", "noted_box_bytes", "noted_shared_alignment"}) {
    if (key == known) return true;
  }
  return false;
}

outcome<void> take_member(const std::string& key, const nlohmann::json& value, spec_words& words) {
  if (key == "kind") return take_kind(value);
  if (key == "element_type") return take(value, words.type);
  if (key == "global_address") return take_address(value, words.address);
  if (key == "global_dim") return take(value, words.dims);
  if (key == "global_stride_bytes") return take(value, words.strides);
  if (key == "box_dim") return take(value, words.box);
  if (key == "element_stride") return take(value, words.element_strides);
  if (key == "interleave") return take(value, words.interleave);
  if (key == "swizzle") return take(value, words.swizzle);
  if (key == "l2_promotion") return take(value, words.l2);
  if (key == "oob_fill") return take(value, words.fill);
  if (is_said_beside(key)) return {};
  return refuse("is no field of a spec");
}

}  // namespace

outcome<spec_words> read_spec_json(const std::string& text, const std::string& source) {
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, false);
  if (object.is_discarded()) return refuse("{}: is no JSON", source);
  if (!object.is_object()) return refuse("{}: must hold one JSON object", source);
  spec_words words;
  for (const auto& [key, value] : object.items()) {
    if (auto taken = take_member(key, value, words); !taken) return refuse("{}: \"{}\" {}", source, key, taken.error());
  }
  return words;
}

}  // namespace tmap::tool
