// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/show_input.hpp"

#include <tmap/validate.hpp>

#include <filesystem>

#include "apps/tmap/json_text.hpp"
#include "apps/tmap/map_input.hpp"
#include "apps/tmap/text_file.hpp"

namespace tmap::tool {
namespace {

void judge(shown_thing& thing, const violations& found, element_type type) {
  for (const violation& v : found) {
    const bool is_error = info(v.id).level == severity::error;
    (is_error ? thing.problems : thing.warnings).push_back(fmt::format("{}: {}", to_string(v), remedy(v, type)));
  }
}

shown_thing thing_of_map(const tensor_map& map) {
  shown_thing thing;
  thing.map = map;
  const auto decoded = decode(map);
  if (!decoded) {
    thing.problems.push_back(to_string(decoded.error()));
    return thing;
  }
  thing.spec = decoded->spec;
  thing.is_tiled = decoded->kind == map_kind::tiled;
  if (thing.is_tiled) judge(thing, validate(decoded->spec), decoded->spec.type);
  return thing;
}

/// Returns the spec that a text is; nothing for JSON of maps and for any other text.
std::optional<nlohmann::ordered_json> spec_in(const std::string& text) {
  if (!looks_like_json(text)) return std::nullopt;
  const auto values = read_json(text, {});
  const bool is_spec =
      values && values->size() == 1 && values->front().is_object() && !values->front().contains("words");
  if (!is_spec) return std::nullopt;
  return values->front();
}

/// Returns the content of the file or of standard input that an argument names; nothing for one
/// that is itself a map.
outcome<std::optional<std::string>> content_of(const std::string& argument) {
  std::error_code ignored;
  if (argument != "-" && !std::filesystem::exists(argument, ignored)) return std::optional<std::string>{};
  auto text = read_text(argument);
  if (!text) return refusal{text.error()};
  return std::optional{std::move(*text)};
}

}  // namespace

outcome<shown_thing> thing_of_words(const spec_words& words, const std::string& source) {
  const auto given = understand(words);
  if (!given) return refuse("{}{}", source, given.error());
  shown_thing thing;
  thing.spec = given->spec;
  thing.is_tiled = !given->window;
  thing.notes = given->notes;
  judge(thing, given->broken(hopper_limits()), given->spec.type);
  if (!thing.problems.empty()) return thing;
  const auto map = given->encoded(hopper_limits());
  if (!map) return refuse("{}{}", source, to_string(map.error()));
  thing.map = *map;
  return thing;
}

outcome<shown_thing> thing_of_argument(const std::string& argument) {
  const auto content = content_of(argument);
  if (!content) return refusal{content.error()};
  if (*content && spec_in(**content)) {
    const auto words = read_spec_json(**content, shown_path(argument));
    if (!words) return refusal{words.error()};
    return thing_of_words(*words, shown_path(argument) + ": ");
  }
  const auto maps = *content ? maps_of_content(**content, shown_path(argument)) : read_maps(argument);
  if (!maps) return refusal{maps.error()};
  if (maps->size() != 1) {
    return refuse("{}: holds {} tensor maps where one is wanted", shown_path(argument), maps->size());
  }
  return thing_of_map(maps->front());
}

}  // namespace tmap::tool
