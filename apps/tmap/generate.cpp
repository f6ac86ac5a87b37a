// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/generate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

#include "apps/tmap/commands.hpp"
#include "apps/tmap/exit_code.hpp"
#include "apps/tmap/help.hpp"

namespace tmap::tool {
namespace {

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

/// Options that are written with dashes, or the positional ones.
std::vector<const CLI::Option*> options_of(const CLI::App& app, bool positional) {
  return app.get_options([positional](const CLI::Option* option) { return option->get_positional() == positional; });
}

bool takes_value(const CLI::Option& option) {
  return option.get_expected_max() > 0 && option.get_type_size() > 0;
}

/// Returns the words that an option takes, which its type names as {a,b}. Empty if it takes any.
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find('{');
  const std::size_t end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return {};
  return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

/// "--json", or "-v, --version".
std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> names_of_all(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options_of(command, false)) {
    for (const std::string& name : names_of(*option)) names.push_back(name);
  }
  return names;
}

// The man page, in the macros of man(7).

std::string roff(const std::string& text) {
  std::string escaped = replaced(replaced(replaced(text, "\\", "\\e"), "-", "\\-"), "\n.", "\n\\&.");
  return escaped.starts_with('.') || escaped.starts_with('\'') ? "\\&" + escaped : escaped;
}

std::string roff_option(const CLI::Option& option, bool positional) {
  std::string type = option.get_type_name();
  type = type.substr(0, type.find(':'));
  std::string head = positional ? fmt::format("\\fI{}\\fR", roff(option.get_name(true)))
                                : fmt::format("\\fB{}\\fR", roff(fmt::format("{}", fmt::join(names_of(option), ", "))));
  if (!positional && takes_value(option) && !type.empty()) head += fmt::format(" \\fI{}\\fR", roff(type));
  std::string text = option.get_description();
  const auto choices = choices_of(option);
  if (!choices.empty()) text += fmt::format(" (one of {})", fmt::join(choices, ", "));
  return fmt::format(".TP\n{}\n{}\n", head, roff(text));
}

/// Options of the command, positional ones first, then its footer with the lines as they are.
std::string roff_body(const CLI::App& command) {
  std::string text;
  for (const bool positional : {true, false}) {
    for (const CLI::Option* option : options_of(command, positional)) text += roff_option(*option, positional);
  }
  if (!command.get_footer().empty()) text += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(command.get_footer()));
  return text;
}

std::string roff_command(const CLI::App& command, const std::string& parents) {
  const std::string name = parents + " " + command.get_name();
  std::string text = fmt::format(".SS {}\n{}\n", roff(name), roff(command.get_description())) + roff_body(command);
  for (const CLI::App* inner : commands_of(command)) text += roff_command(*inner, name);
  return text;
}

// Completions. None of their texts may hold a quote that the shell sees.

std::string quoted(const std::string& text) {
  return replaced(text, "'", "");
}

std::string words(const std::vector<std::string>& all) {
  return fmt::format("{}", fmt::join(all, " "));
}

std::vector<std::string> names_of_commands_in(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  return names;
}

/// Lines of a case that lists the choices of each option of all commands.
std::string bash_choices(const CLI::App& app) {
  std::string text;
  for (const CLI::App* command : commands_of(app)) {
    for (const CLI::Option* option : options_of(*command, false)) {
      const auto choices = choices_of(*option);
      if (choices.empty()) continue;
      text += fmt::format("    {}:{}) words='{}' ;;\n", command->get_name(), names_of(*option).back(), words(choices));
    }
  }
  return text;
}

/// Lists what a command takes at any place: its options, its own commands and choices of its
/// arguments.
std::string words_of_command(const CLI::App& command) {
  std::vector<std::string> all = names_of_commands_in(command);
  for (const CLI::Option* option : options_of(command, true)) {
    for (const std::string& choice : choices_of(*option)) all.push_back(choice);
  }
  for (const std::string& name : names_of_all(command)) all.push_back(name);
  return words(all);
}

std::string zsh_option(const CLI::Option& option) {
  const auto choices = choices_of(option);
  const std::string text = replaced(replaced(quoted(option.get_description()), "[", "("), "]", ")");
  std::string value;
  if (takes_value(option)) value = choices.empty() ? ":value:_files" : fmt::format(":value:({})", words(choices));
  std::string lines;
  for (const std::string& name : names_of(option)) {
    lines += fmt::format(" \\\n        '{}[{}]{}'", name, text, value);
  }
  return lines;
}

std::string fish_option(const CLI::App& command, const CLI::Option& option) {
  std::string line = fmt::format("complete -c tmap -n '__fish_seen_subcommand_from {}'", command.get_name());
  for (const std::string& name : option.get_snames()) line += " -s " + name;
  for (const std::string& name : option.get_lnames()) line += " -l " + name;
  const auto choices = choices_of(option);
  if (takes_value(option)) line += choices.empty() ? " -r" : fmt::format(" -x -a '{}'", words(choices));
  return fmt::format("{} -d '{}'\n", line, quoted(option.get_description()));
}

}  // namespace

std::string man_page(const CLI::App& app) {
  std::string text = fmt::format(".TH TMAP 1 \"\" \"tmap {}\" \"User Commands\"\n", TMAP_VERSION);
  text += fmt::format(".SH NAME\ntmap \\- {}\n", roff(replaced(app.get_description(), "tmap: ", "")));
  text += ".SH SYNOPSIS\n\\fBtmap\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]\n";
  text += ".SH OPTIONS\n" + roff_body(app) + ".SH COMMANDS\n";
  for (const CLI::App* command : commands_of(app)) text += roff_command(*command, "tmap");
  return text;
}

std::string bash_completion(const CLI::App& app) {
  std::string text =
      "# Completion of tmap for bash. Made by `tmap generate bash`.\n"
      "_tmap() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=''\n"
      "  if [ \"$COMP_CWORD\" = 1 ]; then\n";
  text += fmt::format("    COMPREPLY=($(compgen -W '{} {}' -- \"$current\"))\n    return\n  fi\n",
                      words(names_of_commands_in(app)), words(names_of_all(app)));
  text += "  case ${COMP_WORDS[1]}:$before in\n" + bash_choices(app) + "  esac\n  if [ -z \"$words\" ]; then\n";
  text += "    case ${COMP_WORDS[1]} in\n";
  for (const CLI::App* command : commands_of(app)) {
    text += fmt::format("      {}) words='{}' ;;\n", command->get_name(), words_of_command(*command));
  }
  return text +
         "    esac\n  fi\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "}\n"
         "complete -o default -F _tmap tmap\n";
}

std::string zsh_completion(const CLI::App& app) {
  std::string text =
      "#compdef tmap\n# Completion of tmap for zsh. Made by `tmap generate zsh`.\n"
      "_tmap() {\n  local -a commands\n  commands=(\n";
  for (const CLI::App* command : commands_of(app)) {
    text += fmt::format("    '{}:{}'\n", command->get_name(), quoted(command->get_description()));
  }
  text += "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n  case $words[2] in\n";
  for (const CLI::App* command : commands_of(app)) {
    text += fmt::format("    {})\n      _arguments", command->get_name());
    for (const CLI::Option* option : options_of(*command, false)) text += zsh_option(*option);
    text += " \\\n        '*:file:_files' ;;\n";
  }
  return text + "  esac\n}\n_tmap \"$@\"\n";
}

std::string fish_completion(const CLI::App& app) {
  std::string text = "# Completion of tmap for fish. Made by `tmap generate fish`.\n";
  for (const CLI::App* command : commands_of(app)) {
    text += fmt::format("complete -c tmap -n __fish_use_subcommand -f -a {} -d '{}'\n", command->get_name(),
                        quoted(command->get_description()));
    for (const CLI::Option* option : options_of(*command, false)) text += fish_option(*command, *option);
  }
  return text;
}

void add_generate_command(CLI::App& app, int& exit_code) {
  const auto kind = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("generate", "Print the man page, or the completion of a shell");
  command->add_option("kind", *kind, "The text to print")
      ->required()
      ->check(CLI::IsMember({"man", "bash", "zsh", "fish"}));
  add_ending(*command, "Exit code 0. An installed tmap has these texts where man and the shells look for them.",
             {{"completion in this shell", "source <(tmap generate bash)"},
              {"read the man page", "man -l <(tmap generate man)"}});
  command->callback([kind, &app, &exit_code] {
    const auto make = *kind == "man"    ? man_page
                      : *kind == "bash" ? bash_completion
                      : *kind == "zsh"  ? zsh_completion
                                        : fish_completion;
    fmt::print("{}", make(app));
    exit_code = exit_success;
  });
}

}  // namespace tmap::tool
