// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/help.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <string_view>

#include "apps/support/terminal.hpp"
#include "apps/tmap/commands.hpp"
#include "apps/tmap/exit_code.hpp"

namespace tmap::tool {
namespace {

constexpr std::size_t columns = 100;

std::string wrapped(std::string_view text) {
  std::string lines;
  while (text.size() > columns) {
    const std::size_t end = text.rfind(' ', columns);
    lines += fmt::format("{}\n", text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines + std::string{text};
}

/// Letters to change, put in or leave out from one word to the other.
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t changed = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

/// Returns the deepest command that the command line names.
const CLI::App& chosen_command(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : chosen_command(*chosen.back());
}

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> names_of_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// ", did you mean '...'?" of the name nearest to `word`, or nothing where none is near.
std::string suggestion(std::string_view word, const std::vector<std::string>& names) {
  const auto nearest = std::min_element(names.begin(), names.end(), [word](const auto& a, const auto& b) {
    return distance(word, a) < distance(word, b);
  });
  if (nearest == names.end() || distance(word, *nearest) > std::max<std::size_t>(2, word.size() / 3)) return {};
  return fmt::format("; did you mean '{}'?", *nearest);
}

}  // namespace

void add_ending(CLI::App& command, const std::string& exit_codes, const std::vector<example>& examples) {
  std::string text = wrapped(exit_codes);
  if (!examples.empty()) text += "\n\nExamples:";
  for (const example& each : examples) text += fmt::format("\n  # {}\n  {}", each.purpose, each.line);
  command.footer(text);
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string list_of_commands(const CLI::App& app) {
  const std::vector<std::string> names = names_of_commands(app);
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const char* const comma = i + 1 == names.size() ? " or " : ", ";
    text += (i == 0 ? "" : comma) + names[i];
  }
  return text;
}

std::string complaint_of(const CLI::App& app, const CLI::ParseError& e) {
  const CLI::App& command = chosen_command(app);
  const auto unknown = app.remaining(true);
  if (unknown.empty()) {
    if (dynamic_cast<const CLI::RequiredError*>(&e) == nullptr) return e.what();
    const std::string known = list_of_commands(command);
    if (!known.empty()) return fmt::format("{} needs a command: {}", command.get_name(), known);
    return fmt::format("{}: {} (tmap help {} shows more)", command.get_name(), e.what(), command.get_name());
  }
  const std::string word = unknown.front().substr(0, unknown.front().find('='));
  if (word.starts_with('-')) {
    return fmt::format("{} has no option {}{}", command.get_name(), word, suggestion(word, names_of_options(command)));
  }
  const auto commands = names_of_commands(command);
  if (commands.empty()) return e.what();
  return fmt::format("{} has no command '{}'{}", command.get_name(), word, suggestion(word, commands));
}

void add_help_command(CLI::App& app, int& exit_code) {
  const auto names = std::make_shared<std::vector<std::string>>();
  CLI::App* help = app.add_subcommand("help", "Show the help of a command, or of all");
  help->add_option("command", *names, "The command, such as explain")->check(CLI::IsMember(names_of_commands(app)));
  help->callback([names, &app, &exit_code] {
    // App::help would delegate to the command that was chosen, which is this one.
    const CLI::App* command = names->empty() ? &app : app.get_subcommand(names->front());
    const std::string title = names->empty() ? app.get_name() : app.get_name() + " " + names->front();
    fmt::print("{}", command->get_formatter()->make_help(command, title, CLI::AppFormatMode::Normal));
    exit_code = exit_success;
  });
}

void add_colour_option(CLI::App& app) {
  const std::map<std::string, apps::colour_choice> choices{{"auto", apps::colour_choice::automatic},
                                                           {"always", apps::colour_choice::always},
                                                           {"never", apps::colour_choice::never}};
  const auto choose = [choices](const std::string& word) { apps::choose_colours(choices.at(word)); };
  const auto add = [&](CLI::App& command) {
    command
        .add_option_function<std::string>("--color", choose,
                                          "When to use colours; auto: on a terminal, if NO_COLOR is not set")
        ->check(CLI::IsMember({"auto", "always", "never"}))
        ->type_name("WHEN");
  };
  add(app);
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) add(*command);
}

}  // namespace tmap::tool
