// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <tmap/decode.hpp>

#include <cstdio>
#include <memory>

#include "apps/tmap/commands.hpp"
#include "apps/tmap/exit_code.hpp"
#include "apps/tmap/map_input.hpp"

namespace tmap::tool {
namespace {

struct inspect_options {
  std::string map;
  bool json{};
};

void print_text(const std::vector<tensor_map>& maps) {
  for (std::size_t i = 0; i < maps.size(); ++i) {
    if (maps.size() > 1) fmt::print("{}map {}\n", i == 0 ? "" : "\n", i);
    fmt::print("{}", describe(maps[i]));
  }
}

void print_json(const std::vector<tensor_map>& maps) {
  for (const tensor_map& map : maps) fmt::print("{}\n", describe_json(map));
}

outcome<int> inspect(const inspect_options& options) {
  const auto maps = read_maps(options.map);
  if (!maps) return refusal{maps.error()};
  options.json ? print_json(*maps) : print_text(*maps);
  const bool all_known =
      std::all_of(maps->begin(), maps->end(), [](const auto& map) { return decode(map).has_value(); });
  return all_known ? exit_success : exit_no;
}

}  // namespace

void add_inspect_command(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<inspect_options>();
  CLI::App* command = app.add_subcommand("inspect", "Show every field of a tensor map, or of an array of them");
  command->add_option("map", options->map, map_help)->required();
  command->add_flag("--json", options->json, "One JSON object per map and line");
  command->footer("Exit code 1 when bytes are no tensor map; their fields are shown all the same.");
  command->callback([options, &exit_code] { exit_code = finish(inspect(*options)); });
}

}  // namespace tmap::tool
