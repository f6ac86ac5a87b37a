// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "apps/tmap/json_text.hpp"
#include "apps/tmap/spec_input.hpp"
#include "apps/tmap/text_position.hpp"

namespace tmap::tool {
namespace {

using json = nlohmann::ordered_json;

outcome<void> take(const json& value, std::string& word) {
  if (!value.is_string()) return refuse("must be a string");
  word = value.get<std::string>();
  return {};
}

template <class Number>
outcome<Number> number_of(const json& value) {
  constexpr auto least = std::numeric_limits<Number>::min();
  constexpr auto most = std::numeric_limits<Number>::max();
  bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most);
  if constexpr (std::is_signed_v<Number>) {
    fits = fits || (value.is_number_integer() && !value.is_number_unsigned() && value.get<std::int64_t>() >= least);
  }
  if (!fits) return refuse("{} is not a whole number from {} to {}", value.dump(), least, most);
  return value.get<Number>();
}

template <class Number>
outcome<void> take(const json& value, std::vector<Number>& numbers) {
  if (!value.is_array()) return refuse("must be an array of numbers");
  for (const json& each : value) {
    const auto number = number_of<Number>(each);
    if (!number) return refusal{number.error()};
    numbers.push_back(*number);
  }
  return {};
}

outcome<void> take(const json& value, std::optional<std::uint32_t>& number) {
  const auto read = number_of<std::uint32_t>(value);
  if (!read) return refusal{read.error()};
  number = *read;
  return {};
}

/// Addresses and versions may be numbers or text.
outcome<void> take_number_or_text(const json& value, std::string& word) {
  if (!value.is_number_unsigned()) return take(value, word);
  word = std::to_string(value.get<std::uint64_t>());
  return {};
}

outcome<void> take_kind(const json& value, spec_words& words) {
  words.is_kind_im2col = value == "im2col";
  if (value == "tiled" || value == "im2col") return {};
  return refuse("{} cannot be explained; only \"tiled\" and \"im2col\" are", value.dump());
}

/// Members of `inspect --json` that are no part of a spec.
constexpr std::string_view passed_over[] = {"valid",        "version",         "rank",
                                            "large_tensor", "noted_box_bytes", "noted_shared_alignment",
                                            "words",        "refused",         "unknown_bits"};

outcome<void> take_member(const std::string& key, const json& value, spec_words& words) {
  if (key == "kind") return take_kind(value, words);
  if (key == "element_type") return take(value, words.type);
  if (key == "global_address") return take_number_or_text(value, words.address);
  if (key == "global_dim") return take(value, words.dims);
  if (key == "global_stride_bytes") return take(value, words.strides);
  if (key == "box_dim") return take(value, words.box);
  if (key == "element_stride") return take(value, words.element_strides);
  if (key == "lower_corner") return take(value, words.lower);
  if (key == "upper_corner") return take(value, words.upper);
  if (key == "channels_per_pixel") return take(value, words.channels);
  if (key == "pixels_per_column") return take(value, words.pixels);
  if (key == "interleave") return take(value, words.interleave);
  if (key == "swizzle") return take(value, words.swizzle);
  if (key == "l2_promotion") return take(value, words.l2);
  if (key == "oob_fill") return take(value, words.fill);
  if (std::find(std::begin(passed_over), std::end(passed_over), key) != std::end(passed_over)) return {};
  return refuse("is not a field of a spec");
}

/// A member that cannot be read: its key, and why.
struct bad_member {
  std::string key;
  std::string reason;
};

cuda::std::expected<spec_words, bad_member> words_of(const json& object) {
  spec_words words;
  words.is_json = true;
  const bool is_explanation = object.contains("spec") && object["spec"].is_object();
  if (is_explanation && object.contains("compute_capability")) {
    const auto taken = take_number_or_text(object["compute_capability"], words.compute_capability);
    if (!taken) return cuda::std::unexpected{bad_member{"compute_capability", taken.error()}};
  }
  const json& members = is_explanation ? object["spec"] : object;
  for (const auto& [key, value] : members.items()) {
    if (const auto taken = take_member(key, value, words); !taken) {
      return cuda::std::unexpected{bad_member{key, taken.error()}};
    }
  }
  return words;
}

}  // namespace

outcome<spec_words> read_spec_json(const json& object, const std::string& source) {
  if (!object.is_object()) return refuse("{}: must hold one JSON object", source);
  auto words = words_of(object);
  if (!words) return refuse("{}: \"{}\" {}", source, words.error().key, words.error().reason);
  return std::move(*words);
}

outcome<spec_words> read_spec_json(const std::string& text, const std::string& source) {
  const auto values = read_json(text, source);
  if (!values) return refusal{values.error()};
  if (values->size() != 1 || !values->front().is_object()) return refuse("{}: must hold one JSON object", source);
  auto words = words_of(values->front());
  if (words) return std::move(*words);
  const std::string key = json(words.error().key).dump();
  return refuse("{}: {} {} ({})", source, key, words.error().reason, position_in(text, text.find(key)));
}

}  // namespace tmap::tool
