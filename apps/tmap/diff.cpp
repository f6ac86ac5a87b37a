// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tmap/decode.hpp>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/support/terminal.hpp"
#include "apps/tmap/commands.hpp"
#include "apps/tmap/exit_code.hpp"
#include "apps/tmap/help.hpp"
#include "apps/tmap/map_input.hpp"
#include "apps/tmap/text_file.hpp"

namespace tmap::tool {
namespace {

using apps::style;
using apps::styled;
using json = nlohmann::ordered_json;

struct diff_options {
  std::string first;
  std::string second;
  bool json{};
};

/// A pair of maps that differ, by its place in both arrays.
struct different_pair {
  std::size_t index;
  std::vector<field_difference> fields;
  json first;   ///< the fields of the first map, in their own types
  json second;  ///< those of the second
};

void print_text(const std::vector<field_difference>& differences) {
  std::size_t field = 0;
  std::size_t first = 0;
  for (const field_difference& d : differences) {
    field = std::max(field, d.field.size());
    first = std::max(first, d.first.size());
  }
  for (const field_difference& d : differences) {
    fmt::print("{:<{}}  {}  {}\n", d.field, field, styled(style::bad, fmt::format("{:<{}}", d.first, first)),
               styled(style::good, d.second));
  }
}

void print_pairs(const std::vector<different_pair>& pairs, std::size_t count) {
  if (pairs.empty()) return;
  for (const different_pair& pair : pairs) {
    fmt::print("{}\n", styled(style::strong, fmt::format("map {}", pair.index)));
    print_text(pair.fields);
  }
  std::vector<std::size_t> indices;
  for (const different_pair& pair : pairs) indices.push_back(pair.index);
  fmt::print("{} of {} maps differ: {}\n", pairs.size(), count, fmt::join(indices, ", "));
}

/// Returns the value of "global_dim[1]" in its own type, or the text of a difference if the map has
/// no such field.
json value_of(const json& fields, const std::string& name, const std::string& text) {
  const std::size_t bracket = name.find('[');
  const std::string key = name.substr(0, bracket);
  if (!fields.contains(key)) return text;
  if (bracket == std::string::npos) return fields[key];
  const std::size_t index = std::stoul(name.substr(bracket + 1));
  return index < fields[key].size() ? fields[key][index] : json(text);
}

json as_json(const different_pair& pair) {
  json list = json::array();
  for (const field_difference& d : pair.fields) {
    list.push_back({{"field", d.field},
                    {"first", value_of(pair.first, d.field, d.first)},
                    {"second", value_of(pair.second, d.field, d.second)}});
  }
  return list;
}

/// Prints JSON. The differences of one pair of maps are an array; those of arrays are an array of
/// pairs.
void print_json(const std::vector<different_pair>& pairs, bool is_array) {
  json list = json::array();
  for (const different_pair& pair : pairs) {
    if (!is_array) list = as_json(pair);
    if (is_array) list.push_back({{"map", pair.index}, {"differences", as_json(pair)}});
  }
  fmt::print("{}\n", list.dump());
}

outcome<std::vector<different_pair>> compare_pairs(const std::vector<tensor_map>& first,
                                                   const std::vector<tensor_map>& second) {
  std::vector<different_pair> pairs;
  for (std::size_t i = 0; i < first.size(); ++i) {
    auto fields = diff(first[i], second[i]);
    if (!fields) return refuse("{}", to_string(fields.error()));
    if (fields->empty()) continue;
    pairs.push_back(
        {i, std::move(*fields), json::parse(describe_json(first[i])), json::parse(describe_json(second[i]))});
  }
  return pairs;
}

outcome<int> compare(const diff_options& options) {
  if (options.first == "-" && options.second == "-")
    return refuse("-: standard input can be one of the maps, not both");
  const auto first = read_maps(options.first);
  if (!first) return refusal{first.error()};
  const auto second = read_maps(options.second);
  if (!second) return refusal{second.error()};
  if (first->size() != second->size()) {
    return refuse("{}: holds {} tensor maps, but the first argument holds {}", shown_path(options.second),
                  second->size(), first->size());
  }
  const auto pairs = compare_pairs(*first, *second);
  if (!pairs) return refusal{pairs.error()};
  const bool is_array = first->size() > 1;
  if (options.json) {
    print_json(*pairs, is_array);
  } else if (is_array) {
    print_pairs(*pairs, first->size());
  } else if (!pairs->empty()) {
    print_text(pairs->front().fields);
  }
  return pairs->empty() ? exit_success : exit_no;
}

}  // namespace

void add_diff_command(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<diff_options>();
  CLI::App* command = app.add_subcommand("diff", "Show the fields in which tensor maps differ, pair by pair");
  command->add_option("first", options->first, map_help)->required();
  command->add_option("second", options->second, "The same for the maps to compare with")->required();
  command->add_flag("--json", options->json,
                    "A JSON array of {field, first, second}; for arrays one of {map, differences}");
  add_ending(*command,
             map_forms +
                 "Exit codes: 0 the maps are equal, and nothing is printed; 1 they differ; 2 the input cannot be read.",
             {{"two dumps of one map", "tmap diff before.bin after.bin"},
              {"which maps of two arrays differ", "tmap diff --json batch_a.bin batch_b.bin"}});
  command->callback([options, &exit_code] { exit_code = finish(compare(*options)); });
}

}  // namespace tmap::tool
