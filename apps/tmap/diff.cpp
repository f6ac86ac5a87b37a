// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <tmap/decode.hpp>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/tmap/commands.hpp"
#include "apps/tmap/exit_code.hpp"
#include "apps/tmap/map_input.hpp"

namespace tmap::tool {
namespace {

struct diff_options {
  std::string first;
  std::string second;
  bool json{};
};

void print_text(const std::vector<field_difference>& differences) {
  std::size_t field = 0;
  std::size_t first = 0;
  for (const field_difference& d : differences) {
    field = std::max(field, d.field.size());
    first = std::max(first, d.first.size());
  }
  for (const field_difference& d : differences)
    fmt::print("{:<{}}  {:<{}}  {}\n", d.field, field, d.first, first, d.second);
}

void print_json(const std::vector<field_difference>& differences) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const field_difference& d : differences) {
    list.push_back({{"field", d.field}, {"first", d.first}, {"second", d.second}});
  }
  fmt::print("{}\n", list.dump());
}

outcome<int> compare(const diff_options& options) {
  if (options.first == "-" && options.second == "-")
    return refuse("-: standard input can be one of the maps, not both");
  const auto first = read_one_map(options.first);
  if (!first) return refusal{first.error()};
  const auto second = read_one_map(options.second);
  if (!second) return refusal{second.error()};
  const auto differences = diff(*first, *second);
  if (!differences) return refuse("{}", to_string(differences.error()));
  options.json ? print_json(*differences) : print_text(*differences);
  return differences->empty() ? exit_success : exit_no;
}

}  // namespace

void add_diff_command(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<diff_options>();
  CLI::App* command = app.add_subcommand("diff", "Show the fields in which two tensor maps differ");
  command->add_option("first", options->first, map_help)->required();
  command->add_option("second", options->second, map_help)->required();
  command->add_flag("--json", options->json, "A JSON array of {field, first, second}");
  command->footer("Says nothing and exits with 0 when the maps are equal, with 1 when they differ.");
  command->callback([options, &exit_code] { exit_code = finish(compare(*options)); });
}

}  // namespace tmap::tool
