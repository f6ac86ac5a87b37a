// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace tmap::tool {

/// A command line that works, and what it is for.
struct example {
  std::string purpose;
  std::string line;
};

/// Ends a command's help with its exit codes and its examples.
void add_ending(CLI::App& command, const std::string& exit_codes, const std::vector<example>& examples);

/// Returns the commands of `app`, in the order of its help.
std::vector<const CLI::App*> commands_of(const CLI::App& app);

/// Returns "inspect, explain or diff".
std::string list_of_commands(const CLI::App& app);

/// Returns one sentence on what is wrong with the command line, with the nearest command or option
/// that exists.
std::string complaint_of(const CLI::App& app, const CLI::ParseError& e);

}  // namespace tmap::tool
