// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <tmap/decode.hpp>
#include <tmap/environment.hpp>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/support/terminal.hpp"
#include "apps/tmap/commands.hpp"
#include "apps/tmap/exit_code.hpp"
#include "apps/tmap/help.hpp"

namespace tmap::tool {
namespace {

using apps::style;
using apps::styled;
using json = nlohmann::ordered_json;

const char* mark_of(const environment_item& item) {
  if (item.state) return "yes";
  return item.is_required ? "NO" : "no";
}

/// Prints the same cause once: without a driver every later item lacks for it.
std::string remark_on(const environment_item& item, std::string& last_cause) {
  if (item.state) return item.detail;
  const std::string cause = name(item.state.error().code);
  const std::string why = cause == last_cause ? "for the same reason" : to_string(item.state.error());
  last_cause = cause;
  return fmt::format("{}; needed for {}", why, item.used_for);
}

void print_text(const std::vector<environment_item>& items, bool has_all) {
  fmt::print("tmap {}, built with CUDA {}, kernels for {}\n", TMAP_VERSION, TMAP_CUDA_VERSION, TMAP_CUDA_ARCHITECTURES);
  std::string last_cause;
  for (const environment_item& item : items) {
    const style colour = item.state ? style::good : item.is_required ? style::bad : style::warning;
    fmt::print("{}{:<29}{}\n", styled(colour, fmt::format("{:<4}", mark_of(item))), item.name,
               remark_on(item, last_cause));
  }
  fmt::print("{}{:<29}{}\n", styled(style::good, "yes "), "rules, codec, simulator", "run on any machine");
  fmt::print("{}\n",
             has_all
                 ? "Everything works here."
                 : "Here explain, show, inspect, diff and pad work, pad on the simulator. What needs a GPU does not.");
}

void print_json(const std::vector<environment_item>& items, bool has_all) {
  json list = json::array();
  for (const environment_item& item : items) {
    json entry{{"name", item.name}, {"works", item.state.has_value()}, {"required", item.is_required}};
    if (!item.detail.empty()) entry["detail"] = item.detail;
    if (!item.state) {
      entry["status"] = name(item.state.error().code);
      entry["why"] = to_string(item.state.error());
    }
    list.push_back(std::move(entry));
  }
  fmt::print("{}\n", json{{"version", TMAP_VERSION}, {"everything_works", has_all}, {"items", list}}.dump());
}

int examine(bool as_json) {
  const auto items = query_environment();
  const bool has_all =  // without memory to look, nothing is known to work
      !items.empty() &&
      std::all_of(items.begin(), items.end(), [](const auto& item) { return item.state || !item.is_required; });
  as_json ? print_json(items, has_all) : print_text(items, has_all);
  return has_all ? exit_success : exit_no;
}

}  // namespace

void add_doctor_command(CLI::App& app, int& exit_code) {
  const auto as_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("doctor", "Show what works on this machine and what does not");
  command->add_flag("--json", *as_json, "One JSON object");
  add_ending(*command,
             "NO marks what is missing and required, no what is missing and optional. Exit codes: 0 everything works; "
             "1 something required is missing.",
             {{"what works here", "tmap doctor"}, {"the same for a script", "tmap doctor --json"}});
  command->callback([as_json, &exit_code] { exit_code = examine(*as_json); });
}

}  // namespace tmap::tool
