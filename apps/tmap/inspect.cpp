// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tmap/decode.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/support/terminal.hpp"
#include "apps/tmap/any_spec.hpp"
#include "apps/tmap/commands.hpp"
#include "apps/tmap/exit_code.hpp"
#include "apps/tmap/help.hpp"
#include "apps/tmap/map_input.hpp"

namespace tmap::tool {
namespace {

using apps::style;
using apps::styled;

/// More maps than these are shown as a table.
constexpr std::size_t most_in_full = 16;

struct index_range {
  std::size_t first;
  std::size_t last;
};

struct inspect_options {
  std::vector<std::string> maps;
  std::vector<std::string> indices;
  bool only_bad{};
  bool table{};
  bool json{};
};

/// A map and its place in the input.
struct placed_map {
  std::size_t index;
  tensor_map map;
};

bool is_known(const placed_map& placed) {
  return decode(placed.map).has_value();
}

/// Reads "7" or "7-12".
outcome<index_range> read_range(const std::string& word) {
  index_range range{};
  const char* end = word.data() + word.size();
  auto read = std::from_chars(word.data(), end, range.first);
  range.last = range.first;
  if (read.ec == std::errc{} && read.ptr != end && *read.ptr == '-') {
    read = std::from_chars(read.ptr + 1, end, range.last);
  }
  const bool is_range = read.ec == std::errc{} && read.ptr == end && range.first <= range.last;
  if (!is_range) return refuse("--index: '{}' is not a number or range such as 7 or 7-12", word);
  return range;
}

outcome<std::vector<placed_map>> select(const std::vector<tensor_map>& maps, const inspect_options& options) {
  std::vector<index_range> ranges;
  for (const std::string& word : options.indices) {
    const auto range = read_range(word);
    if (!range) return refusal{range.error()};
    if (range->last >= maps.size()) return refuse("--index: {} is not below the number of maps, {}", word, maps.size());
    ranges.push_back(*range);
  }
  std::vector<placed_map> selected;
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const bool is_named = ranges.empty() || std::any_of(ranges.begin(), ranges.end(), [i](const index_range& range) {
                            return range.first <= i && i <= range.last;
                          });
    const placed_map placed{i, maps[i]};
    if (is_named && !(options.only_bad && is_known(placed))) selected.push_back(placed);
  }
  return selected;
}

/// The line "refused" stands out on a terminal.
std::string described(const tensor_map& map) {
  std::string text = describe(map);
  const std::size_t refused = text.rfind("\nrefused ");
  if (refused == std::string::npos) return text;
  return text.substr(0, refused + 1) + styled(style::bad, text.substr(refused + 1));
}

void print_in_full(const std::vector<placed_map>& maps, bool is_array) {
  bool is_first = true;
  for (const placed_map& placed : maps) {
    if (is_array)
      fmt::print("{}{}\n", is_first ? "" : "\n", styled(style::strong, fmt::format("map {}", placed.index)));
    fmt::print("{}", described(placed.map));
    is_first = false;
  }
}

std::string dims_of(const nlohmann::json& fields, const char* key) {
  if (!fields.contains(key)) return "-";
  return fmt::format("{}", fmt::join(fields[key].get<std::vector<std::int64_t>>(), "x"));
}

std::string text_in(const nlohmann::json& fields, const char* key) {
  if (!fields.contains(key)) return "-";
  return fields[key].is_string() ? fields[key].get<std::string>() : fields[key].dump();
}

void print_row(const placed_map& placed) {
  const auto fields = nlohmann::json::parse(describe_json(placed.map));
  const bool is_valid = fields.value("valid", false);
  const std::string row =
      fmt::format("{:>7}  {:<7} {:<11} {:<18} {:<28} {:<20} {:<10} {}", placed.index, text_in(fields, "kind"),
                  text_in(fields, "element_type"), text_in(fields, "global_address"), dims_of(fields, "global_dim"),
                  dims_of(fields, "box_dim"), text_in(fields, "swizzle"), is_valid ? "ok" : text_in(fields, "refused"));
  fmt::print("{}\n", is_valid ? row : styled(style::bad, row));
}

void print_table(const std::vector<placed_map>& maps) {
  fmt::print("{}\n",
             styled(style::strong, fmt::format("{:>7}  {:<7} {:<11} {:<18} {:<28} {:<20} {:<10} {}", "map", "kind",
                                               "type", "address", "dims", "box", "swizzle", "verdict")));
  for (const placed_map& placed : maps) print_row(placed);
}

/// Prints the map's fields and its words, from which the tool reads the map again.
void print_json(const std::vector<placed_map>& maps) {
  for (const placed_map& placed : maps) {
    auto object = nlohmann::ordered_json::parse(describe_json(placed.map));
    object["words"] = words_as_json(placed.map);
    fmt::print("{}\n", object.dump());
  }
}

void print(const std::vector<placed_map>& maps, std::size_t count, const inspect_options& options) {
  if (options.json) return print_json(maps);
  if (options.table || maps.size() > most_in_full) return print_table(maps);
  print_in_full(maps, count > 1);
}

outcome<int> inspect(const inspect_options& options) {
  const auto maps = read_maps(options.maps);
  if (!maps) return refusal{maps.error()};
  const auto selected = select(*maps, options);
  if (!selected) return refusal{selected.error()};
  print(*selected, maps->size(), options);
  return std::all_of(selected->begin(), selected->end(), is_known) ? exit_success : exit_no;
}

}  // namespace

void add_inspect_command(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<inspect_options>();
  CLI::App* command = app.add_subcommand("inspect", "Show every field of a tensor map, or of an array of them");
  command->add_option("map", options->maps, map_help)->required();
  command->add_option("--index", options->indices, "Show these maps of an array only: 7, or 3,10-12")
      ->delimiter(',')
      ->type_name("I,I-I")
      ->expected(1)
      ->take_all();
  command->add_flag("--only-bad", options->only_bad, "Show only those that are not tensor maps");
  command->add_flag("--table", options->table, "One line for each map, as for more than 16 maps");
  command->add_flag("--json", options->json, "One JSON object for each map, on a line of its own");
  add_ending(*command,
             map_forms +
                 "Exit codes: 0 all shown are tensor maps; 1 some are not, and their fields are shown too; 2 the input "
                 "cannot be read.",
             {{"a file of maps", "tmap inspect maps.bin"},
              {"one map, as a debugger prints it", "gdb -batch -ex 'x/16gx &map' prog | tmap inspect -"},
              {"what is wrong in an array", "tmap inspect --only-bad --table maps.bin"},
              {"some maps of an array", "tmap inspect --index 0,10-12 maps.bin"}});
  command->callback([options, &exit_code] { exit_code = finish(inspect(*options)); });
}

}  // namespace tmap::tool
