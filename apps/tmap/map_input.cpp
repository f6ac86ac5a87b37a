// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/map_input.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "apps/tmap/json_text.hpp"
#include "apps/tmap/map_text.hpp"
#include "apps/tmap/spec_input.hpp"
#include "apps/tmap/text_file.hpp"

namespace tmap::tool {
namespace {

using json = nlohmann::ordered_json;

/// True for text; raw maps are none, since they always hold zeros.
bool is_text(std::string_view content) {
  const auto is_written = [](unsigned char c) { return c >= ' ' || c == '\n' || c == '\r' || c == '\t'; };
  return !content.empty() && std::all_of(content.begin(), content.end(), is_written);
}

bool is_file(const std::string& argument) {
  std::error_code ignored;
  return argument == "-" || std::filesystem::exists(argument, ignored);
}

/// Returns the name of a text on the command line.
std::string shortened(const std::string& text) {
  return text.size() > 24 ? text.substr(0, 20) + "..." : text;
}

outcome<std::vector<tensor_map>> maps_of_bytes(const std::string& bytes, const std::string& name) {
  if (bytes.empty()) return refuse("{}: holds no tensor map, it is empty", name);
  if (bytes.size() % tensor_map_bytes != 0) {
    return refuse("{}: {} bytes are not a whole number of 128-byte tensor maps", name, bytes.size());
  }
  std::vector<tensor_map> maps(bytes.size() / tensor_map_bytes);
  std::memcpy(maps.data(), bytes.data(), bytes.size());
  return maps;
}

outcome<device_limits> limits_of(const spec_words& words) {
  if (words.compute_capability.empty()) return blackwell_limits();  // knows all that Hopper does
  return read_compute_capability(words.compute_capability);
}

/// Returns the map that the spec of a JSON object makes.
outcome<tensor_map> map_of_spec(const json& object, const std::string& name) {
  const auto words = read_spec_json(object, name);
  if (!words) return refusal{words.error()};
  const auto given = understand(*words);
  if (!given) return refuse("{}: {}", name, given.error());
  const bool is_hopper = given->is_legal(hopper_limits()) && words->compute_capability.empty();
  const auto limits = is_hopper ? outcome<device_limits>{hopper_limits()} : limits_of(*words);
  if (!limits) return refuse("{}: {}", name, limits.error());
  const auto map = given->encoded(*limits);
  if (!map) return refuse("{}: {}", name, to_string(map.error()));
  return *map;
}

/// Reads a JSON object that has the words of a map, or a spec.
outcome<tensor_map> map_of_json(const json& object, const std::string& name) {
  if (!object.is_object()) return refuse("{}: must hold JSON objects", name);
  if (!object.contains("words")) return map_of_spec(object, name);
  const json& words = object["words"];
  const bool is_list = words.is_array() && words.size() == 16 &&
                       std::all_of(words.begin(), words.end(), [](const json& word) { return word.is_string(); });
  if (!is_list) return refuse("{}: \"words\" must be 16 strings", name);
  const auto read = bytes_of_text(fmt::format("{}", fmt::join(words.get<std::vector<std::string>>(), " ")));
  if (!read) return refuse("{}: \"words\" {}", name, read.error());
  const auto maps = maps_of_bytes(read->bytes, name);
  if (!maps) return refusal{maps.error()};
  if (maps->size() != 1) return refuse("{}: \"words\" must be 16 numbers of 64 bits", name);
  return maps->front();
}

outcome<std::vector<tensor_map>> maps_of_json(const std::string& text, const std::string& name) {
  const auto values = read_json(text, name);
  if (!values) return refusal{values.error()};
  std::vector<tensor_map> maps;
  for (const json& value : *values) {
    const auto map = map_of_json(value, name);
    if (!map) return refusal{map.error()};
    maps.push_back(*map);
  }
  return maps;
}

outcome<std::vector<tensor_map>> maps_of_spelt(const spelt_bytes& read, const std::string& name) {
  if (!read.reading.empty()) fmt::print(stderr, "tmap: {}: read as {}\n", name, read.reading);
  return maps_of_bytes(read.bytes, name);
}

outcome<std::vector<tensor_map>> maps_of_argument(const std::string& text) {
  if (looks_like_json(text)) return maps_of_json(text, shortened(text));
  const auto read = bytes_of_text(text);
  if (!read) return refuse("{}: no such file, and not the bytes of a tensor map ({})", shortened(text), read.error());
  if (read->bytes.empty()) return refuse("{}: no such file, and not the bytes of a tensor map", shortened(text));
  return maps_of_spelt(*read, shortened(text));
}

}  // namespace

outcome<std::vector<tensor_map>> maps_of_content(const std::string& content, const std::string& name) {
  if (!is_text(content)) return maps_of_bytes(content, name);
  if (looks_like_json(content)) return maps_of_json(content, name);
  const auto read = bytes_of_text(content);
  if (!read) return refuse("{}: is text, and not the bytes of tensor maps ({})", name, read.error());
  return maps_of_spelt(*read, name);
}

outcome<std::vector<tensor_map>> read_maps(const std::string& argument) {
  if (!is_file(argument)) return maps_of_argument(argument);
  const auto content = read_text(argument);
  if (!content) return refusal{content.error()};
  return maps_of_content(*content, shown_path(argument));
}

outcome<std::vector<tensor_map>> read_maps(const std::vector<std::string>& arguments) {
  if (std::none_of(arguments.begin(), arguments.end(), is_file)) {
    return maps_of_argument(fmt::format("{}", fmt::join(arguments, " ")));
  }
  std::vector<tensor_map> all;
  for (const std::string& argument : arguments) {
    const auto maps = read_maps(argument);
    if (!maps) return refusal{maps.error()};
    all.insert(all.end(), maps->begin(), maps->end());
  }
  return all;
}

outcome<tensor_map> read_one_map(const std::string& argument) {
  const auto maps = read_maps(argument);
  if (!maps) return refusal{maps.error()};
  if (maps->size() != 1)
    return refuse("{}: holds {} tensor maps where one is wanted", shown_path(argument), maps->size());
  return maps->front();
}

}  // namespace tmap::tool
